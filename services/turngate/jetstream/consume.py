"""The one consume loop of the system: it keeps a pull window full, and whoever handles a message acks it last.

Messages come by callback from the read loop. A pull is asked for again when half of the window is free, where free
means neither asked for nor in a handler's hands: that is the back-pressure. Statuses (404, 408, 409), missed
heartbeats and reconnects are answered by asking again. There is no fetch that could be cancelled: stopping sets a
flag, hands back what still arrives, and waits for what is being handled.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Final

import msgspec
from nats.aio.subscription import Subscription

from turngate.jetstream.connect import Connection, NotConnected, parse_headers

log = logging.getLogger(__name__)

EXPIRES_MS: Final = 30_000
HEARTBEAT_MS: Final = 5_000
CHECK_MS: Final = 1_000


class Delivery:
    """One delivered message. Exactly one of `ack`, `nak` and `term` ends it."""

    __slots__ = ("_loop", "_reply", "body", "head", "subject")

    def __init__(self, loop: "ConsumeLoop", subject: bytes, reply: bytes, body: bytes, head: bytes) -> None:
        self._loop = loop
        self._reply = reply
        self.subject = subject.decode()
        self.body = body
        self.head = head

    def headers(self) -> dict[str, str]:
        """Return the message's headers."""
        return parse_headers(self.head)[1]

    @property
    def sequence(self) -> int:
        """The message's sequence in its stream."""
        return int(self._reply.split(b".")[-4])

    @property
    def deliveries(self) -> int:
        """How often it has been delivered, this time included; not crash-durable."""
        return int(self._reply.split(b".")[-5])

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
        self._loop.tell(self._reply, b"+WPI")

    def _finish(self, word: bytes) -> None:
        self._loop.finished(self._reply, word)


OnDelivery = Callable[[Delivery], None]


class ConsumeLoop:
    """Keeps one durable consumer's pull window full. `await start()`, later `await stop()`."""

    def __init__(
        self, connection: Connection, stream: str, consumer: str, on_delivery: OnDelivery, *, window: int = 256
    ) -> None:
        """Make a loop.

        Args:
            connection: where to pull from.
            stream: the stream's name.
            consumer: the durable consumer's name; provisioning made it.
            on_delivery: called for each message from the read loop; it ends the delivery now or later.
            window: most messages that are asked for or being handled at once.
        """
        self.connection = connection
        self.consumer = consumer
        self.stream = stream
        self.window = window
        self.handling = 0
        self.received = 0
        self.gone = False
        self._asked = 0
        self._on_delivery = on_delivery
        self._next = f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer}"
        self._inbox = connection.new_inbox()
        self._subscription: Subscription | None = None
        self._checker: asyncio.Task[None] | None = None
        self._stopping = False
        self._idle = asyncio.Event()
        self._idle.set()
        self._heard = 0.0
        self._loop = asyncio.get_running_loop()

    async def start(self) -> None:
        """Subscribe and ask for the first window."""
        self._subscription = await self.connection.listen(f"{self._inbox}.*", self._on_message)
        self.connection.on_reconnect(self._ask_anew)
        self._ask_anew()
        self._checker = asyncio.create_task(self._check(), name=f"turngate-pull-{self.consumer}")

    async def stop(self, timeout_ms: int = 10_000) -> bool:
        """Take no more, wait for what is being handled, and say whether all of it was ended in time."""
        self._stopping = True
        if self._checker is not None:
            self._checker.cancel()
            await asyncio.gather(self._checker, return_exceptions=True)
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await self._idle.wait()
        except TimeoutError:
            log.warning("%s: %d messages were still being handled when it stopped", self.consumer, self.handling)
        if self._subscription is not None:
            await self.connection.unlisten(self._subscription)
        return self.handling == 0

    def tell(self, reply: bytes, word: bytes) -> None:
        """Send an acknowledgement; when the connection is down it is lost, and the message comes again."""
        try:
            self.connection.send(reply.decode(), word)
        except NotConnected:
            log.debug("%s: an acknowledgement was not sent, the message comes again", self.consumer)

    def finished(self, reply: bytes, word: bytes) -> None:
        """End a delivery and ask for more when half of the window is free."""
        self.tell(reply, word)
        self.handling -= 1
        if self.handling == 0:
            self._idle.set()
        if (self._asked + self.handling) * 2 <= self.window:
            self._ask()

    def _on_message(self, subject: bytes, reply: bytes, body: bytes, head: bytes) -> None:
        self._heard = self._loop.time()
        if not reply.startswith(b"$JS.ACK."):
            self._on_status(head)
            return
        self._asked = max(0, self._asked - 1)
        self.handling += 1
        self.received += 1
        self._idle.clear()
        self.gone = False
        delivery = Delivery(self, subject, reply, body, head)
        if self._stopping:
            delivery.nak(0)
            return
        try:
            self._on_delivery(delivery)
        except Exception:  # a handler's mistake must cost one message a delay, not the loop its life
            log.exception("%s: handling message %d failed", self.consumer, delivery.sequence)
            delivery.nak(1_000)

    def _on_status(self, head: bytes) -> None:
        status, fields = parse_headers(head)
        if status == 100:
            return
        # 404, 408 and 409 end one pull, and say how much of it was not delivered.
        undelivered = fields.get("Nats-Pending-Messages", "")
        self._asked = max(0, self._asked - int(undelivered)) if undelivered.isdigit() else 0
        text = head.partition(b"\r\n")[0]
        if status == 503 or b"Deleted" in text or b"No Responders" in text:
            if not self.gone:
                log.error("%s: the consumer is gone from %s; waiting for it", self.consumer, self.stream)
            self.gone = True
            self._asked = 0
            return  # the checker asks again, so that a missing consumer does not make us spin
        if status == 409 and b"Exceeded" in text:
            return
        if not self._stopping:
            self._ask()

    def _ask(self) -> None:
        count = self.window - self._asked - self.handling
        if self._stopping or count <= 0:
            return
        try:
            self.connection.send(self._next, _pull_request(count), f"{self._inbox}.p")
        except NotConnected:
            return  # asked anew on reconnect
        self._asked += count

    def _ask_anew(self) -> None:
        self._asked = 0
        self._heard = self._loop.time()
        self._ask()

    async def _check(self) -> None:
        while True:
            await asyncio.sleep(CHECK_MS / 1000)
            silent_ms = (self._loop.time() - self._heard) * 1000
            if self.connection.is_connected and (
                self.gone or self._asked == 0 or silent_ms > 2 * HEARTBEAT_MS + CHECK_MS
            ):
                self._ask_anew()


def _pull_request(count: int) -> bytes:
    request: dict[str, Any] = {
        "batch": count,
        "expires": EXPIRES_MS * 1_000_000,
        "idle_heartbeat": HEARTBEAT_MS * 1_000_000,
    }
    return msgspec.json.encode(request)
