"""One intake message: decode, decide, save, tell, ack.

The story of a message reads top to bottom: `on_delivery` decodes it and checks that it says who its subject says it is;
`decide` asks the gate; the lanes save the new state; `done` nudges the runner and acks. A message that can't be decoded
is told to its runner's mailbox and goes to the dead letters; one that can't be saved for now comes again.
"""

import logging
from functools import lru_cache
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from turngate.clock import Clock
from turngate.jetstream.consume import Delivery
from turngate.jetstream.deadletter import DeadLetters
from turngate.jetstream.keyed import Lanes, Save
from turngate.jetstream.mailbox import Mailboxes
from turngate.jetstream.store import Event
from turngate.tracing import Span, is_traced, trace_parent_of
from turngate.validation.metrics import Counters
from turngate.validation.submitted import read_submitted
from turngate.validation.verdicts import ending_of, refusal_of, verdict_of
from turngate_contracts import codec
from turngate_contracts.errors import (
    ErrorBody,
    ErrorCode,
    IdentityMismatch,
    InvalidMessage,
    Overloaded,
    PayloadTooLarge,
    TurngateError,
    Unavailable,
    shown,
)
from turngate_contracts.ids import check_id
from turngate_contracts.messages import Refusal, ReportSubmitted, TurnEnded
from turngate_contracts.subjects import pool_sender_session
from turngate_contracts.topology import MAX_DELIVER
from turngate_protocol.report.answering import wants_something
from turngate_protocol.report.lookup import Refused
from turngate_protocol.report.model import Report
from turngate_protocol.report.session import SessionTurns
from turngate_protocol.report.turn import (
    MAX_NUMBER,
    Attempt,
    Ended,
    GateRules,
    Judged,
    TurnEnd,
    content_digest,
    end,
    submit,
)

log = logging.getLogger(__name__)

RETRY_MS: Final = (100, 250, 500, 1_000, 2_000, 5_000)
_NOTHING: Final = ErrorBody(ErrorCode.INTERNAL, "")


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
        pool, runner, session = pool_sender_session(delivery.subject)
        message: ReportSubmitted | TurnEnded | None = None
        try:
            if delivery.subject.split(".", 3)[2] == "report":
                message, data, report = read_submitted(delivery.body)
                _check_sender(message, pool, runner, session)
                # What has to wait holds no more than its message.
                plain = report if self.lanes.is_free(session) else None
                work: _ReportWork | _EndingWork = _ReportWork(self, delivery, runner, _attempt(message, data), plain)
            else:
                message = codec.decode(delivery.body, TurnEnded, "a TurnEnded")
                _check_sender(message, pool, runner, session)
                work = _EndingWork(self, delivery, runner, _turn_end(message))
        except TurngateError as error:
            self.refuse(delivery, runner, _undecoded(message, session, error.body()))
            self.dead.bury(delivery, self.stream, error.body())
            return
        self.lanes.submit(work, delivery.park)

    def refuse(self, delivery: Delivery, runner: str, refusal: Refusal) -> None:
        """Tell a runner that its message was not taken, and why."""
        self.counters.refused[refusal.error.code.value] += 1
        told = replace(refusal, stream=self.stream, sequence=delivery.sequence)
        self.mailboxes.nudge(runner, "refused", told)

    def retry(self, delivery: Delivery, error: Exception, runner: str, about: Refusal) -> None:
        """Have a message again later; give it up, and say so, when no retry can help or enough were made."""
        tries = delivery.deliveries
        final = isinstance(error, PayloadTooLarge)
        if final or (tries >= MAX_DELIVER and not isinstance(error, (Unavailable, Overloaded))):
            body = error.body() if isinstance(error, TurngateError) else InvalidMessage(type(error).__name__).body()
            self.refuse(delivery, runner, replace(about, error=body))
            self.dead.bury(delivery, self.stream, body)
            return
        delay = RETRY_MS[min(tries, len(RETRY_MS)) - 1]
        facts = {"stream": self.stream, "sequence": delivery.sequence, "runner": runner}
        facts |= {"session": about.session, "turn": about.turn}
        text = "message %d is not decided yet (again in %d ms): %s"
        log.warning(text, delivery.sequence, delay, error, extra={"facts": facts})
        delivery.nak(delay)


class _Work:
    """A message on its way through the lanes."""

    __slots__ = ("delivery", "intake", "key", "likely_new", "runner", "span")

    def __init__(self, intake: Intake, delivery: Delivery, runner: str, session: str, *, likely_new: bool) -> None:
        self.key = session
        self.likely_new = likely_new
        self.intake = intake
        self.delivery = delivery
        self.runner = runner
        self.span: Span | None = None
        if is_traced(delivery.head):
            parent = trace_parent_of(delivery.head)
            self.span = Span("turngate.validate", parent, "consumer", session=session, runner=runner)

    def told(self, state: SessionTurns | None) -> None:
        """Tell the outcome to the runner, and count it."""
        raise NotImplementedError

    def done(self, state: SessionTurns | None, _revision: int) -> None:
        if self.span is None:
            self.told(state)
        else:
            with self.span:
                self.told(state)
        self.delivery.ack()

    def about(self) -> Refusal:
        """Return a refusal that says which message it is for."""
        raise NotImplementedError

    def refused(self, refused: Refused) -> None:
        self.intake.refuse(self.delivery, self.runner, replace(self.about(), error=refusal_of(refused)))

    def failed(self, error: Exception) -> None:
        self.intake.retry(self.delivery, error, self.runner, self.about())
        if self.span is not None:
            self.span.end(error)


class _ReportWork(_Work):
    """An attempt to report."""

    __slots__ = ("_attempt", "_plain", "_result")

    def __init__(self, intake: Intake, delivery: Delivery, runner: str, attempt: Attempt, plain: Report | None) -> None:
        first = attempt.turn == 1 and attempt.attempt == 1
        super().__init__(intake, delivery, runner, attempt.session, likely_new=first)
        self._attempt = attempt
        self._plain = plain
        self._result: Judged | Refused | None = None

    def decide(self, state: SessionTurns | None) -> Save[SessionTurns] | None:
        # Judged once, as a rule: a report that is kept until its verdict is stored costs memory and time.
        plain, self._plain = self._plain, None
        self._result = result = submit(state, self._attempt, self.intake.rules, self.intake.clock(), plain)
        return _save(result, self.span)

    def told(self, state: SessionTurns | None) -> None:
        counters, attempt, result = self.intake.counters, self._attempt, self._result
        if isinstance(result, Judged) and state is not None:
            verdict = verdict_of(state, attempt.turn, result.verdict, attempt.report)
            if result.state is not None:
                counters.count_verdict(verdict)
            else:
                counters.repeats += 1
            self.intake.mailboxes.nudge(self.runner, "verdict", verdict)
        elif isinstance(result, Refused):
            self.refused(result)

    def about(self) -> Refusal:
        attempt = self._attempt
        return Refusal("", 0, _NOTHING, attempt.session, attempt.turn, attempt.attempt, digest=content_digest(attempt))


class _EndingWork(_Work):
    """An ending of a turn."""

    __slots__ = ("_ended", "_result")

    def __init__(self, intake: Intake, delivery: Delivery, runner: str, ended: TurnEnd) -> None:
        super().__init__(intake, delivery, runner, ended.session, likely_new=False)
        self._ended = ended
        self._result: Ended | Refused | None = None

    def decide(self, state: SessionTurns | None) -> Save[SessionTurns] | None:
        self._result = result = end(state, self._ended, self.intake.rules, self.intake.clock())
        return _save(result, self.span)

    def told(self, state: SessionTurns | None) -> None:
        ended, result = self._ended, self._result
        if isinstance(result, Ended) and state is not None:
            self.intake.counters.endings[result.ending.outcome.value] += result.state is not None
            self.intake.mailboxes.nudge(self.runner, "ending", ending_of(state, ended.turn, result.ending))
        elif isinstance(result, Refused):
            self.refused(result)

    def about(self) -> Refusal:
        return Refusal("", 0, _NOTHING, self._ended.session, self._ended.turn, ending=self._ended.ending)


def _undecoded(message: ReportSubmitted | TurnEnded | None, session: str, error: ErrorBody) -> Refusal:
    if isinstance(message, ReportSubmitted):
        return Refusal("", 0, error, session, _small(message.turn), _small(message.attempt))
    if isinstance(message, TurnEnded):
        return Refusal("", 0, error, session, _small(message.turn), ending=_small(message.ending))
    return Refusal("", 0, error, session)


def _save(result: Judged | Ended | Refused, span: Span | None) -> Save[SessionTurns] | None:
    if isinstance(result, Refused) or result.state is None:
        return None
    state = result.state
    trace = "" if span is None else span.trace_parent
    return Save(state, Event(state.cause.type, state.cause.at, wants_something(state), trace))


def _attempt(message: ReportSubmitted, data: bytes | memoryview | None) -> Attempt:
    return Attempt(
        message.session,
        message.pool,
        message.runner,
        _number("turn", message.turn),
        _number("attempt", message.attempt),
        data,
        message.mutated,
        message.used_tools,
    )


def _turn_end(message: TurnEnded) -> TurnEnd:
    return TurnEnd(
        message.session,
        message.pool,
        message.runner,
        _number("turn", message.turn),
        _number("ending", message.ending),
        message.mutated,
        message.used_tools,
    )


def _check_sender(message: ReportSubmitted | TurnEnded, pool: str, runner: str, session: str) -> None:
    _check_names(pool, runner)
    check_id("session", session)
    if message.pool != pool:
        raise IdentityMismatch("pool", message.pool, pool)
    if message.runner != runner:
        raise IdentityMismatch("runner", message.runner, runner)
    if message.session != session:
        raise IdentityMismatch("session", message.session, session)


@lru_cache(maxsize=4_096)  # few runners send all that comes
def _check_names(pool: str, runner: str) -> None:
    check_id("pool", pool)
    check_id("runner", runner)


def _number(field: str, value: int) -> int:
    if not 1 <= value <= MAX_NUMBER:
        raise InvalidMessage(f"{field} {shown(value)} must be a number from 1 to {MAX_NUMBER}", field=field)
    return value


def _small(value: int) -> int:
    return value if 0 <= value <= MAX_NUMBER else 0
