"""What the doctor makes of what the server tells: each finding by itself, without a server."""

from types import SimpleNamespace
from typing import Any

import pytest

from turngate.cli import checkup
from turngate.cli.checkup_safety import check_durability, check_payload
from turngate.cli.checkup_streams import Topography, check_backlog, check_events, check_topology
from turngate_contracts.subjects import Subjects
from turngate_contracts.topology import TOPOLOGY_VERSION, VERSION_KEY, Durability, Topology

TOPOLOGY = Topology(Subjects("tg"))
_MIB = 1024 * 1024


def stream(config: dict[str, Any], *, version: int = TOPOLOGY_VERSION, **facts: Any) -> dict[str, Any]:
    state = {"messages": 0, "bytes": 0, "first_seq": 1, "last_seq": 0, "consumer_count": 1} | facts.pop("state", {})
    return {"config": config | {"metadata": {VERSION_KEY: str(version)}}, "state": state, **facts}


def consumer(config: dict[str, Any], **facts: Any) -> dict[str, Any]:
    figures = {"num_pending": 0, "num_ack_pending": 0, "num_redelivered": 0, "num_waiting": 1}
    reached = {"delivered": {"stream_seq": 0}, "ack_floor": {"stream_seq": 0}}
    return {"config": config, **figures, **reached, **facts}


def healthy() -> Topography:
    """Everything as it should be."""
    streams = {config["name"]: stream(config) for config in TOPOLOGY.streams()}
    consumers = {(of, config["durable_name"]): consumer(config) for of, config in TOPOLOGY.consumers()}
    return Topography({"storage": 0, "streams": len(streams)}, streams, consumers)


class Asked:
    """Answers what the doctor asks again."""

    def __init__(self, info: dict[str, Any]) -> None:
        self.info = info

    async def api(self, _name: str) -> dict[str, Any]:
        return self.info


def test_what_is_as_it_should_be_is_one_line_a_check():
    found = healthy()

    assert [check.status for check in check_topology(found, TOPOLOGY)] == ["ok"]
    assert [check.status for check in check_events(found, TOPOLOGY)] == ["ok"]


@pytest.mark.parametrize(
    ("version", "status", "do"),
    [(0, "fail", "another namespace"), (TOPOLOGY_VERSION + 1, "fail", "upgrade Turngate")],
    ids=["foreign", "newer"],
)
def test_a_stream_of_another_version_says_what_to_do(version, status, do):
    found = healthy()
    found.streams["TG_TURNS"]["config"]["metadata"] = {VERSION_KEY: str(version)}

    [check] = check_topology(found, TOPOLOGY)

    assert check.status == status
    assert "TG_TURNS" in check.says
    assert do in check.do


def test_an_older_stream_is_brought_up_to_date_by_a_restart(monkeypatch):
    monkeypatch.setattr("turngate.cli.checkup_streams.TOPOLOGY_VERSION", TOPOLOGY_VERSION + 1)

    checks = check_topology(healthy(), TOPOLOGY)

    assert {check.status for check in checks} == {"warn"}
    assert "restart a service" in checks[0].do


def test_what_is_missing_is_named():
    found = healthy()
    del found.streams["TG_DEAD"]
    del found.consumers["TG_TURNS", "validation"]

    [check] = check_topology(found, TOPOLOGY)

    assert check.facts["missing"] == ["TG_DEAD", "validation of TG_TURNS"]


def test_a_queue_that_is_nearly_full_is_a_warning():
    found = healthy()
    limit = found.streams["TG_TURNS"]["config"]["max_bytes"]
    found.streams["TG_TURNS"]["state"]["bytes"] = int(limit * 0.9)

    [check] = check_topology(found, TOPOLOGY)

    assert check.says == "TG_TURNS is 90% full and refuses messages when it is"


def test_replicas_that_are_not_current_are_a_warning():
    found = healthy()
    replicas = [{"name": "n1", "current": True}, {"name": "n2", "current": False}, {"name": "n3", "offline": True}]
    found.streams["TG_TURNS"]["cluster"] = {"replicas": replicas}

    [check] = check_topology(found, TOPOLOGY)

    assert check.says == "TG_TURNS has replicas that are not current: n2, n3"


def test_events_that_lag_are_a_warning_and_those_that_do_not_arrive_a_failure():
    found = healthy()
    events = found.streams["TG_EVENTS"]
    events["sources"] = [{"name": "KV_tg_turns", "lag": 5_000}]

    [lagging] = check_events(found, TOPOLOGY)
    events["sources"][0]["error"] = {"description": "stream not found"}
    [broken] = check_events(found, TOPOLOGY)

    assert (lagging.status, lagging.facts["lag"]) == ("warn", 5_000)
    assert broken.status == "fail"
    assert "stream not found" in broken.says


@pytest.mark.parametrize(
    ("of", "figures", "do"),
    [
        (("TG_TURNS", "validation"), {"num_pending": 5_000}, "turngate serve validation` --processes"),
        (("TG_TURNS", "validation"), {"num_pending": 1, "num_waiting": 0}, "run `turngate serve validation`"),
        (("TG_WORK", "prompts-a"), {"num_pending": 1, "num_waiting": 0}, "start a runner of that pool"),
    ],
    ids=["behind", "nobody", "pool"],
)
async def test_what_waits_says_who_should_take_it(of, figures, do):
    found = healthy()
    found.consumers[of] = consumer({}, **figures)

    [check] = await check_backlog(Asked(stream({})), found, TOPOLOGY)  # type: ignore[arg-type]

    assert check.status == "warn"
    assert do in check.do


@pytest.mark.parametrize(("in_hand", "stuck"), [(0, 29), (3, 0)], ids=["stuck", "in hand"])
async def test_messages_that_their_consumer_is_through_with_are_found(in_hand, stuck):
    found = healthy()
    found.consumers["TG_TURNS", "validation"] |= {"delivered": {"stream_seq": 128}, "num_ack_pending": in_hand}
    asked = Asked(stream({}, state={"messages": 29, "first_seq": 100, "last_seq": 128}))

    checks = await check_backlog(asked, found, TOPOLOGY)  # type: ignore[arg-type]

    assert sum(check.facts.get("stuck", 0) for check in checks) == stuck


async def test_timers_that_are_not_due_are_not_stuck():
    found = healthy()
    asked = Asked(stream({}, state={"messages": 0}))
    for (of, name), info in found.consumers.items():
        info["delivered"] = {"stream_seq": 9}
        if of == "TG_TIMERS":
            found.streams[of]["state"] |= {"messages": 3, "last_seq": 9}
            assert info["config"]["filter_subject"], name

    checks = await check_backlog(asked, found, TOPOLOGY)  # type: ignore[arg-type]

    assert [check.status for check in checks] == ["ok"]


@pytest.mark.parametrize(
    ("version", "status"), [("2.15.1", "ok"), ("2.12.0", "ok"), ("2.11.9", "fail"), ("3.0.0-beta", "ok"), ("?", "fail")]
)
async def test_an_old_server_is_a_failure(version, status):
    connection = SimpleNamespace(server_info={"version": version}, body_limit=4 * _MIB, max_payload=4 * _MIB)
    on: Any = SimpleNamespace(connection=connection, topography=healthy())

    assert (await checkup._server(on))[0].status == status


@pytest.mark.parametrize(
    ("size", "status", "says"),
    [
        (100 * 1024, "fail", "only messages of up to 100 KiB fit; a report may need 772 KiB"),
        (_MIB, "warn", "messages of up to 1024 KiB fit; large states and dead letters may not"),
        (4 * _MIB, "ok", "messages of up to 4096 KiB fit"),
    ],
)
def test_a_max_payload_that_something_does_not_fit_is_told(size, status, says):
    connection: Any = SimpleNamespace(body_limit=size, max_payload=size)

    found = check_payload(connection)

    assert (found.status, found.says) == (status, says)


@pytest.mark.parametrize(
    ("made", "wanted", "status", "says"),
    [
        ({"persist_mode": "async"}, Durability.STRICT, "ok", "made strict"),
        ({}, Durability.STRICT, "warn", "made relaxed"),
        ({}, Durability.RELAXED, "ok", "not a power cut"),
        ({"num_replicas": 3}, Durability.STRICT, "ok", "3 replicas: saves survive the loss of 1 of their servers"),
    ],
    ids=["strict", "not as wanted", "relaxed", "a cluster"],
)
def test_what_a_save_survives_is_told(made, wanted, status, says):
    found = healthy()
    for name in (TOPOLOGY.subjects.stream("turns"), TOPOLOGY.subjects.bucket_stream("turns")):
        config = {key: value for key, value in found.streams[name]["config"].items() if key != "persist_mode"}
        found.streams[name] = {**found.streams[name], "config": config | made}

    (check,) = check_durability(found, Topology(TOPOLOGY.subjects, wanted))

    assert check.status == status
    assert says in check.says


@pytest.mark.parametrize(
    ("told", "status", "says"),
    [
        ("1970-01-01T00:00:10.000000001Z", "ok", "0 ms apart"),
        ("1970-01-01T01:00:10Z", "warn", "1 h ahead"),
        ("1970-01-01T00:00:00Z", "warn", "10 s behind"),
        ("soon", "warn", "does not say what time it is"),
    ],
)
async def test_clocks_are_compared(told, status, says):
    found = healthy()
    found.server_time, found.asked_ms, found.answered_ms = told, 9_990.0, 10_010.0
    on: Any = SimpleNamespace(topography=found)

    [check] = await checkup._clock(on)

    assert check.status == status
    assert says in check.says


async def test_an_account_that_is_nearly_full_is_a_warning():
    found = healthy()
    found.account = {"storage": 90, "streams": 1, "limits": {"max_storage": 100}}
    on: Any = SimpleNamespace(topography=found)

    assert [check.status for check in await checkup._jetstream(on)] == ["warn"]
