"""Durable timers: messages that the server delivers at their time, after any restart.

A timer is a message schedule: published to `timer.at.KIND.ID`, it arrives at `timer.due.KIND.ID` when it is due.
Setting it again replaces it, cancelling purges its subject. Whoever receives a due timer checks against the state
whether it still means anything, so that a timer which fires beside its cancellation changes nothing.
"""

from turngate.jetstream.request import Requester
from turngate.jetstream.store import rfc3339
from turngate_contracts import headers as h
from turngate_contracts.subjects import Subjects


class Timers:
    """The timers of one namespace."""

    def __init__(self, requester: Requester, subjects: Subjects) -> None:
        self._requester = requester
        self._subjects = subjects

    async def set(self, kind: str, timer: str, at: int, body: bytes = b"", schema: str = "") -> None:
        """Have a message arrive at the timer's due subject, replacing an earlier setting.

        Args:
            kind: the kind of timer, which has its consumer.
            timer: its id.
            at: when, in ms since the epoch; a time that has passed is now.
            body: what arrives.
            schema: `NAME.vN` of the body; the server keeps the header.

        Raises:
            Unavailable: it may be set or not; set it again.
        """
        when = rfc3339(at)
        block = h.block(
            {
                h.SCHEDULE: f"@at {when}",
                h.SCHEDULE_TARGET: self._subjects.timer_due(kind, timer),
                **({h.SCHEMA: schema} if schema else {}),
            },
        )
        await self._requester.publish(self._subjects.timer_at(kind, timer), body, block)

    async def cancel(self, kind: str, timer: str) -> None:
        """Remove a timer that has not fired; one that has is left alone.

        Raises:
            Unavailable: it may be removed or not; cancel it again.
        """
        stream = self._subjects.stream("timers")
        await self._requester.api(f"STREAM.PURGE.{stream}", {"filter": self._subjects.timer_at(kind, timer)})
