"""One intake message: decode, decide, save, tell, ack.

The story of a message reads top to bottom: `on_delivery` decodes it and checks that it says who its subject says it is;
`decide` asks the gate; the lanes save the new state; `done` nudges the runner and acks. A message that can't be decoded
is told to its runner's mailbox and goes to the dead letters; one that can't be saved for now comes again.
"""

import logging
import re
from typing import Final

from msgspec import Struct

from turngate.clock import Clock
from turngate.jetstream.consume import Delivery
from turngate.jetstream.deadletter import DeadLetters
from turngate.jetstream.keyed import Lanes, Save
from turngate.jetstream.mailbox import Mailboxes
from turngate.jetstream.store import Event
from turngate.validation.metrics import Counters
from turngate.validation.verdicts import ending_of, refusal_of, verdict_of
from turngate_contracts import codec
from turngate_contracts.errors import ErrorBody, IdentityMismatch, InvalidMessage, TurngateError, Unavailable, shown
from turngate_contracts.headers import TRACE_PARENT
from turngate_contracts.ids import check_id
from turngate_contracts.messages import Refusal, ReportSubmitted, TurnEnded, report_bytes
from turngate_contracts.subjects import sender_and_session
from turngate_contracts.topology import MAX_DELIVER
from turngate_protocol.report.answering import wants_something
from turngate_protocol.report.session import SessionTurns
from turngate_protocol.report.turn import MAX_NUMBER, Attempt, Ended, GateRules, Judged, Refused, TurnEnd, end, submit

log = logging.getLogger(__name__)

RETRY_MS: Final = (100, 250, 500, 1_000, 2_000, 5_000)
_TRACE: Final = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")


class Intake(Struct, frozen=True):
    """What handling an intake message needs."""

    stream: str
    lanes: Lanes[SessionTurns]
    mailboxes: Mailboxes
    dead: DeadLetters
    rules: GateRules
    clock: Clock
    counters: Counters

    def on_delivery(self, delivery: Delivery) -> None:
        """Take one message of the intake stream; it is ended now or once its outcome is stored."""
        runner, session = sender_and_session(delivery.subject)
        message: ReportSubmitted | TurnEnded | None = None
        try:
            if delivery.subject.split(".", 3)[2] == "report":
                message = codec.decode(delivery.body, ReportSubmitted, "a ReportSubmitted")
                work: _ReportWork | _EndingWork = _ReportWork(
                    self, delivery, runner, _attempt(message, runner, session)
                )
            else:
                message = codec.decode(delivery.body, TurnEnded, "a TurnEnded")
                work = _EndingWork(self, delivery, runner, _turn_end(message, runner, session))
        except TurngateError as error:
            self.refuse(delivery, runner, session, message, error.body())
            self.dead.bury(delivery, self.stream, error.body())
            return
        self.lanes.submit(work)

    def refuse(
        self,
        delivery: Delivery,
        runner: str,
        session: str,
        message: ReportSubmitted | TurnEnded | None,
        error: ErrorBody,
    ) -> None:
        """Tell a runner that its message was not taken, and why."""
        self.counters.refused[error.code.value] += 1
        turn = _small(message.turn) if message is not None else 0
        attempt = _small(message.attempt) if isinstance(message, ReportSubmitted) else 0
        ending = _small(message.ending) if isinstance(message, TurnEnded) else 0
        refusal = Refusal(self.stream, delivery.sequence, error, session, turn, attempt, ending)
        self.mailboxes.nudge(runner, "refused", refusal)

    def retry(self, delivery: Delivery, error: Exception) -> None:
        """Have a message again later, or give it up when it was tried as often as the consumer allows."""
        tries = delivery.deliveries
        if tries >= MAX_DELIVER and not isinstance(error, Unavailable):
            reason = error.body() if isinstance(error, TurngateError) else InvalidMessage(type(error).__name__).body()
            self.dead.bury(delivery, self.stream, reason)
            return
        delay = RETRY_MS[min(tries, len(RETRY_MS)) - 1]
        log.warning("message %d is not decided yet (again in %d ms): %s", delivery.sequence, delay, error)
        delivery.nak(delay)


class _ReportWork:
    """An attempt to report on its way through the lanes."""

    __slots__ = ("_attempt", "_delivery", "_intake", "_result", "_runner", "key", "likely_new")

    def __init__(self, intake: Intake, delivery: Delivery, runner: str, attempt: Attempt) -> None:
        self.key = attempt.session
        self.likely_new = attempt.turn == 1 and attempt.attempt == 1
        self._intake = intake
        self._delivery = delivery
        self._runner = runner
        self._attempt = attempt
        self._result: Judged | Refused | None = None

    def decide(self, state: SessionTurns | None) -> Save[SessionTurns] | None:
        intake = self._intake
        self._result = result = submit(state, self._attempt, intake.rules, intake.clock())
        return _save(result, self._delivery)

    def done(self, state: SessionTurns | None, _revision: int) -> None:
        intake, attempt, result = self._intake, self._attempt, self._result
        if isinstance(result, Judged) and state is not None:
            verdict = verdict_of(state, attempt.turn, result.verdict, attempt.report)
            if result.state is not None:
                intake.counters.count_verdict(verdict)
            else:
                intake.counters.repeats += 1
            intake.mailboxes.nudge(self._runner, "verdict", verdict)
        elif isinstance(result, Refused):
            error = refusal_of(result)
            intake.counters.refused[error.code.value] += 1
            refusal = Refusal(
                intake.stream, self._delivery.sequence, error, attempt.session, attempt.turn, attempt.attempt
            )
            intake.mailboxes.nudge(self._runner, "refused", refusal)
        self._delivery.ack()

    def failed(self, error: Exception) -> None:
        self._intake.retry(self._delivery, error)


class _EndingWork:
    """An ending of a turn on its way through the lanes."""

    __slots__ = ("_delivery", "_ended", "_intake", "_result", "_runner", "key", "likely_new")

    def __init__(self, intake: Intake, delivery: Delivery, runner: str, ended: TurnEnd) -> None:
        self.key = ended.session
        self.likely_new = False
        self._intake = intake
        self._delivery = delivery
        self._runner = runner
        self._ended = ended
        self._result: Ended | Refused | None = None

    def decide(self, state: SessionTurns | None) -> Save[SessionTurns] | None:
        intake = self._intake
        self._result = result = end(state, self._ended, intake.rules, intake.clock())
        return _save(result, self._delivery)

    def done(self, state: SessionTurns | None, _revision: int) -> None:
        intake, ended, result = self._intake, self._ended, self._result
        if isinstance(result, Ended) and state is not None:
            intake.counters.endings[result.ending.outcome.value] += result.state is not None
            intake.mailboxes.nudge(self._runner, "ending", ending_of(state, ended.turn, result.ending))
        elif isinstance(result, Refused):
            error = refusal_of(result)
            intake.counters.refused[error.code.value] += 1
            refusal = Refusal(
                intake.stream, self._delivery.sequence, error, ended.session, ended.turn, ending=ended.ending
            )
            intake.mailboxes.nudge(self._runner, "refused", refusal)
        self._delivery.ack()

    def failed(self, error: Exception) -> None:
        self._intake.retry(self._delivery, error)


def _save(result: Judged | Ended | Refused, delivery: Delivery) -> Save[SessionTurns] | None:
    if isinstance(result, Refused) or result.state is None:
        return None
    state = result.state
    trace = ""
    if b"traceparent" in delivery.head:
        given = delivery.headers().get(TRACE_PARENT, "")
        trace = given if _TRACE.fullmatch(given) else ""
    return Save(state, Event(state.cause.type, state.cause.at, wants_something(state), trace))


def _attempt(message: ReportSubmitted, runner: str, session: str) -> Attempt:
    _check_sender(message, runner, session)
    return Attempt(
        session,
        check_id("pool", message.pool),
        runner,
        _number("turn", message.turn),
        _number("attempt", message.attempt),
        report_bytes(message),
        message.mutated,
        message.used_tools,
    )


def _turn_end(message: TurnEnded, runner: str, session: str) -> TurnEnd:
    _check_sender(message, runner, session)
    return TurnEnd(
        session,
        check_id("pool", message.pool),
        runner,
        _number("turn", message.turn),
        _number("ending", message.ending),
        message.mutated,
        message.used_tools,
    )


def _check_sender(message: ReportSubmitted | TurnEnded, runner: str, session: str) -> None:
    check_id("runner", runner)
    check_id("session", session)
    if message.runner != runner:
        raise IdentityMismatch("runner", message.runner, runner)
    if message.session != session:
        raise IdentityMismatch("session", message.session, session)


def _number(field: str, value: int) -> int:
    if not 1 <= value <= MAX_NUMBER:
        raise InvalidMessage(f"{field} {shown(value)} must be a number from 1 to {MAX_NUMBER}", field=field)
    return value


def _small(value: int) -> int:
    return value if 0 <= value <= MAX_NUMBER else 0
