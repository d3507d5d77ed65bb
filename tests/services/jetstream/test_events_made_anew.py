"""Readers of an events stream that was made anew or restored: their cursors are of another stream (hazard 5)."""

import pytest

from tests.services.jetstream.readers import Bucket, make_events, reading, take
from tests.waiting import wait_until
from turngate.jetstream import events
from turngate.jetstream.connect import Connection
from turngate.jetstream.events import EventReader
from turngate.jetstream.request import Requester
from turngate_contracts.subjects import Subjects


@pytest.fixture
async def reader(connection: Connection, requester: Requester, subjects: Subjects) -> EventReader:
    await make_events(requester, subjects)
    return EventReader(connection, requester, subjects)


async def _make_anew(requester: Requester, subjects: Subjects) -> Bucket:
    """Make all streams anew, as a restore does that replaces them."""
    buckets = ("turns", "questions", "conclusions", "objectives", "inbox")
    for stream in (subjects.stream("events"), *map(subjects.bucket_stream, buckets)):
        await requester.api(f"STREAM.DELETE.{stream}")
    await make_events(requester, subjects)
    return Bucket(requester, subjects)


@pytest.mark.parametrize("kind", ["", "turns"])
async def test_a_reader_whose_stream_is_made_anew_reads_the_new_one(
    requester: Requester, subjects: Subjects, reader: EventReader, monkeypatch: pytest.MonkeyPatch, kind: str
):
    monkeypatch.setattr(events, "CHECK_S", 0.2)
    await Bucket(requester, subjects).save_many(5)
    async with reading(reader.follow(kind=kind)) as got:
        await wait_until(lambda: len(got.events) == 5)

        anew = await _make_anew(requester, subjects)
        await anew.save_many(2)
        await wait_until(lambda: len(got.events) >= 7, why="the new stream is read")
        await anew.save_many(2)
        await wait_until(lambda: len(got.events) >= 9, why="and followed")

    assert got.values[5:] == anew.saved
    assert [event.cursor for event in got.events[5:]] == [1, 2, 3, 4]


async def test_a_reader_that_comes_back_with_a_cursor_of_another_stream_reads_from_the_beginning(
    requester: Requester, subjects: Subjects, reader: EventReader
):
    turns = Bucket(requester, subjects)
    await turns.save_many(3)
    await take(reader.follow(), 3)

    found = await take(reader.follow(1_000), 3)

    assert [event.cursor for event in found] == [1, 2, 3]


async def test_a_reader_at_the_newest_event_reads_nothing_twice(
    requester: Requester, subjects: Subjects, reader: EventReader, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(events, "CHECK_S", 0.05)
    turns = Bucket(requester, subjects)
    await turns.save_many(3)
    asked = 0
    before = reader._is_made_anew

    async def counted(cursor: int) -> bool:
        nonlocal asked
        asked += 1
        return await before(cursor)

    monkeypatch.setattr(reader, "_is_made_anew", counted)
    async with reading(reader.follow()) as got:
        await wait_until(lambda: asked >= 5, why="it looked several times")
        await turns.save_many(1)
        await wait_until(lambda: len(got.events) >= 4)

    assert got.values == turns.saved
