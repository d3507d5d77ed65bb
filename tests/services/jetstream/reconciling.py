"""What performs the states of a bucket, and the consumer that brings them, for tests of what reconciles."""

import asyncio
import time
from typing import Any

from turngate.jetstream.request import Requester
from turngate.jetstream.store import Entry, Event, Store
from turngate_contracts.subjects import Subjects
from turngate_contracts.topology import TURNS_RECONCILER, Topology

WANTS = Event("count.changed", 1_700_000_000_000, wants=True)
QUIET = Event("count.changed", 1_700_000_000_000)


class Performer:
    """Performs what states want: it records, and fails or waits when it is told to."""

    def __init__(self) -> None:
        self.performed: list[tuple[str, bytes | None]] = []
        self.failures: dict[str, int] = {}
        self.attempts: list[tuple[str, float]] = []
        self.go = asyncio.Event()
        self.go.set()
        self.at_once = 0
        self.most_at_once = 0

    async def __call__(self, entry: Entry) -> None:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        self.attempts.append((entry.key, time.monotonic()))
        try:
            await self.go.wait()
        finally:
            self.at_once -= 1
        if self.failures.get(entry.key, 0):
            self.failures[entry.key] -= 1
            raise OSError("not now")
        self.performed.append((entry.key, entry.value))

    @property
    def keys(self) -> list[str]:
        return [key for key, _ in self.performed]


async def make_consumer(requester: Requester, subjects: Subjects, **changes: Any) -> None:
    """Make the reconciler's consumer as provisioning does, but for what a test changes."""
    wanted = {config["durable_name"]: (stream, config) for stream, config in Topology(subjects).consumers()}
    stream, config = wanted[TURNS_RECONCILER]
    request = {"stream_name": stream, "config": {**config, **changes}}
    await requester.api(f"CONSUMER.DURABLE.CREATE.{stream}.{TURNS_RECONCILER}", request)


async def save(store: Store, key: str, value: bytes, event: Event = WANTS) -> int:
    return await store.save(key, value, (await store.load(key)).revision, event)


async def all_acked(store: Store) -> bool:
    info = await store.requester.api(f"CONSUMER.INFO.{store.stream}.{TURNS_RECONCILER}")
    return (int(info["num_pending"]), int(info["num_ack_pending"])) == (0, 0)


async def delivered(store: Store) -> int:
    """How many deliveries the reconciler's consumer has made, repeats included."""
    info = await store.requester.api(f"CONSUMER.INFO.{store.stream}.{TURNS_RECONCILER}")
    return int(info["delivered"]["consumer_seq"])


async def was_delivered(store: Store, count: int) -> bool:
    """Whether the reconciler's consumer has made exactly so many deliveries."""
    return await delivered(store) == count
