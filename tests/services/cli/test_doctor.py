"""`turngate doctor`: what is wrong, and what to do."""

import asyncio
import contextlib

import pytest

from tests.services.cli.shell import Background, inside, turngate
from tests.waiting import wait_until_sync
from turngate.jetstream.connect import connect
from turngate.jetstream.request import Requester
from turngate.registry import SERVICES
from turngate_contracts.subjects import Subjects
from turngate_contracts.topology import VERSION_KEY, Durability, Topology


def found(outcome, name):
    return [check for check in outcome.json()["checks"] if check["name"] == name]


def on_server(url, work):
    """Do something on the server itself."""

    async def run():
        connection = await connect(url)
        requester = await Requester.start(connection)
        try:
            return await work(requester)
        finally:
            await requester.stop()
            await connection.close()

    return asyncio.run(run())


@pytest.fixture
def place(nats_server, namespace):
    return {"TURNGATE_NATS_URL": nats_server.url, "TURNGATE_NAMESPACE": namespace, "TURNGATE_DURABILITY": "relaxed"}


@pytest.fixture
def whole(place, tmp_path):
    """A system in which every service runs."""
    with contextlib.ExitStack() as services:
        started = [services.enter_context(Background(tmp_path / name, "serve", name, env=place)) for name in SERVICES]
        for service in started:
            service.wait_ready()
        yield place


def test_a_healthy_system_is_exit_code_0(whole):
    outcome = inside("doctor", env=whole)

    assert outcome.code == 0, outcome.out
    assert "✗" not in outcome.out
    assert "1 process answers" in outcome.out
    assert f"{whole['TURNGATE_NAMESPACE'].upper()}_TURNS" in outcome.out


def test_the_findings_come_as_json_with_every_stream_and_consumer(whole):
    facts = inside("doctor", "--json", env=whole).json()

    subjects = Subjects(whole["TURNGATE_NAMESPACE"])
    topology = Topology(subjects, Durability.RELAXED)
    assert facts["ok"]
    assert [row["stream"] for row in facts["streams"]] == [stream["name"] for stream in topology.streams()]
    assert {"validation", "turns-reconciler"} <= {row["consumer"] for row in facts["consumers"]}
    assert {check["name"] for check in facts["checks"]} >= {"server", "topology", "validation", "events", "clock"}


def test_a_namespace_without_anything_is_told_how_to_begin(place):
    outcome = inside("doctor", "--json", env=place)

    assert outcome.code == 1
    assert found(outcome, "topology")[0]["status"] == "fail"
    assert "turngate up" in found(outcome, "topology")[0]["do"]
    assert found(outcome, "validation")[0]["do"] == "run `turngate serve validation` or `turngate up`"


def test_a_service_that_is_down_is_missed_and_what_waits_is_counted(place, tmp_path):
    with Background(tmp_path, "serve", "validation", env=place) as service:
        service.wait_ready()
        assert service.end() == 0
    subjects = Subjects(place["TURNGATE_NAMESPACE"])
    on_server(place["TURNGATE_NATS_URL"], lambda r: r.publish(subjects.turn_report("pool-1", "r1", "s1"), b"{}"))

    outcome = inside("doctor", "--json", env=place)

    assert outcome.code == 1
    assert found(outcome, "validation")[0]["says"] == "no validation process answers"
    assert found(outcome, "topology")[0]["status"] == "ok"
    assert any("1 messages wait for validation" in check["says"] for check in found(outcome, "backlog"))


def test_dead_letters_are_counted_with_their_reasons(place, tmp_path):
    with Background(tmp_path, "serve", "validation", env=place) as service:
        service.wait_ready()
        subjects = Subjects(place["TURNGATE_NAMESPACE"])
        on_server(
            place["TURNGATE_NATS_URL"], lambda r: r.publish(subjects.turn_report("pool-1", "r1", "s1"), b"\xff\x1b[31m")
        )
        service.wait_for("dead letters")
        wait_until_sync(
            lambda: found(inside("doctor", "--json", env=place), "dead letters")[0]["facts"]["messages"] == 1,
            why="the dead letter is counted",
        )

        outcome = inside("doctor", env=place)

        assert "1 message could not be used; the newest: invalid_message on " in outcome.out
        assert all(line.isprintable() for line in outcome.out.splitlines())


@pytest.mark.parametrize(
    ("version", "says"),
    [("", "was not made by Turngate"), ("99", "has topology version 99"), ("0", "was not made by Turngate")],
    ids=["foreign", "newer", "zero"],
)
def test_a_stream_that_is_not_ours_to_use_is_a_failure(place, version, says):
    wanted = Topology(Subjects(place["TURNGATE_NAMESPACE"]), Durability.RELAXED).streams()[0]
    config = wanted | {"metadata": {VERSION_KEY: version} if version else {}}
    on_server(place["TURNGATE_NATS_URL"], lambda r: r.api(f"STREAM.CREATE.{config['name']}", config))

    outcome = inside("doctor", "--json", env=place)
    serving = turngate("serve", "validation", env=place)

    assert outcome.code == 1
    assert any(says in check["says"] for check in found(outcome, "topology"))
    assert serving.code == 1
    assert config["name"] in serving.err
