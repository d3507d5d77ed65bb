"""Readers of events get every revision once and in order, however slow they are and whatever gets lost on the way."""

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

import pytest

from tests.services.jetstream.conftest import Connecting, Requesting, came_back
from tests.services.jetstream.raw import Proxy
from tests.waiting import wait_until
from turngate.jetstream import events
from turngate.jetstream.connect import Connection
from turngate.jetstream.direct import Stored, read_page
from turngate.jetstream.embedded import EmbeddedServer
from turngate.jetstream.events import EventReader, StreamEvent
from turngate.jetstream.request import NoResponders, Requester
from turngate.jetstream.store import Event, Store
from turngate_contracts.errors import InvalidId
from turngate_contracts.subjects import Subjects
from turngate_contracts.topology import Durability, Topology

AT = 1_700_000_000_123

Follow = AsyncGenerator[StreamEvent, None]


class Bucket:
    """A bucket whose revisions are events; it saves numbered values."""

    def __init__(self, requester: Requester, subjects: Subjects, name: str = "turns") -> None:
        self.store = Store(requester, subjects, name, f"{name}.v1")
        self.saved: list[tuple[str, bytes]] = []

    async def save(self, key: str, *values: bytes) -> int:
        revision = (await self.store.load(key)).revision
        for value in values:
            revision = await self.store.save(key, value, revision, Event("count.changed", AT))
            self.saved.append((key, value))
        return revision

    async def save_many(self, count: int, size: int = 0) -> None:
        """Save as many revisions, over three keys."""
        start = len(self.saved)
        for number in range(start, start + count):
            await self.save(f"k{number % 3}", b"%d" % number + b" " * size)


class Reading:
    """A reader at work: it keeps what it got."""

    def __init__(self, follow: Follow) -> None:
        self.events: list[StreamEvent] = []
        self._follow = follow
        self._task = asyncio.create_task(self._read())

    async def _read(self) -> None:
        async for event in self._follow:
            self.events.append(event)

    @property
    def values(self) -> list[tuple[str, bytes]]:
        return [(event.key, event.data) for event in self.events]

    async def stop(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await self._follow.aclose()


@contextlib.asynccontextmanager
async def reading(follow: Follow) -> AsyncIterator[Reading]:
    made = Reading(follow)
    try:
        yield made
    finally:
        await made.stop()


async def take(follow: Follow, count: int) -> list[StreamEvent]:
    """Read so many events and leave the reader where it is."""
    found: list[StreamEvent] = []
    async with asyncio.timeout(20):
        while len(found) < count:
            found.append(await anext(follow))
    return found


async def make_events(requester: Requester, subjects: Subjects) -> None:
    """Make the events stream, and the buckets that it is sourced from, as provisioning does."""
    for config in Topology(subjects, Durability.RELAXED).streams():
        if config["name"].startswith("KV_") or config["name"] == subjects.stream("events"):
            await requester.api(f"STREAM.CREATE.{config['name']}", config)


@pytest.fixture
async def provisioned(requester: Requester, subjects: Subjects) -> Subjects:
    await make_events(requester, subjects)
    return subjects


@pytest.fixture
def turns(requester: Requester, provisioned: Subjects) -> Bucket:
    return Bucket(requester, provisioned)


@pytest.fixture
def reader(connection: Connection, requester: Requester, provisioned: Subjects) -> EventReader:
    return EventReader(connection, requester, provisioned)


async def all_stored(bucket: Bucket, reader: EventReader) -> bool:
    """Whether the events stream holds everything that was saved; it is sourced a moment later."""
    return len([event async for event in reader.follow(until_caught_up=True)]) == len(bucket.saved)


# Every revision, once and in order


async def test_what_was_and_what_comes_is_read_once_and_in_order(turns: Bucket, reader: EventReader) -> None:
    await turns.save_many(300)
    async with reading(reader.follow()) as got:
        await wait_until(lambda: len(got.events) >= 300)
        await turns.save_many(100)
        await wait_until(lambda: len(got.events) >= 400)

    assert got.values == turns.saved
    cursors = [event.cursor for event in got.events]
    assert cursors == sorted(set(cursors))


async def test_an_event_says_what_happened_to_which_state(turns: Bucket, reader: EventReader) -> None:
    await turns.save("session.task", b'{"n":1}')

    (event,) = await take(reader.follow(), 1)

    assert event == StreamEvent(
        cursor=1,
        kind="turns",
        key="session.task",
        type="turngate.count.changed",
        time="2023-11-14T22:13:20.123Z",
        data=b'{"n":1}',
        schema="turns.v1",
    )


async def test_an_event_reaches_a_waiting_reader_at_once(turns: Bucket, reader: EventReader) -> None:
    async with reading(reader.follow()) as got:
        await turns.save("k", b"1")
        await wait_until(lambda: got.events)
        saved = time.monotonic()
        await turns.save("k", b"2")
        await wait_until(lambda: len(got.events) == 2)

    assert time.monotonic() - saved < 10, "far less than a pull lasts"


async def test_a_deleted_state_is_an_event_without_data(turns: Bucket, reader: EventReader) -> None:
    revision = await turns.save("k", b"1")
    await turns.store.delete("k", revision, {}, ttl_s=60)

    _, deleted = await take(reader.follow(), 2)

    assert (deleted.key, deleted.deleted, deleted.data) == ("k", True, b"")


async def test_two_readers_of_one_connection_do_not_disturb_each_other(turns: Bucket, reader: EventReader) -> None:
    async with reading(reader.follow()) as one, reading(reader.follow()) as two:
        await turns.save_many(50)
        await wait_until(lambda: len(one.events) >= 50 and len(two.events) >= 50)

    assert one.values == two.values == turns.saved


# Cursors and filters


async def test_a_reader_that_comes_back_with_its_cursor_misses_and_repeats_nothing(
    turns: Bucket, reader: EventReader
) -> None:
    await turns.save_many(20)
    first = reader.follow()
    before = await take(first, 12)
    await first.aclose()
    await turns.save_many(20)

    after = await take(reader.follow(before[-1].cursor), 28)

    assert [(event.key, event.data) for event in before + after] == turns.saved


async def test_reading_until_caught_up_ends(turns: Bucket, reader: EventReader) -> None:
    assert [event async for event in reader.follow(until_caught_up=True)] == []

    await turns.save_many(300)
    await wait_until(lambda: all_stored(turns, reader))
    found = [event async for event in reader.follow(until_caught_up=True)]
    assert [(event.key, event.data) for event in found] == turns.saved
    assert [event async for event in reader.follow(found[-1].cursor, until_caught_up=True)] == []


@pytest.mark.parametrize("until_caught_up", [False, True])
async def test_one_kind_is_read_alone(
    requester: Requester, subjects: Subjects, turns: Bucket, reader: EventReader, until_caught_up: bool
) -> None:
    questions = Bucket(requester, subjects, "questions")
    for _ in range(10):
        await turns.save_many(1)
        await questions.save_many(1)
    await wait_until(lambda: _holds(reader, 20))

    follow = reader.follow(kind="questions", until_caught_up=until_caught_up)
    found = await take(follow, 10)
    await follow.aclose()

    assert [(event.key, event.data) for event in found] == questions.saved
    assert {event.kind for event in found} == {"questions"}


async def _holds(reader: EventReader, count: int) -> bool:
    return len([event async for event in reader.follow(until_caught_up=True)]) == count


async def test_one_key_is_followed_alone(turns: Bucket, reader: EventReader) -> None:
    await turns.save_many(9)
    async with reading(reader.follow(kind="turns", key="k1")) as got:
        await wait_until(lambda: len(got.events) == 3)
        await turns.save_many(30)
        await wait_until(lambda: len(got.events) >= 13)

    assert got.values == [(key, value) for key, value in turns.saved if key == "k1"]


async def test_one_session_is_followed_over_all_kinds(
    requester: Requester, subjects: Subjects, turns: Bucket, reader: EventReader
) -> None:
    questions = Bucket(requester, subjects, "questions")
    async with reading(reader.follow(kind=events.EVERY_KIND, key="k")) as got:
        await turns.save("k", b"1")
        await questions.save("k", b"2")
        await turns.save("other", b"3")
        await turns.save("k", b"4")
        await wait_until(lambda: len(got.events) >= 3)

    assert sorted((event.kind, event.data) for event in got.events) == [
        ("questions", b"2"),
        ("turns", b"1"),
        ("turns", b"4"),
    ]


@pytest.mark.parametrize(
    ("kind", "key"), [("", "k"), ("*", ""), (">", ""), ("turns", "*"), ("turns", "a..b"), ("turns", "a b")]
)
async def test_a_filter_that_is_no_name_is_refused(
    connection: Connection, requester: Requester, subjects: Subjects, kind: str, key: str
) -> None:
    with pytest.raises(InvalidId):
        await anext(EventReader(connection, requester, subjects).follow(kind=kind, key=key))


# Slow readers and lost messages


@pytest.mark.parametrize(("bound", "value"), [("BUFFER", 4), ("BUFFER_BYTES", 500)])
@pytest.mark.parametrize("kind", ["", "turns"])
async def test_a_slow_reader_gets_from_the_stream_what_its_buffer_did_not_hold(
    turns: Bucket, reader: EventReader, monkeypatch: pytest.MonkeyPatch, bound: str, value: int, kind: str
) -> None:
    monkeypatch.setattr(events, bound, value)
    slow = reader.follow(kind=kind)
    await turns.save_many(1, size=100)
    found = await take(slow, 1)

    for _ in range(3):
        await turns.save_many(50, size=100)
        await wait_until(lambda: all_stored(turns, reader))
        found += await take(slow, 25)
    found += await take(slow, 75)
    await slow.aclose()

    assert [(event.key, event.data) for event in found] == turns.saved


@pytest.mark.parametrize("kind", ["", "turns"])
async def test_a_live_message_that_got_lost_is_read_with_the_next(
    connecting: Connecting, requesting: Requesting, proxy: Proxy, turns: Bucket, reader: EventReader, kind: str
) -> None:
    behind = await connecting(proxy.url)
    unlucky = EventReader(behind, await requesting(behind), reader._subjects)
    async with reading(unlucky.follow(kind=kind)) as got:
        await turns.save_many(1)
        await wait_until(lambda: len(got.events) == 1)
        proxy.muted = True
        await turns.save_many(3)
        await wait_until(lambda: all_stored(turns, reader))
        proxy.muted = False
        await turns.save_many(1)
        await wait_until(lambda: len(got.events) >= 5, deadline_s=5)

    assert got.values == turns.saved


async def test_a_last_message_that_got_lost_is_found_by_looking(
    connecting: Connecting,
    requesting: Requesting,
    proxy: Proxy,
    turns: Bucket,
    reader: EventReader,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    behind = await connecting(proxy.url)
    unlucky = EventReader(behind, await requesting(behind), reader._subjects)
    monkeypatch.setattr(events, "CHECK_S", 0.5)
    async with reading(unlucky.follow()) as got:
        await turns.save_many(1)
        await wait_until(lambda: len(got.events) == 1)
        proxy.muted = True
        await turns.save_many(1)
        await wait_until(lambda: all_stored(turns, reader))
        proxy.muted = False

        await wait_until(lambda: len(got.events) == 2, deadline_s=15)

    assert got.values == turns.saved


async def test_a_replica_that_is_behind_what_it_republished_is_read_again(
    turns: Bucket, reader: EventReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = 0

    async def behind(*arguments: Any) -> tuple[list[Stored], bool]:
        nonlocal reads
        reads += 1
        return ([], False) if reads in (2, 3) else await read_page(*arguments)

    async with reading(reader.follow(kind="turns")) as got:
        await turns.save_many(1)
        await wait_until(lambda: len(got.events) == 1)
        reads = 1
        monkeypatch.setattr(events, "read_page", behind)
        await turns.save_many(1)
        await wait_until(lambda: len(got.events) == 2, deadline_s=5)

    assert reads >= 4


# Servers that go away (hazard 5)


async def test_a_reader_outlives_kills_of_the_server(
    own_connection: Connection, own_requester: Requester, own_server: EmbeddedServer, subjects: Subjects
) -> None:
    await make_events(own_requester, subjects)
    turns = Bucket(own_requester, subjects)
    async with reading(EventReader(own_connection, own_requester, subjects).follow()) as got:
        for times in (1, 2):
            await turns.save_many(20)
            own_server.kill()
            own_server.start()
            await came_back(own_connection, times)
            returned = time.monotonic()
            await turns.save_many(20)
            await wait_until(lambda expected=40 * times: len(got.events) >= expected)  # type: ignore[misc]
            # Sources and readers that had to notice the restart by themselves would take 17 to 19 s.
            assert time.monotonic() - returned < 10

    assert got.values == turns.saved


async def test_a_reader_that_looks_while_the_server_is_away_goes_on_at_its_return(
    own_connection: Connection,
    own_requester: Requester,
    own_server: EmbeddedServer,
    subjects: Subjects,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(events, "CHECK_S", 0.05)
    monkeypatch.setattr(events, "RETRY_S", 0.05)
    failed: list[Exception] = []

    async def watched(*arguments: Any) -> tuple[list[Stored], bool]:
        try:
            return await read_page(*arguments)
        except Exception as error:
            failed.append(error)
            raise

    monkeypatch.setattr(events, "read_page", watched)
    await make_events(own_requester, subjects)
    turns = Bucket(own_requester, subjects)
    async with reading(EventReader(own_connection, own_requester, subjects).follow()) as got:
        await turns.save_many(1)
        await wait_until(lambda: len(got.events) == 1)
        own_server.kill()
        await wait_until(lambda: len(failed) >= 2)
        own_server.start()
        await came_back(own_connection)
        await turns.save_many(1)
        await wait_until(lambda: len(got.events) == 2)

    assert got.values == turns.saved


async def test_what_happened_while_a_reader_was_cut_off_is_read_at_its_return(
    connecting: Connecting, requesting: Requesting, proxy: Proxy, turns: Bucket, reader: EventReader
) -> None:
    behind = await connecting(proxy.url)
    cut_off = EventReader(behind, await requesting(behind), reader._subjects)
    async with reading(cut_off.follow()) as got:
        await turns.save_many(1)
        await wait_until(lambda: len(got.events) == 1)
        behind.options["reconnect_time_wait"] = 0.5
        proxy.cut()
        await turns.save_many(10)
        await came_back(behind)
        await wait_until(lambda: len(got.events) >= 11, deadline_s=5)

    assert got.values == turns.saved


async def test_a_stream_that_can_not_be_read_at_the_start_is_told(
    connection: Connection, requester: Requester, subjects: Subjects
) -> None:
    missing = EventReader(connection, requester, subjects)

    with pytest.raises(NoResponders):
        await anext(missing.follow())
    with pytest.raises(NoResponders):
        await anext(missing.follow(until_caught_up=True))


async def test_a_reader_that_ended_leaves_nothing_behind_on_its_connection(
    connection: Connection, requester: Requester, turns: Bucket, provisioned: Subjects
) -> None:
    subscriptions, callbacks = len(connection._subs), len(connection._on_reconnect)
    async with reading(EventReader(connection, requester, provisioned).follow()) as got:
        await turns.save_many(1)
        await wait_until(lambda: got.events)

    assert (len(connection._subs), len(connection._on_reconnect)) == (subscriptions, callbacks)
