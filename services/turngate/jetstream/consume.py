"""The one consume loop of the system: it keeps a pull window full, and whoever handles a message acks it last.

Messages come by callback from the read loop. A pull is asked for again when half of the window is free, where free
means neither asked for nor in a handler's hands: that is the back-pressure. A message takes one from what was asked
for, and the status that ends a pull says how much of it was not delivered: a pull's reply subject ends in its size, for
the statuses that do not say so. Pulls are bounded in bytes too, because the server ends a connection that has 64 MiB
waiting. A refused pull (no such consumer, too many pulls) is asked for again by the checker, never at once.

A stream may have gone back while its server was away: what it stored last is lost where it writes asynchronously, and
the numbers are given again. An acknowledgement names a number, so what was in hand before another server answered is
given back instead of acknowledged, and comes again if it still is what it was.

Missed heartbeats and reconnects are answered by asking anew. There is no fetch that could be cancelled: stopping
unsubscribes first, or what is handed back would come to us again, then waits for what is being handled.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import msgspec
from nats.aio.subscription import Subscription

from turngate.jetstream.connect import Connection, NotConnected, parse_headers

if TYPE_CHECKING:
    from turngate.metrics.watches import DeliveryWatch

log = logging.getLogger(__name__)

EXPIRES_MS: Final = 30_000
HEARTBEAT_MS: Final = 5_000
CHECK_MS: Final = 1_000
PULL_BYTES: Final = 8 * 1024 * 1024
"""Most bytes that one pull asks for; more where a single message may be larger."""
FAILED_MS: Final = 1_000
"""After what a message comes again whose handler raised."""
MOST_PARKED: Final = 4
"""How many windows of messages may wait behind others of their key without taking the place of other keys'."""
_ENVELOPE: Final = 64 * 1024


class Delivery:
    """One delivered message. The first `ack`, `nak` or `term` ends it; later ones do nothing."""

    __slots__ = ("_came", "_epoch", "_loop", "_parked", "_reply", "body", "ended", "head", "on_end", "subject")

    def __init__(self, loop: "ConsumeLoop", subject: bytes, reply: bytes, body: bytes, head: bytes) -> None:
        self._loop = loop
        self._epoch = loop.epoch
        self._came = loop.heard
        self._reply = reply
        # Whoever may publish may put any bytes into a subject; what is no UTF-8 fails as an id, not here.
        self.subject = subject.decode("utf-8", "replace")
        self.body = body
        self.head = head
        self.ended = False
        self.on_end: Callable[[], None] | None = None
        self._parked = False

    def headers(self) -> dict[str, str]:
        """Return the message's headers."""
        return parse_headers(self.head)[1]

    @property
    def consumer(self) -> str:
        """The consumer that it was delivered to."""
        return self._loop.consumer

    @property
    def sequence(self) -> int:
        """The message's sequence in its stream."""
        return int(_place(self._reply)[1])

    @property
    def deliveries(self) -> int:
        """How often it has been delivered, this time included; not crash-durable."""
        return int(_place(self._reply)[0])

    @property
    def stored_ns(self) -> int:
        """When the message was stored, by the server's clock, in ns since the epoch."""
        return int(_place(self._reply)[3])

    @property
    def is_first(self) -> bool:
        """Whether it surely was not delivered before; `deliveries` knows for all, at a higher cost."""
        return self._reply.startswith(self._loop.first)

    def ack(self) -> None:
        """Say that the message's effect is stored."""
        self._finish(b"+ACK")

    def nak(self, delay_ms: int) -> None:
        """Have it delivered again after a delay; a bare nak would burn its deliveries in milliseconds."""
        self._finish(b'-NAK {"delay": %d}' % (delay_ms * 1_000_000))

    def term(self, reason: str) -> None:
        """Have it never delivered again: it is kept elsewhere, for `reason`."""
        self._finish(b"+TERM " + reason.encode())

    def in_progress(self) -> None:
        """Start its acknowledgement wait anew."""
        if not self.ended:
            self._loop.tell(self._reply, b"+WPI")

    def drop(self) -> None:
        """Say nothing more of it: a newer copy is in hand, its end was told by a request, or it is another's by now."""
        self._finish(b"")

    def park(self) -> None:
        """Leave its place in the window to others: it waits behind messages of its own key."""
        if not self.ended and not self._parked:
            self._parked = self._loop.parked(1)

    @property
    def answer_to(self) -> str:
        """Where it is acknowledged, for a request that wants that confirmed; `drop` it once it is."""
        return self._reply.decode()

    def _finish(self, word: bytes) -> None:
        if not self.ended:
            self.ended = True
            if word and self._epoch != self._loop.epoch:
                word = b"-NAK"
            if self._loop.watch is not None:
                self._loop.watch.ended(self._reply, word, self._loop.now() - self._came)
            if self._parked:
                self._loop.parked(-1)
            self._loop.finished(self._reply, word)
            if self.on_end is not None:
                self.on_end()


OnDelivery = Callable[[Delivery], None]


class ConsumeLoop:
    """Keeps one durable consumer's pull window full. `await start()`, later `await stop()`."""

    def __init__(
        self,
        connection: Connection,
        stream: str,
        consumer: str,
        on_delivery: OnDelivery,
        *,
        window: int = 256,
        wanted: bytes = b"",
    ) -> None:
        """Make a loop.

        Args:
            connection: where to pull from.
            stream: the stream's name.
            consumer: the durable consumer's name; provisioning made it.
            on_delivery: called for each message from the read loop; it ends the delivery now or later.
            window: most messages that are asked for or being handled at once.
            wanted: a header; what comes without it is acked unread.
        """
        self.connection = connection
        self.consumer = consumer
        self.stream = stream
        self.window = window
        self.handling = 0
        self.received = 0
        self.waiting = 0
        self.first = f"$JS.ACK.{stream}.{consumer}.1.".encode()
        self.gone = False
        self._wanted = wanted
        self.watch: DeliveryWatch | None = None
        self._asked = 0
        self._asked_at = 0.0
        self._oversized = False
        self._on_delivery = on_delivery
        self._next = f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer}"
        self._inbox = connection.new_inbox()
        self._subscription: Subscription | None = None
        self._checker: asyncio.Task[None] | None = None
        self._stopping = False
        self._idle = asyncio.Event()
        self._idle.set()
        self.heard = 0.0
        self.epoch = 0
        self._server = ""
        self._loop = asyncio.get_running_loop()
        self.now = self._loop.time

    async def start(self) -> None:
        """Subscribe and ask for the first window."""
        self.connection.on_disconnect(self._void)
        self.connection.on_reconnect(self._resume)
        self._subscription = await self.connection.listen(f"{self._inbox}.*", self._on_message)
        self._ask_anew()
        self._checker = asyncio.create_task(self._check(), name=f"turngate-pull-{self.consumer}")

    async def stop(self, timeout_ms: int = 10_000) -> bool:
        """Take no more, wait for what is being handled, and say whether all of it was ended in time."""
        await self.halt()
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await self._idle.wait()
        except TimeoutError:
            log.warning("%s: %d messages were still being handled when it stopped", self.consumer, self.handling)
        return self.handling == 0

    async def halt(self) -> None:
        """Take no more: what is handed back from here on goes to another process."""
        self._stopping = True
        self.connection.forget(self._void)
        self.connection.forget(self._resume)
        if self._checker is not None:
            self._checker.cancel()
            await asyncio.gather(self._checker, return_exceptions=True)
        subscription, self._subscription = self._subscription, None
        if subscription is not None:
            await self.connection.unlisten(subscription)

    def resize(self, window: int) -> None:
        """Ask for and handle at most so many messages from now on; what was asked for already may still come."""
        self.window = window
        self._ask()

    def tell(self, reply: bytes, word: bytes) -> None:
        """Send an acknowledgement; when the connection is down it is lost, and the message comes again."""
        try:
            self.connection.acknowledge(reply, word)
        except NotConnected:
            log.debug("%s: an acknowledgement was not sent, the message comes again", self.consumer)

    def finished(self, reply: bytes, word: bytes) -> None:
        """End a delivery, with a word or without, and ask for more when half of the window is free."""
        if word:
            self.tell(reply, word)
        self.handling -= 1
        if self.handling == 0:
            self._idle.set()
        self._ask_when_half_is_free()

    def parked(self, change: int) -> bool:
        """Count one more or one less that leaves its place to others, and say whether it may; only deliveries call it.

        There are few windows full of them: a process holds what it is given in memory.
        """
        if change > 0 and self.waiting >= MOST_PARKED * self.window:
            return False
        self.waiting += change
        if change > 0:
            self._ask_when_half_is_free()
        return True

    def _on_message(self, subject: bytes, reply: bytes, body: bytes, head: bytes) -> None:
        self.heard = self._loop.time()
        if not reply.startswith(b"$JS.ACK."):
            self._on_status(subject, head)
            return
        if self._asked:
            self._asked -= 1
        self.received += 1
        if self.gone:
            self._found()
        if self._wanted not in head:
            self._pass(reply)
            return
        if self.handling == 0:
            self._idle.clear()
        self.handling += 1
        delivery = Delivery(self, subject, reply, body, head)
        if self._stopping:
            delivery.nak(0)
            return
        try:
            self._on_delivery(delivery)
        except Exception:  # a handler's mistake must cost one message a delay, not the loop its life
            log.exception("%s: handling message %d failed", self.consumer, delivery.sequence)
            delivery.nak(FAILED_MS)

    def _pass(self, reply: bytes) -> None:
        if self.watch is not None:
            self.watch.ended(reply, b"+ACK", 0.0)
        self.tell(reply, b"+ACK")
        self._ask_when_half_is_free()

    def _on_status(self, subject: bytes, head: bytes) -> None:
        status, fields = parse_headers(head)
        if status == 100:
            if self.gone:
                self._found()
            return
        batch = int(subject[subject.rindex(b".") + 1 :])
        left = fields.get("Nats-Pending-Messages", "")
        undelivered = int(left) if left.isdecimal() else batch
        self._asked = max(0, self._asked - undelivered)
        text = head.partition(b"\r\n")[0].decode("utf-8", "replace")
        if status == 503 or "Deleted" in text:
            self._asked = 0
            if not self.gone:
                log.error("%s: the consumer is gone from %s; waiting for it", self.consumer, self.stream)
            self.gone = True
        elif (status == 408 and left) or undelivered < batch:
            self._ask_when_half_is_free()
        else:
            # Nothing came of it: asking again at once could go on for ever, so the checker does.
            self._oversized = "MaxBytes" in text
            log.warning("%s: a pull from %s ended with %s", self.consumer, self.stream, text)

    def _found(self) -> None:
        log.info("%s: the consumer is there again", self.consumer)
        self.gone = False

    def _ask_when_half_is_free(self) -> None:
        if (self._asked + self.handling - self.waiting) * 2 <= self.window:
            self._ask()

    def _ask(self) -> None:
        count = self.window - self._asked - (self.handling - self.waiting)
        if self._stopping or count <= 0:
            return
        largest = 0 if self._oversized else max(PULL_BYTES, self.connection.max_payload + _ENVELOPE)
        try:
            self.connection.send(self._next, _pull_request(count, largest), f"{self._inbox}.{count}")
        except NotConnected:
            return  # asked anew on reconnect
        self._asked += count
        self._asked_at = self._loop.time()
        self._oversized = False

    def _ask_anew(self) -> None:
        self._void()
        self._resume()

    def _void(self) -> None:
        self._asked = 0

    def _resume(self) -> None:
        self.heard = self._loop.time()
        server = self.connection.server_id
        if server != self._server:
            self._server = server
            self.epoch += 1
        self._ask()

    async def _check(self) -> None:
        while True:
            since = self._loop.time()
            await asyncio.sleep(CHECK_MS / 1000)
            now = self._loop.time()
            if (now - since) * 1000 > 2 * CHECK_MS:
                continue  # we were stopped or blocked: what came in the meantime is read first
            if not self.connection.is_connected:
                continue
            if self._asked == 0:
                self._ask()
                continue
            if self.gone:
                self._found()  # the last pull was not refused
            silent_ms = (now - self.heard) * 1000
            ended_ms = (now - self._asked_at) * 1000 - EXPIRES_MS
            if silent_ms > 2 * HEARTBEAT_MS + CHECK_MS or ended_ms > HEARTBEAT_MS:
                self._ask_anew()


def _place(reply: bytes) -> list[bytes]:
    """Return from its acknowledgement subject how often a message was delivered, its sequences, and when it was stored.

    The sequences are the stream's and the consumer's.
    """
    parts = reply.split(b".")
    # $JS.ACK.stream.consumer.deliveries.sequence.…; the longer form has a domain and an account before the stream.
    return parts[4:8] if len(parts) == 9 else parts[6:10]


def _pull_request(count: int, max_bytes: int) -> bytes:
    request: dict[str, Any] = {
        "batch": count,
        "expires": EXPIRES_MS * 1_000_000,
        "idle_heartbeat": HEARTBEAT_MS * 1_000_000,
    }
    if max_bytes:
        request["max_bytes"] = max_bytes
    return msgspec.json.encode(request)
