"""Readers of events get every revision once and in order, from wherever they ask, of whatever they ask for."""

import time

import pytest

from tests.services.jetstream.readers import Bucket, all_stored, reading, take
from tests.waiting import wait_until
from turngate.jetstream import events
from turngate.jetstream.connect import Connection
from turngate.jetstream.events import EventReader, StreamEvent
from turngate.jetstream.request import Requester
from turngate_contracts.errors import InvalidId
from turngate_contracts.subjects import Subjects

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


async def test_a_deleted_state_is_an_event_without_data(
    requester: Requester, provisioned: Subjects, reader: EventReader
) -> None:
    questions = Bucket(requester, provisioned, "questions")
    revision = await questions.save("k", b"1")
    await questions.store.delete("k", revision, {}, ttl_s=60)

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
