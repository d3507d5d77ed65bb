"""One timer that is due: decode, let the question's policy decide, ack.

The timer decides nothing by itself. It names one question and the time that question had when the timer was set; only
the state says whether that question still waits. A timer that fires twice, late, beside its cancellation or for a
question that a person has decided is therefore acknowledged and forgotten. Where the clock of this process is behind
the server's, the timer comes again.
"""

import asyncio
import logging
from typing import Final

from turngate.jetstream.consume import Delivery
from turngate.jetstream.deadletter import DeadLetters
from turngate.validation.questions.lane import QuestionLane
from turngate_contracts import codec
from turngate_contracts.errors import TurngateError
from turngate_contracts.ids import check_id
from turngate_contracts.questions import QuestionDue
from turngate_protocol.question.asked import Step, expire
from turngate_protocol.question.errors import Refusal, RefusalKind
from turngate_protocol.question.session import SessionQuestions

log = logging.getLogger(__name__)

RETRY_MS: Final = (100, 250, 500, 1_000, 2_000, 5_000)
AGAIN_MS: Final = (50, 5_000)
"""The least and the most to wait for a clock that is behind: it may be an hour, and may be set right meanwhile."""


class Expiry:
    """Takes the timers of questions."""

    def __init__(self, stream: str, lane: QuestionLane, dead: DeadLetters) -> None:
        self._stream = stream
        self._lane = lane
        self._dead = dead
        self._tasks: set[asyncio.Task[None]] = set()

    def on_delivery(self, delivery: Delivery) -> None:
        """Take one timer that is due; it is ended now or once what follows is stored."""
        try:
            due = codec.decode(delivery.body, QuestionDue, "a QuestionDue")
            check_id("session", due.session)
        except TurngateError as error:
            self._dead.bury(delivery, self._stream, error.body())
            return
        task = asyncio.create_task(self._expire(delivery, due))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _expire(self, delivery: Delivery, due: QuestionDue) -> None:
        def command(state: SessionQuestions | None, now: int) -> Step | Refusal:
            return expire(state, due.request_id, due.schema_digest, now)

        try:
            decided = await self._lane.decide(due.session, command)
        except Exception as error:  # noqa: BLE001  whatever it is: the timer is kept until its question is decided
            delay = RETRY_MS[min(delivery.deliveries, len(RETRY_MS)) - 1]
            log.warning("the question %s is not expired yet (again in %d ms): %s", due.request_id, delay, error)
            delivery.nak(delay)
            return
        left_ms = _left(decided.result, due, self._lane.clock())
        if left_ms > 0:
            delivery.nak(max(AGAIN_MS[0], min(left_ms, AGAIN_MS[1])))
        else:
            delivery.ack()


def _left(result: Step | Refusal, due: QuestionDue, now: int) -> int:
    """Return for how many ms this very question has yet to wait by our clock; 0 when the timer has done its work."""
    if isinstance(result, Step) or result.kind is not RefusalKind.NOT_DUE:
        return 0
    # A question of the same name that expires at another time has a timer of its own.
    return max(1, due.expires_at - now) if result.details.get("expires_at") == due.expires_at else 0
