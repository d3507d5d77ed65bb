"""Prompts for a pool: each is received by one runner, which takes it over or gives it back.

What a runner holds is kept alive on the server, queued or in a caller's hands, so that nobody else gets it meanwhile.
It is held for certain until one wait after the last sign of life that the server confirmed: past that (no connection, a
stopped process) it may be another runner's, and is neither yielded nor taken. A copy that comes again takes the place
of the one that is held; one of a prompt that was taken is acknowledged once more.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import AsyncGenerator
from typing import Final

from turngate.jetstream.connect import Connection
from turngate.jetstream.consume import ConsumeLoop, Delivery
from turngate.jetstream.request import NoResponders, NotConnected, Reply, Requester
from turngate_contracts import codec
from turngate_contracts.errors import InvalidMessage, Unavailable
from turngate_contracts.subjects import Subjects
from turngate_contracts.topology import ACK_WAIT_MS
from turngate_protocol.report.session import Prompt

log = logging.getLogger(__name__)

TAKE_MS: Final = 5_000
"""How long the server may take to confirm that a prompt is taken."""
TAKEN_KEPT: Final = 1_024
"""How many prompts are remembered as taken: a server that was killed may have forgotten it."""

_Place = tuple[int, str]
"""Where a prompt is stored: a power cut can give a sequence to another prompt, never its subject."""


class NotTaken(Unavailable):
    """The prompt is not known to be this runner's; it must not be done yet."""

    def __init__(self, prompt: str, reason: str) -> None:
        super().__init__(f"prompt {prompt} is not taken: {reason}", prompt=prompt)
        self.prompt = prompt


class IncomingPrompt:
    """A prompt that one runner of a pool received. `take` it over, or it goes to another runner."""

    def __init__(self, prompt: Prompt, held: "_Held") -> None:
        self.prompt = prompt
        self._held = held

    async def take(self) -> None:
        """Have the server confirm that this runner does it: the prompt is not given to anybody again.

        Taking it once more is harmless; whoever holds a prompt of a pool takes it before doing it.

        Raises:
            NotTaken: it is not confirmed; take it again, or leave it to whichever runner it comes to.
        """
        await self._held.take(self.prompt.id)

    def give_back(self, delay_ms: int = 1_000) -> None:
        """Have it given to a runner again, after a delay; one that is taken stays taken."""
        self._held.give_back(delay_ms)


async def receive(
    connection: Connection,
    requester: Requester,
    subjects: Subjects,
    pool: str,
    slots: int,
    *,
    ack_wait_ms: int = ACK_WAIT_MS,
) -> AsyncGenerator[IncomingPrompt, None]:
    """Yield the prompts of a pool as they come, until the connection is closed for good; the pool's consumer exists.

    Args:
        connection: where to pull from.
        requester: the requests of that connection.
        subjects: the namespace.
        pool: the pool.
        slots: most prompts that are held untaken.
        ack_wait_ms: after what silence the consumer gives a prompt to another runner.
    """
    holder = _Holder(requester, ack_wait_ms / 1000)
    loop = ConsumeLoop(
        connection, subjects.stream("work"), subjects.prompt_consumer(pool), holder.on_delivery, window=max(1, slots)
    )
    beside = (
        asyncio.create_task(holder.tick(), name=f"turngate-prompts-{pool}"),
        asyncio.create_task(holder.end_with(connection), name=f"turngate-prompts-{pool}-end"),
    )
    try:
        await loop.start()
        while (held := await holder.next()) is not None:
            try:
                incoming = IncomingPrompt(codec.decode(held.delivery.body, Prompt, "a Prompt"), held)
            except InvalidMessage as error:
                held.refuse(error)
                continue
            try:
                yield incoming
            finally:
                incoming.give_back()
    finally:
        # First, or what is handed back would come to us again.
        await loop.halt()
        holder.give_back()
        for task in beside:
            task.cancel()
        await asyncio.gather(*beside, return_exceptions=True)


class _Holder:
    """What one runner holds of a pool, and what it took."""

    def __init__(self, requester: Requester, ack_wait_s: float) -> None:
        self.requester = requester
        self.ack_wait_s = ack_wait_s
        self.held: dict[_Place, _Held] = {}
        self.taken: OrderedDict[_Place, None] = OrderedDict()
        self._queue: asyncio.Queue[_Held | None] = asyncio.Queue()
        self._awake_at = asyncio.get_running_loop().time()

    def on_delivery(self, delivery: Delivery) -> None:
        """Hold a prompt, or the newer copy of one that is held or taken."""
        place = (delivery.sequence, delivery.subject)
        if place in self.taken:
            delivery.ack()
            return
        # A process that was stopped reads what was delivered to it before it was.
        until = self._awake_at + self.ack_wait_s
        held = self.held.get(place)
        if held is not None:
            held.renew(delivery, until)
            return
        self.held[place] = held = _Held(self, place, delivery, until)
        self._queue.put_nowait(held)

    async def next(self) -> "_Held | None":
        """Wait for a prompt that is held for certain; None when none will ever come again."""
        while (held := await self._queue.get()) is not None:
            if held.is_certain:
                return held
            held.give_back(0)
        return None

    async def end_with(self, connection: Connection) -> None:
        """Wait until the connection is closed for good, and let nobody wait for prompts then."""
        await connection.closed_for_good.wait()
        self._queue.put_nowait(None)

    def give_back(self) -> None:
        """Give back all that is held."""
        for held in list(self.held.values()):
            held.give_back(0)

    def remember(self, place: _Place) -> None:
        """Note that a prompt was taken."""
        self.taken[place] = None
        if len(self.taken) > TAKEN_KEPT:
            self.taken.popitem(last=False)

    async def tick(self) -> None:
        """Keep alive what is held, for ever."""
        loop = asyncio.get_running_loop()
        period_s = self.ack_wait_s / 3
        while True:
            since = loop.time()
            await asyncio.sleep(period_s)
            if loop.time() - since < 2 * period_s:
                self._awake_at = loop.time()
            for held in self.held.values():
                held.keep_alive()


class _Held:
    """One prompt that is held: its newest delivery, and until when it is nobody else's for certain."""

    def __init__(self, holder: _Holder, place: _Place, delivery: Delivery, until: float) -> None:
        self.delivery = delivery
        self._holder = holder
        self._place = place
        self._until = until
        self._loop = asyncio.get_running_loop()
        self._is_asked = False

    @property
    def is_certain(self) -> bool:
        """Whether no other runner can hold it."""
        return self._loop.time() < self._until

    @property
    def _is_held(self) -> bool:
        return self._holder.held.get(self._place) is self

    async def take(self, prompt: str) -> None:
        """Have the acknowledgement confirmed; see `IncomingPrompt.take`."""
        if self._place in self._holder.taken:
            return
        if not self._is_held:
            raise NotTaken(prompt, "it was given back; take it when it comes again")
        # Once asked for it may be taken already, and then comes to nobody: this runner goes on asking.
        if not (self.is_certain or self._is_asked):
            raise NotTaken(prompt, "it was held too long without a connection and goes to another runner")
        try:
            await self._holder.requester.request(self.delivery.answer_to, b"+ACK", timeout_ms=TAKE_MS)
        except NotConnected:
            raise NotTaken(prompt, "there is no connection to the NATS server; take it again") from None
        except Unavailable as error:
            self._is_asked |= not isinstance(error, NoResponders)
            raise NotTaken(prompt, f"it was not confirmed ({error}); take it again") from None
        self._holder.remember(self._place)
        if self._is_held:
            self._end().drop()

    def renew(self, delivery: Delivery, until: float) -> None:
        """Hold a newer copy instead."""
        self.delivery.drop()
        self.delivery = delivery
        self._until = max(self._until, until)
        self._is_asked = False

    def keep_alive(self) -> None:
        """Start its wait on the server anew; it counts once the server confirmed it in time."""
        if not self.is_certain:
            return
        sent = self._loop.time()

        def on_reply(reply: Reply | Exception) -> None:
            if not isinstance(reply, Exception) and self.is_certain:
                self._until = max(self._until, sent + self._holder.ack_wait_s)

        wait_ms = int(self._holder.ack_wait_s * 1000)
        self._holder.requester.request_nowait(self.delivery.answer_to, b"+WPI", on_reply, timeout_ms=wait_ms)

    def give_back(self, delay_ms: int) -> None:
        """Have it delivered again, unless it is taken, given back, or by now another's to give back."""
        if not self._is_held:
            return
        if self.is_certain and not self._is_asked:
            self._end().nak(delay_ms)
        else:
            self._end().drop()

    def refuse(self, error: InvalidMessage) -> None:
        """Have one that can't be read never delivered again."""
        log.error("a prompt on %s can't be read: %s", self.delivery.subject, error)
        self._end().term("invalid_message")

    def _end(self) -> Delivery:
        del self._holder.held[self._place]
        return self.delivery
