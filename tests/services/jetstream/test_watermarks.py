"""A bucket that lost acknowledged saves is noticed by a note outside of it, and nothing starts on it unasked."""

import asyncio

import pytest

from tests.services.jetstream.conftest import came_back
from turngate.clock import system_clock
from turngate.jetstream.connect import Connection
from turngate.jetstream.embedded import EmbeddedServer
from turngate.jetstream.provision import ensure_stream, provision
from turngate.jetstream.request import Requester
from turngate.jetstream.watermarks import StreamRegressed, Watermarks
from turngate.process import running
from turngate.settings import Settings
from turngate_contracts.subjects import Subjects
from turngate_contracts.topology import Durability, Topology


@pytest.fixture
async def topology(requester: Requester, subjects: Subjects) -> Topology:
    """A provisioned namespace."""
    made = Topology(subjects, Durability.RELAXED)
    await provision(requester, made)
    return made


def watermarks(requester: Requester, topology: Topology) -> Watermarks:
    return Watermarks(requester, topology, system_clock())


async def save(requester: Requester, topology: Topology, count: int) -> str:
    """Save some states and return the name of the bucket's stream."""
    for number in range(count):
        await requester.publish(topology.subjects.revision("turns", f"s{number}", wants=False), b"{}")
    return topology.subjects.bucket_stream("turns")


async def make_anew(requester: Requester, topology: Topology, stream: str) -> None:
    """Lose a stream, as a broken block or a careless hand does, and make it again."""
    await requester.api(f"STREAM.DELETE.{stream}")
    await ensure_stream(requester, next(each for each in topology.streams() if each["name"] == stream))


async def test_a_bucket_that_only_grows_is_no_regression(requester: Requester, topology: Topology) -> None:
    marks = watermarks(requester, topology)
    stream = await save(requester, topology, 3)
    await marks.note()
    await save(requester, topology, 2)
    await marks.check()

    await marks.note()

    standing = next(each for each in await marks.standings() if each.stream == stream)
    assert (standing.seen, standing.last) == (5, 5)


async def test_a_bucket_that_went_back_is_told_with_both_numbers_and_the_way_out(
    requester: Requester, topology: Topology
) -> None:
    marks = watermarks(requester, topology)
    stream = await save(requester, topology, 5)
    await marks.note()
    await make_anew(requester, topology, stream)
    await save(requester, topology, 2)

    with pytest.raises(StreamRegressed) as refused:
        await marks.check()

    assert refused.value.details == {"stream": stream, "last": 2, "seen": 5}
    assert refused.value.message == (
        f"stream {stream} ends at sequence 2, and 5 was seen in it before: acknowledged saves are lost, or it was made"
        " anew. Restore it from a backup, or, where the loss is known, start once with --accept-regression"
    )


async def test_one_flipped_bit_on_the_disk_that_costs_half_of_a_bucket_is_noticed(
    own_server: EmbeddedServer, own_connection: Connection, own_requester: Requester, namespace: str
) -> None:
    """Hazard 26: the server drops what is behind the bit, says nothing of it, and gives the sequences out again."""
    topology = Topology(Subjects(namespace), Durability.RELAXED)
    await provision(own_requester, topology)
    marks = watermarks(own_requester, topology)
    stream = await save(own_requester, topology, 400)
    await marks.note()
    await asyncio.to_thread(own_server.kill)
    (block,) = own_server.state_dir.glob(f"jetstream/*/streams/{stream}/msgs/*.blk")
    data = bytearray(block.read_bytes())
    data[len(data) // 2] ^= 1
    block.write_bytes(data)

    await asyncio.to_thread(own_server.start)
    await came_back(own_connection)

    with pytest.raises(StreamRegressed) as refused:
        await marks.check()
    assert refused.value.details["stream"] == stream
    assert refused.value.details["seen"] == 400
    assert 100 < refused.value.details["last"] < 300


async def test_a_note_is_never_lowered_by_noting(requester: Requester, topology: Topology) -> None:
    marks = watermarks(requester, topology)
    stream = await save(requester, topology, 5)
    await marks.note()
    await make_anew(requester, topology, stream)

    await marks.note()

    with pytest.raises(StreamRegressed):
        await marks.check()


async def test_services_start_on_it_only_once_the_loss_was_accepted(
    nats_server: EmbeddedServer, requester: Requester, topology: Topology
) -> None:
    marks = watermarks(requester, topology)
    stream = await save(requester, topology, 5)
    await marks.note()
    await make_anew(requester, topology, stream)
    settings = Settings(nats_url=nats_server.url, namespace=topology.subjects.namespace, durability=Durability.RELAXED)

    with pytest.raises(StreamRegressed):
        async with running(settings, ["validation"]):
            raise AssertionError("it started")

    async with running(settings, ["validation"], accept_regression=True):
        pass
    async with running(settings, ["validation"]):
        pass
