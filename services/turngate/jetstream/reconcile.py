"""The reconcile loop: for the newest state of each key, do what that state wants, then ack.

It is a durable consumer of the bucket's own stream that reads headers only. A revision without the `Turngate-Wants`
header is acked unread. For one with it, the newest state is loaded: when a newer revision exists, its own delivery does
the work. `perform` must be idempotent: killed anywhere, it is given the state again. There is no outbox to lose.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from turngate.jetstream.connect import Connection
from turngate.jetstream.consume import ConsumeLoop, Delivery
from turngate.jetstream.store import Entry, Store
from turngate_contracts.headers import WANTS

log = logging.getLogger(__name__)

Perform = Callable[[Entry], Awaitable[None]]

MAX_AT_ONCE: Final = 64
RETRY_MS: Final = (200, 500, 1_000, 2_000, 5_000, 10_000)
_WANTS: Final = WANTS.encode()


class Reconciler:
    """One process's share of the reconciling of one bucket."""

    def __init__(self, connection: Connection, store: Store, consumer: str, perform: Perform) -> None:
        """Make a reconciler.

        Args:
            connection: where to consume from.
            store: the bucket.
            consumer: its durable consumer; all processes of the service share it.
            perform: does what a state wants; raising means once more, later.
        """
        self.loop = ConsumeLoop(connection, store.stream, consumer, self._on_delivery, window=1024)
        self.performed = 0
        self._store = store
        self._perform = perform
        self._prefix = len(store.subject(""))
        self._tasks: set[asyncio.Task[None]] = set()
        self._slots = asyncio.Semaphore(MAX_AT_ONCE)

    async def start(self) -> None:
        """Begin consuming."""
        await self.loop.start()

    async def stop(self, timeout_ms: int = 10_000) -> bool:
        """Finish what is under way and say whether all of it was."""
        return await self.loop.stop(timeout_ms)

    def _on_delivery(self, delivery: Delivery) -> None:
        if _WANTS not in delivery.head:
            delivery.ack()
            return
        task = asyncio.create_task(self._reconcile(delivery))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _reconcile(self, delivery: Delivery) -> None:
        key = delivery.subject[self._prefix :]
        async with self._slots:
            try:
                entry = await self._store.load(key)
                if entry.revision == delivery.sequence:
                    await self._perform(entry)
                    self.performed += 1
            except Exception as error:  # noqa: BLE001  whatever it is: the state still wants it, so try again
                delay = RETRY_MS[min(delivery.deliveries, len(RETRY_MS)) - 1]
                log.warning("%s %s is not reconciled yet (again in %d ms): %s", self._store.bucket, key, delay, error)
                delivery.nak(delay)
            else:
                delivery.ack()
