"""Buckets whose revisions are events, and readers of them, for tests of what is followed."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator

from turngate.jetstream.events import EventReader, StreamEvent
from turngate.jetstream.request import Requester
from turngate.jetstream.store import Event, Store
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


async def all_stored(bucket: Bucket, reader: EventReader) -> bool:
    """Whether the events stream holds everything that was saved; it is sourced a moment later."""
    return len([event async for event in reader.follow(until_caught_up=True)]) == len(bucket.saved)
