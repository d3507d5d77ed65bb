"""Durable timers fire once, at their time, whatever happens to the server in between."""

import asyncio
import time
from collections.abc import AsyncIterator

import pytest

from tests.services.jetstream.conftest import came_back
from tests.waiting import wait_until
from turngate.clock import system_clock
from turngate.jetstream.connect import Connection
from turngate.jetstream.consume import ConsumeLoop, Delivery
from turngate.jetstream.embedded import EmbeddedServer
from turngate.jetstream.request import NotConnected, Requester
from turngate.jetstream.timers import Timers
from turngate_contracts.errors import InvalidId
from turngate_contracts.headers import SCHEMA
from turngate_contracts.subjects import Subjects
from turngate_contracts.topology import Topology

KIND = "kind"
now = system_clock()


class Fired:
    """What fired of one kind, and when."""

    def __init__(self) -> None:
        self.timers: list[tuple[str, bytes]] = []
        self.at: list[int] = []
        self.schemas: list[str] = []

    def take(self, delivery: Delivery) -> None:
        self.timers.append((delivery.subject.rpartition(".")[2], delivery.body))
        self.at.append(now())
        self.schemas.append(delivery.headers().get(SCHEMA, ""))
        delivery.ack()

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.timers]


async def make_timers(requester: Requester, subjects: Subjects, *kinds: str) -> Timers:
    topology = Topology(subjects)
    config = next(each for each in topology.streams() if each["name"] == subjects.stream("timers"))
    await requester.api(f"STREAM.CREATE.{config['name']}", config)
    for kind in kinds or (KIND,):
        stream, consumer = topology.timer_consumer(kind)
        request = {"stream_name": stream, "config": consumer}
        await requester.api(f"CONSUMER.DURABLE.CREATE.{stream}.{consumer['durable_name']}", request)
    return Timers(requester, subjects)


async def follow(connection: Connection, subjects: Subjects, kind: str = KIND) -> tuple[Fired, ConsumeLoop]:
    fired = Fired()
    stream, consumer = Topology(subjects).timer_consumer(kind)
    loop = ConsumeLoop(connection, stream, consumer["durable_name"], fired.take)
    await loop.start()
    return fired, loop


async def stored(requester: Requester, subjects: Subjects) -> int:
    info = await requester.api(f"STREAM.INFO.{subjects.stream('timers')}")
    return int(info["state"]["messages"])


@pytest.fixture
async def timers(requester: Requester, subjects: Subjects) -> Timers:
    return await make_timers(requester, subjects)


@pytest.fixture
async def fired(timers: Timers, connection: Connection, subjects: Subjects) -> AsyncIterator[Fired]:
    """What fires of the one kind, on the shared server."""
    found, loop = await follow(connection, subjects)
    yield found
    await loop.stop()


async def test_a_timer_fires_at_its_time_with_its_body(timers: Timers, fired: Fired) -> None:
    at = now() + 300

    await timers.set(KIND, "a", at, b"body", "timer.v1")

    await wait_until(lambda: fired.timers == [("a", b"body")])
    assert fired.at[0] >= at
    assert fired.schemas == ["timer.v1"]


async def test_a_timer_fires_once_and_leaves_nothing(
    timers: Timers, fired: Fired, requester: Requester, subjects: Subjects
) -> None:
    await timers.set(KIND, "a", now() + 100)
    await timers.set(KIND, "b", now() + 1_000)

    await wait_until(lambda: "b" in fired.names)

    assert fired.names == ["a", "b"]
    await wait_until(lambda: _is_empty(requester, subjects))


async def _is_empty(requester: Requester, subjects: Subjects) -> bool:
    return await stored(requester, subjects) == 0


async def test_a_timer_of_the_past_fires_at_once(timers: Timers, fired: Fired) -> None:
    await timers.set(KIND, "a", now() - 3_600_000)

    await wait_until(lambda: fired.names == ["a"], deadline_s=3)


@pytest.mark.parametrize(("first_ms", "second_ms"), [(600, 900), (60_000, 300)])
async def test_a_timer_that_is_set_again_fires_at_the_later_setting_only(
    timers: Timers, fired: Fired, first_ms: int, second_ms: int
) -> None:
    start = now()
    await timers.set(KIND, "a", start + first_ms, b"first")
    await timers.set(KIND, "a", start + second_ms, b"second")
    await timers.set(KIND, "last", start + 1_200)

    await wait_until(lambda: "last" in fired.names)

    assert fired.timers == [("a", b"second"), ("last", b"")]
    assert fired.at[0] >= start + second_ms


async def test_a_cancelled_timer_does_not_fire(timers: Timers, fired: Fired) -> None:
    await timers.set(KIND, "a", now() + 600)
    await timers.set(KIND, "last", now() + 900)

    await timers.cancel(KIND, "a")

    await wait_until(lambda: "last" in fired.names)
    assert fired.names == ["last"]


async def test_cancelling_leaves_other_timers_and_what_has_fired_alone(
    timers: Timers, fired: Fired, requester: Requester, subjects: Subjects
) -> None:
    await timers.set(KIND, "other", now() + 60_000)
    await timers.set(KIND, "a", now())
    await wait_until(lambda: fired.names == ["a"])

    await timers.cancel(KIND, "a")
    await timers.cancel(KIND, "unknown")

    assert await stored(requester, subjects) == 1


async def test_kinds_do_not_meet(connection: Connection, requester: Requester, subjects: Subjects) -> None:
    timers = await make_timers(requester, subjects, "one", "two")
    one, loop_one = await follow(connection, subjects, "one")
    two, loop_two = await follow(connection, subjects, "two")

    await timers.set("one", "a", now())
    await timers.set("two", "a", now())

    await wait_until(lambda: one.names == ["a"] and two.names == ["a"])
    await asyncio.gather(loop_one.stop(), loop_two.stop())


async def test_hundreds_of_timers_fire_once_each(timers: Timers, fired: Fired) -> None:
    at = now() + 500
    names = [f"t{number}" for number in range(300)]

    await asyncio.gather(*(timers.set(KIND, name, at) for name in names))
    await wait_until(lambda: len(fired.names) >= 300)

    assert sorted(fired.names) == sorted(names)


@pytest.mark.parametrize(("kind", "timer"), [("kind", "a.b"), ("*", "a"), ("kind", ">"), ("kind", "")])
async def test_a_name_that_is_no_id_is_refused(timers: Timers, kind: str, timer: str) -> None:
    with pytest.raises(InvalidId):
        await timers.set(kind, timer, now())
    with pytest.raises(InvalidId):
        await timers.cancel(kind, timer)


async def test_a_timer_that_was_due_while_the_server_was_down_fires_once_at_its_return(
    own_connection: Connection, own_requester: Requester, own_server: EmbeddedServer, subjects: Subjects
) -> None:
    timers = await make_timers(own_requester, subjects)
    fired, loop = await follow(own_connection, subjects)
    at = now() + 300
    await timers.set(KIND, "a", at)

    own_server.kill()
    await wait_until(lambda: now() > at)
    own_server.start()
    await came_back(own_connection)

    await wait_until(lambda: fired.names == ["a"], deadline_s=5)
    await timers.set(KIND, "last", now() + 300)
    await wait_until(lambda: "last" in fired.names)
    assert fired.names == ["a", "last"]
    await loop.stop()


async def test_a_timer_keeps_its_time_over_a_kill_of_the_server(
    own_connection: Connection, own_requester: Requester, own_server: EmbeddedServer, subjects: Subjects
) -> None:
    timers = await make_timers(own_requester, subjects)
    fired, loop = await follow(own_connection, subjects)
    at = now() + 1_200
    await timers.set(KIND, "a", at)

    own_server.kill()
    own_server.start()
    await came_back(own_connection)
    restarted = now()

    await wait_until(lambda: fired.names == ["a"], deadline_s=5)
    assert restarted < at <= fired.at[0]
    await loop.stop()


async def test_a_timer_that_can_not_be_set_says_so_at_once(
    own_connection: Connection, own_requester: Requester, own_server: EmbeddedServer, subjects: Subjects
) -> None:
    timers = await make_timers(own_requester, subjects)
    own_server.kill()
    await wait_until(lambda: not own_connection.is_connected)
    began = time.monotonic()

    with pytest.raises(NotConnected):
        await timers.set(KIND, "a", now())
    with pytest.raises(NotConnected):
        await timers.cancel(KIND, "a")

    assert time.monotonic() - began < 4, "far less than a request waits for its answer"
