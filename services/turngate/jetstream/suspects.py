"""Messages that may kill their process: handled one at a time, noted before and after, buried when they did it again.

A message that was delivered several times may have killed its process, or was only in hand when another one did. So it
is handled alone, and before it is touched a note says so, which is taken back however its handling ends. Notes that
were never taken back are kills. They are kept in memory, by what the message is, so that copies of it share one count;
a server that restarts forgets them, which costs some more kills.
"""

import asyncio
import logging
from collections import deque
from hashlib import sha256
from typing import Final

from turngate.jetstream.consume import Delivery, OnDelivery
from turngate.jetstream.deadletter import DeadLetters
from turngate.jetstream.request import PubAck, Reply
from turngate_contracts.dead import FoundBy
from turngate_contracts.errors import ErrorBody, ErrorCode
from turngate_contracts.topology import TIMER_ACK_WAIT_MS

log = logging.getLogger(__name__)

TRUSTED: Final = 3
"""Up to which delivery a message is handled beside others."""
TRUSTED_STATES: Final = 10
"""Likewise for states, which come again for as long as what they want can't be done."""
KILLS: Final = 3
"""How many processes it may end while it is handled alone."""
RETRY_MS: Final = 1_000
ALONE_S: Final = 2.0
"""How long a message has its process for itself: what kills does so at once, what is slow must not hold up others."""
TICK_S: Final = TIMER_ACK_WAIT_MS / 1000 / 3
"""How often the server is told that those that wait still do."""


class Suspects:
    """What stands between a consume loop and its handler."""

    def __init__(self, dead: DeadLetters, stream: str, on_delivery: OnDelivery, *, trusted: int = TRUSTED) -> None:
        """Make it.

        Args:
            dead: where killers go.
            stream: the stream that is consumed.
            on_delivery: handles a message.
            trusted: up to which delivery a message is handled beside others.
        """
        self.killers = 0
        self._requester = dead.requester
        self._subjects = dead.subjects
        self._dead = dead
        self._stream = stream
        self._handle = on_delivery
        self._get = f"$JS.API.DIRECT.GET.{dead.subjects.stream('suspects')}."
        self._waiting: deque[Delivery] = deque()
        self._trusted = trusted
        self._alone: Delivery | None = None
        self._ticking = False
        self._loop = asyncio.get_running_loop()

    def on_delivery(self, delivery: Delivery) -> None:
        """Hand a message to its handler, or have it wait until it can be handled alone."""
        if delivery.is_first or delivery.deliveries <= self._trusted:
            self._handle(delivery)
            return
        self._waiting.append(delivery)
        self._next()
        if self._waiting and not self._ticking:
            self._ticking = True
            self._loop.call_later(TICK_S, self._tick)

    def _tick(self) -> None:
        self._ticking = bool(self._waiting)
        for delivery in self._waiting:
            delivery.in_progress()
        if self._ticking:
            self._loop.call_later(TICK_S, self._tick)

    def _next(self) -> None:
        if self._alone is not None or not self._waiting:
            return
        self._alone = delivery = self._waiting.popleft()
        self._loop.call_later(ALONE_S, self._end, delivery)
        subject = self._subjects.suspect(sha256(delivery.subject.encode() + b"\n" + delivery.body).hexdigest()[:32])

        def on_note(reply: Reply | Exception) -> None:
            kills = _kills(reply)
            if kills is None:
                log.warning("it is not known whether message %d kills its process: %s", delivery.sequence, reply)
                self._end(delivery)
                delivery.nak(RETRY_MS)
            elif kills >= KILLS:
                self._end(delivery)
                self._bury(delivery, kills)
            else:
                self._note(delivery, subject, kills)

        self._requester.request_nowait(self._get + subject, b"", on_note)

    def _note(self, delivery: Delivery, subject: str, kills: int) -> None:
        def on_ack(ack: PubAck | Exception) -> None:
            if isinstance(ack, Exception):
                log.warning("that message %d is handled alone could not be noted: %s", delivery.sequence, ack)
                self._end(delivery)
                delivery.nak(RETRY_MS)
                return
            delivery.on_end = taken_back
            try:
                self._handle(delivery)
            except Exception:  # a handler's mistake must cost one message a delay, not the others their turn
                log.exception("handling message %d of %s failed", delivery.sequence, self._stream)
                delivery.nak(RETRY_MS)

        def taken_back() -> None:
            # The next one waits for this: a process that dies meanwhile must not be held against this message.
            self._requester.publish_nowait(subject, b"%d" % kills, lambda _ack: self._end(delivery))

        self._requester.publish_nowait(subject, b"%d" % (kills + 1), on_ack)

    def _bury(self, delivery: Delivery, kills: int) -> None:
        self.killers += 1
        often = delivery.deliveries
        reason = ErrorBody(
            ErrorCode.PROCESS_KILLED,
            f"{kills} processes ended while they handled it alone, at its delivery {often}; their logs may say why",
            {"kills": kills, "deliveries": often},
        )
        self._dead.bury(delivery, self._stream, reason, FoundBy.LOOP)

    def _end(self, delivery: Delivery) -> None:
        if self._alone is delivery:
            self._alone = None
            self._next()


def _kills(reply: Reply | Exception) -> int | None:
    """Return how many notes of a message were never taken back; None when that is not known."""
    if isinstance(reply, Exception):
        return None
    status, _ = reply.headers()
    if status == 404:
        return 0
    return int(reply.body) if not status and reply.body.isdigit() else None
