"""The reconcile loop: for the newest state of each key, do what that state wants, then ack.

It is a durable consumer of the bucket's own stream that reads headers only, and of a split bucket it is given only what
wants something; what comes without the `Turngate-Wants` header is acked unread. For a revision with it, the newest
state is loaded: when a newer revision exists that wants something, its own delivery does the work. Where the process
still holds the delivered revision, because it saved it, what that one wants is performed without loading anything: a
newer revision that another process saved meanwhile could come in the moment after a load as well. `perform` must be
idempotent: killed anywhere, it is given the state again. There is no outbox to lose.

In one process the states of a key are performed one after the other, and of those that wait only the newest: a key that
moves faster than what it wants is done must not be worked on many times at once. Another process may still be at an
older state of it.

A read may come from a replica that is behind. When it is older than the delivery, the stream's leader is asked whether
the delivered revision still exists: acking it on the word of that replica would lose what the state wants.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from turngate.jetstream.connect import Connection
from turngate.jetstream.consume import ConsumeLoop, Delivery
from turngate.jetstream.deadletter import DeadLetters
from turngate.jetstream.request import JetStreamError
from turngate.jetstream.store import Entry, Store
from turngate.jetstream.suspects import TRUSTED_STATES, Suspects
from turngate.tracing import Span, trace_parent_of
from turngate_contracts.errors import Unavailable
from turngate_contracts.headers import WANTS
from turngate_contracts.topology import ACK_WAIT_MS

log = logging.getLogger(__name__)

Perform = Callable[[Entry], Awaitable[None]]
Recall = Callable[[str, int], "Awaitable[None] | None"]
"""Performs what the state of a key at a revision wants, where the process holds that state; None where it does not."""

MAX_AT_ONCE: Final = 64
RETRY_MS: Final = (200, 500, 1_000, 2_000, 5_000, 10_000)
TICK_MS: Final = ACK_WAIT_MS // 3
"""How often the server is told that what waits or is being performed still is."""
MESSAGE_NOT_FOUND: Final = 10037
_WANTS: Final = WANTS.encode()


class ReplicaBehind(Unavailable):
    """A state was read that is older than its delivery."""

    def __init__(self, key: str, revision: int, delivered: int) -> None:
        super().__init__(f"{key} was read at revision {revision} and delivered at {delivered}: a replica is behind")


class _Key:
    """A key of which a state is being performed, and the newest delivery of it that waits."""

    __slots__ = ("current", "task", "waiting")

    def __init__(self, delivery: Delivery) -> None:
        self.current: Delivery | None = None
        self.waiting: Delivery | None = delivery
        self.task: asyncio.Task[None] | None = None

    def put(self, delivery: Delivery) -> None:
        """Have a delivery wait; older ones end, because a newer revision is in hand."""
        newest = max(self._held(), key=lambda held: held.sequence)
        if delivery.sequence < newest.sequence:
            delivery.ack()
            return
        if self.waiting is not None:
            if self.waiting.sequence == delivery.sequence:
                self.waiting.drop()  # delivered again: the copy in hand is late
            else:
                self.waiting.ack()
        self.waiting = delivery

    def next(self) -> Delivery | None:
        """Return the delivery that is to be reconciled now, if one waits."""
        self.current, self.waiting = self.waiting, None
        return self.current

    def _held(self) -> list[Delivery]:
        return [delivery for delivery in (self.current, self.waiting) if delivery is not None]

    def tell(self, word: Callable[[Delivery], None]) -> None:
        """Say something of each delivery in hand."""
        for delivery in self._held():
            word(delivery)


class Reconciler:
    """One process's share of the reconciling of one bucket."""

    def __init__(
        self,
        connection: Connection,
        store: Store,
        consumer: str,
        perform: Perform,
        dead: DeadLetters | None = None,
        *,
        recall: Recall | None = None,
    ) -> None:
        """Make a reconciler.

        Args:
            connection: where to consume from.
            store: the bucket.
            consumer: its durable consumer; all processes of the service share it.
            perform: does what a state wants; raising means once more, later.
            dead: where states go that kill their process; without it they are given to the next one for ever.
            recall: does the same for a state that need not be loaded.
        """
        take = self._on_delivery
        if dead is not None:
            take = Suspects(dead, store.stream, take, trusted=TRUSTED_STATES).on_delivery
        self.loop = ConsumeLoop(connection, store.stream, consumer, take, window=1024, wanted=_WANTS)
        self.performed = 0
        self.bucket = store.bucket
        self._store = store
        self._perform = perform
        self._recall = recall
        self._keys: dict[str, _Key] = {}
        self._ticker: asyncio.Task[None] | None = None
        self._slots = asyncio.Semaphore(MAX_AT_ONCE)

    async def start(self) -> None:
        """Begin consuming."""
        await self.loop.start()
        self._ticker = asyncio.create_task(self._tick(), name=f"turngate-tick-{self.loop.consumer}")

    async def stop(self, timeout_ms: int = 10_000) -> bool:
        """Finish what is under way and say whether all of it was; what was not in time is handed back."""
        finished = await self.loop.stop(timeout_ms)
        left = [*self._keys.values()]
        tasks = [key.task for key in left if key.task is not None]
        if self._ticker is not None:
            tasks.append(self._ticker)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for key in left:
            key.tell(lambda delivery: delivery.nak(0))
        return finished

    def _on_delivery(self, delivery: Delivery) -> None:
        name = self._store.key_of(delivery.subject)
        key = self._keys.get(name)
        if key is not None:
            key.put(delivery)
            return
        key = self._keys[name] = _Key(delivery)
        key.task = asyncio.create_task(self._serve(name, key))

    async def _serve(self, name: str, key: _Key) -> None:
        try:
            while (delivery := key.next()) is not None:
                await self._reconcile(name, delivery)
        finally:
            del self._keys[name]

    async def _reconcile(self, key: str, delivery: Delivery) -> None:
        try:
            async with self._slots:
                performing = await self._performing(key, delivery.sequence)
                if performing is not None:
                    with Span("turngate.reconcile", trace_parent_of(delivery.head), bucket=self.bucket, key=key):
                        await performing
                    self.performed += 1
        except Exception as error:  # noqa: BLE001  whatever it is: the state still wants it, so try again
            delay = RETRY_MS[min(delivery.deliveries, len(RETRY_MS)) - 1]
            about = {"bucket": self.bucket, "key": key, "sequence": delivery.sequence}
            text = "%s %s is not reconciled yet (again in %d ms): %s"
            log.warning(text, self.bucket, key, delay, error, extra={"facts": about})
            delivery.nak(delay)
        else:
            delivery.ack()

    async def _performing(self, key: str, delivered: int) -> Awaitable[None] | None:
        """Return what does all that a delivered revision wants; None where a newer one exists, which sees to it."""
        recalled = None if self._recall is None else self._recall(key, delivered)
        if recalled is not None:
            return recalled
        entry = await self._store.load(key)
        if entry.revision == delivered:
            return self._perform(entry)
        if entry.revision < delivered and await self._exists(delivered):
            raise ReplicaBehind(key, entry.revision, delivered)
        return None

    async def _exists(self, revision: int) -> bool:
        try:
            await self._store.requester.api(f"STREAM.MSG.GET.{self._store.stream}", {"seq": revision})
        except JetStreamError as error:
            if error.err_code == MESSAGE_NOT_FOUND:
                return False
            raise
        return True

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK_MS / 1000)
            for key in self._keys.values():
                key.tell(Delivery.in_progress)
