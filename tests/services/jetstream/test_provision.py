"""Provisioning makes a server agree with the topology, and says why when it can not."""

import asyncio
from typing import Any

import nats.js.errors
import pytest
from msgspec import structs

from tests.services.jetstream.conftest import Connecting, Requesting, make_bucket
from tests.waiting import wait_until
from turngate.jetstream import provision as provision_module
from turngate.jetstream.connect import Connection
from turngate.jetstream.consume import ConsumeLoop, Delivery
from turngate.jetstream.embedded import EmbeddedServer
from turngate.jetstream.provision import (
    Provisioned,
    TopologyForeign,
    TopologyMissing,
    TopologyNewer,
    TopologyStuck,
    ensure_consumer,
    ensure_stream,
    provision,
    stream_version,
)
from turngate.jetstream.request import STREAM_LIMIT, JetStreamError, Requester
from turngate.jetstream.store import Event, Store
from turngate_contracts import headers as h
from turngate_contracts.subjects import Subjects
from turngate_contracts.topology import TOPOLOGY_VERSION, VERSION_KEY, Durability, Topology

NOTHING = Provisioned()


@pytest.fixture(params=Durability)
def topology(request: pytest.FixtureRequest, subjects: Subjects) -> Topology:
    return Topology(subjects, request.param)


@pytest.fixture
async def provisioned(requester: Requester, subjects: Subjects) -> Topology:
    """A topology that the server has."""
    topology = Topology(subjects, Durability.RELAXED)
    await provision(requester, topology)
    return topology


def wanted(topology: Topology, name: str) -> dict[str, Any]:
    return next(config for config in topology.streams() if config["name"] == topology.subjects.stream(name))


async def config_of(requester: Requester, stream: str) -> dict[str, Any]:
    config: dict[str, Any] = (await requester.api(f"STREAM.INFO.{stream}"))["config"]
    return config


async def change(requester: Requester, stream: str, **changes: Any) -> None:
    """Change a stream as an operator might."""
    await requester.api(f"STREAM.UPDATE.{stream}", {**await config_of(requester, stream), **changes})


def holds(found: Any, value: Any) -> bool:
    """Whether the server's configuration says what we want of it; it leaves out what is false."""
    if isinstance(value, dict):
        return all(holds((found or {}).get(field), inner) for field, inner in value.items())
    if isinstance(value, list):
        return len(found or []) == len(value) and all(map(holds, found, value))
    return bool(found == value or (found is None and value in (False, 0, "")))


# Making


async def test_everything_is_made_as_the_topology_says(requester: Requester, topology: Topology) -> None:
    done = await provision(requester, topology)

    assert done == Provisioned(tuple(config["name"] for config in topology.streams()), ())
    for config in topology.streams():
        assert holds(await config_of(requester, config["name"]), config), config["name"]
    for stream, config in topology.consumers():
        info = await requester.api(f"CONSUMER.INFO.{stream}.{config['durable_name']}")
        assert holds(info["config"], config), config["durable_name"]


async def test_provisioning_again_changes_nothing(requester: Requester, topology: Topology) -> None:
    await provision(requester, topology)

    assert await provision(requester, topology) == NOTHING


async def test_the_consumers_of_a_pool_are_accepted_and_found_again(
    requester: Requester, provisioned: Topology
) -> None:
    for _ in range(2):
        for stream, config in provisioned.pool_consumers("pool", ["executor", "verifier"]):
            await ensure_consumer(requester, stream, config)

    names = (await requester.api(f"CONSUMER.NAMES.{provisioned.subjects.stream('work')}"))["consumers"]
    assert len(names) == 3


async def test_two_namespaces_share_a_server(requester: Requester, provisioned: Topology) -> None:
    other = Topology(Subjects(f"{provisioned.subjects.namespace}x"), Durability.RELAXED)

    assert len((await provision(requester, other)).created) == len(other.streams())
    assert await provision(requester, provisioned) == NOTHING


async def test_four_processes_that_provision_at_once_agree(
    connecting: Connecting, requesting: Requesting, nats_server: EmbeddedServer, topology: Topology
) -> None:
    requesters = [await requesting(await connecting(nats_server.url)) for _ in range(4)]

    done = await asyncio.gather(*(provision(requester, topology) for requester in requesters))

    assert {name for each in done for name in each.created} == {config["name"] for config in topology.streams()}
    assert await provision(requesters[0], topology) == NOTHING


async def test_a_stream_that_another_process_made_otherwise_in_the_same_instant_is_brought_up_to_date(
    requester: Requester, subjects: Subjects, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = wanted(Topology(subjects, Durability.RELAXED), "dead")
    await requester.api(f"STREAM.CREATE.{config['name']}", {**config, "max_bytes": 1024 * 1024})
    genuine = provision_module._stream_config
    looks = [None]  # it was not there a moment ago

    async def look(requester: Requester, name: str) -> dict[str, Any] | None:
        return looks.pop() if looks else await genuine(requester, name)

    monkeypatch.setattr(provision_module, "_stream_config", look)

    assert await ensure_stream(requester, config) == "updated"
    assert holds(await config_of(requester, config["name"]), config)


# Changing


async def test_a_stream_that_differs_is_brought_up_to_date(requester: Requester, provisioned: Topology) -> None:
    stream = provisioned.subjects.stream("dead")
    await change(requester, stream, description="other", max_bytes=1024 * 1024, subjects=[])

    done = await provision(requester, provisioned)

    assert done == Provisioned((), (stream,))
    assert holds(await config_of(requester, stream), wanted(provisioned, "dead"))


async def test_an_age_can_be_made_shorter_than_it_was_at_first(requester: Requester, provisioned: Topology) -> None:
    shorter = structs.replace(provisioned, presence_ms=2_000)

    done = await provision(requester, shorter)

    presence = provisioned.subjects.stream("presence")
    assert presence in done.updated
    assert (await config_of(requester, presence))["max_age"] == 2_000_000_000


async def test_streams_of_an_older_version_are_brought_up_to_date(
    requester: Requester, provisioned: Topology, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("turngate_contracts.topology.TOPOLOGY_VERSION", TOPOLOGY_VERSION + 1)
    monkeypatch.setattr("turngate.jetstream.provision.TOPOLOGY_VERSION", TOPOLOGY_VERSION + 1)

    done = await provision(requester, provisioned)

    names = tuple(config["name"] for config in provisioned.streams())
    assert done == Provisioned((), names)
    assert {await stream_version(requester, name) for name in names} == {TOPOLOGY_VERSION + 1}


async def test_updating_a_stream_keeps_its_messages(requester: Requester, provisioned: Topology) -> None:
    stream = provisioned.subjects.stream("turns")
    await requester.publish(provisioned.subjects.turn_report("pool-1", "runner", "session"), b"kept")
    await change(requester, stream, max_bytes=1024 * 1024)

    await provision(requester, provisioned)

    assert (await requester.api(f"STREAM.INFO.{stream}"))["state"]["messages"] == 1


async def test_a_consumer_that_differs_is_brought_up_to_date(requester: Requester, provisioned: Topology) -> None:
    stream, config = provisioned.consumers()[0]
    changed = {**config, "ack_wait": 1_000_000_000, "max_ack_pending": 7}
    name = f"CONSUMER.DURABLE.CREATE.{stream}.{config['durable_name']}"
    await requester.api(name, {"stream_name": stream, "config": changed})

    await provision(requester, provisioned)

    info = await requester.api(f"CONSUMER.INFO.{stream}.{config['durable_name']}")
    assert holds(info["config"], config)


async def test_a_topology_keeps_the_persistence_that_it_was_made_with(
    requester: Requester, provisioned: Topology
) -> None:
    strict = Topology(provisioned.subjects, Durability.STRICT)

    assert await provision(requester, strict) == NOTHING
    assert "persist_mode" not in await config_of(requester, provisioned.subjects.stream("turns"))


# Refusing


async def test_a_newer_topology_is_refused_and_left_alone(requester: Requester, provisioned: Topology) -> None:
    stream = provisioned.subjects.stream("dead")
    await change(requester, stream, metadata={VERSION_KEY: str(TOPOLOGY_VERSION + 1)})
    await change(requester, provisioned.subjects.stream("turns"), description="changed")

    with pytest.raises(TopologyNewer, match="upgrade Turngate") as refusal:
        await provision(requester, provisioned)

    assert refusal.value.details == {"stream": stream, "found": TOPOLOGY_VERSION + 1, "known": TOPOLOGY_VERSION}
    assert (await config_of(requester, provisioned.subjects.stream("turns")))["description"] == "changed"


@pytest.mark.parametrize("metadata", [{}, {VERSION_KEY: "²"}, {VERSION_KEY: "one"}])
async def test_a_stream_of_somebody_else_is_refused_and_nothing_is_made(
    requester: Requester, subjects: Subjects, metadata: dict[str, str]
) -> None:
    stream = subjects.stream("dead")
    foreign = {"name": stream, "subjects": [f"{subjects.namespace}.foreign"], "metadata": metadata, "storage": "file"}
    await requester.api(f"STREAM.CREATE.{stream}", foreign)

    with pytest.raises(TopologyForeign, match=stream):
        await provision(requester, Topology(subjects))

    assert await stream_version(requester, subjects.stream("turns")) is None
    assert await stream_version(requester, stream) == 0


async def test_a_stream_of_somebody_else_on_our_subjects_is_explained(requester: Requester, subjects: Subjects) -> None:
    foreign = {"name": f"{subjects.namespace}_OTHER", "subjects": [f"{subjects.namespace}.turn.>"], "storage": "file"}
    await requester.api(f"STREAM.CREATE.{foreign['name']}", foreign)

    with pytest.raises(TopologyStuck, match=f"stream {subjects.stream('turns')} can't be.*overlap"):
        await provision(requester, Topology(subjects))


async def test_a_stream_that_can_not_be_changed_is_explained(requester: Requester, subjects: Subjects) -> None:
    topology = Topology(subjects, Durability.RELAXED)
    stream = subjects.stream("tasks")
    await requester.api(f"STREAM.CREATE.{stream}", {**wanted(topology, "tasks"), "storage": "memory"})

    with pytest.raises(TopologyStuck, match="storage type") as refusal:
        await provision(requester, topology)

    assert refusal.value.details["name"] == f"stream {stream}"


async def test_a_consumer_that_can_not_be_changed_is_explained(requester: Requester, provisioned: Topology) -> None:
    stream, config = provisioned.consumers()[1]
    name = config["durable_name"]
    await requester.api(f"CONSUMER.DELETE.{stream}.{name}")
    other = {"stream_name": stream, "config": {**config, "deliver_policy": "last"}}
    await requester.api(f"CONSUMER.DURABLE.CREATE.{stream}.{name}", other)

    with pytest.raises(TopologyStuck, match=f"consumer {name} of {stream}.*deliver policy"):
        await provision(requester, provisioned)


async def test_a_consumer_of_a_stream_that_does_not_exist_is_explained(
    requester: Requester, subjects: Subjects
) -> None:
    stream, config = Topology(subjects).consumers()[0]

    with pytest.raises(TopologyMissing, match=f"{stream} does not exist"):
        await ensure_consumer(requester, stream, config)


# What the configurations allow and refuse


async def test_nats_py_binds_to_a_bucket_and_reads_and_writes_it(
    connection: Connection, requester: Requester, provisioned: Topology
) -> None:
    store = Store(requester, provisioned.subjects, "questions", "count.v1")
    await store.save("ours", b"1", 0, Event("count.changed", 0))
    bucket = await connection.jetstream().key_value(provisioned.subjects.bucket("questions"))

    assert (await bucket.get("ours")).value == b"1"
    made = await bucket.create("theirs", b"1")
    updated = await bucket.update("theirs", b"2", last=made)
    with pytest.raises(nats.js.errors.KeyWrongLastSequenceError):
        await bucket.update("theirs", b"3", last=made)
    assert [entry.value for entry in await bucket.history("theirs")] == [b"1", b"2"]
    assert (await store.load("theirs")).revision == updated
    await bucket.delete("theirs")
    assert (await store.load("theirs")).value is None


@pytest.mark.parametrize("name", ["turns", "questions", "conclusions", "objectives", "inbox"])
@pytest.mark.parametrize("rollup", ["all", "sub"])
async def test_a_header_can_not_wipe_a_bucket(requester: Requester, subjects: Subjects, name: str, rollup: str) -> None:
    store = await make_bucket(requester, subjects, name)
    await store.save("k", b"1", 0, Event("count.changed", 0))

    other = subjects.revision(name, "other", wants=False)
    with pytest.raises(JetStreamError, match="rollup"):
        await requester.publish(other, b"", h.block({"Nats-Rollup": rollup}))

    assert (await store.load("k")).value == b"1"


@pytest.mark.parametrize("name", ["turns", "questions", "conclusions", "objectives", "inbox"])
async def test_a_bucket_can_not_be_purged_nor_its_revisions_deleted(
    requester: Requester, subjects: Subjects, name: str
) -> None:
    store = await make_bucket(requester, subjects, name)
    revision = await store.save("k", b"1", 0, Event("count.changed", 0))

    with pytest.raises(JetStreamError, match="purge"):
        await requester.api(f"STREAM.PURGE.{store.stream}")
    with pytest.raises(JetStreamError, match="delete"):
        await requester.api(f"STREAM.MSG.DELETE.{store.stream}", {"seq": revision})

    assert (await store.load("k")).value == b"1"


async def test_a_schedule_can_only_aim_at_its_own_stream(requester: Requester, provisioned: Topology) -> None:
    subjects = provisioned.subjects
    state = subjects.revision("turns", "k", wants=False)
    at_once = {h.SCHEDULE: "@at 2020-01-01T00:00:00Z"}
    aimed = h.block({**at_once, h.SCHEDULE_TARGET: state})

    with pytest.raises(JetStreamError, match="schedul"):
        await requester.publish(subjects.timer_at("kind", "id"), b"", aimed)
    with pytest.raises(JetStreamError, match="schedul"):
        await requester.publish(state, b"", aimed)


async def test_a_prompt_is_put_once_even_after_it_was_taken(
    connection: Connection, requester: Requester, provisioned: Topology
) -> None:
    subject = provisioned.subjects.prompt("pool", "id")
    ((stream, config),) = provisioned.pool_consumers("pool")
    await ensure_consumer(requester, stream, config)
    taken: list[bytes] = []
    loop = ConsumeLoop(connection, stream, config["durable_name"], lambda delivery: _take(delivery, taken))
    await loop.start()
    await requester.publish(subject, b"1")
    await wait_until(lambda: taken)
    assert await loop.stop()

    with pytest.raises(JetStreamError) as refusal:
        await requester.publish(subject, b"2")

    assert refusal.value.err_code == STREAM_LIMIT


def _take(delivery: Delivery, taken: list[bytes]) -> None:
    taken.append(delivery.body)
    delivery.ack()


async def test_a_full_queue_refuses_instead_of_dropping(requester: Requester, provisioned: Topology) -> None:
    stream = provisioned.subjects.stream("turns")
    await change(requester, stream, max_msgs=1)
    await requester.publish(provisioned.subjects.turn_report("pool-1", "runner", "a"), b"kept")

    with pytest.raises(JetStreamError) as refusal:
        await requester.publish(provisioned.subjects.turn_report("pool-1", "runner", "b"), b"refused")

    assert refusal.value.err_code == STREAM_LIMIT
    assert (await requester.api(f"STREAM.INFO.{stream}"))["state"]["first_seq"] == 1
