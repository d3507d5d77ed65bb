"""Readers get every event however slow they are, whatever gets lost on the way and whichever server goes away."""

import time
from typing import Any

import pytest

from tests.services.jetstream.conftest import Connecting, Requesting, came_back
from tests.services.jetstream.raw import Proxy
from tests.services.jetstream.readers import Bucket, all_stored, make_events, reading, take
from tests.waiting import wait_until
from turngate.jetstream import events
from turngate.jetstream.connect import Connection
from turngate.jetstream.direct import Stored, read_page
from turngate.jetstream.embedded import EmbeddedServer
from turngate.jetstream.events import EventReader
from turngate.jetstream.request import NoResponders, Requester
from turngate_contracts.subjects import Subjects

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
