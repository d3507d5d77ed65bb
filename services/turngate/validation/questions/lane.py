"""One command about a session's questions: decide, save, tell the runner.

Requests and timers both come through here, so that a decision is made and told in one way. Killed before the save,
whoever sent the command sends it again; killed after it, the repeat finds the outcome in the state. The nudge to the
runner is speed: one that is lost is asked for.
"""

from collections.abc import Callable
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from turngate.clock import Clock
from turngate.jetstream.awaited import apply
from turngate.jetstream.keyed import Lanes, Save
from turngate.jetstream.mailbox import Mailboxes
from turngate.jetstream.store import Event
from turngate.validation.metrics import Counters
from turngate_contracts.errors import ErrorBody, ErrorCode
from turngate_contracts.questions import QuestionOutcome
from turngate_protocol.question.asked import Step
from turngate_protocol.question.effects import wants_something
from turngate_protocol.question.errors import Refusal
from turngate_protocol.question.session import Outcome, SessionQuestions

Command = Callable[[SessionQuestions | None, int], Step | Refusal]
"""A transition of the question protocol, given the newest state and the time."""

MAIL: Final = "outcome"
"""The kind of mail that tells a runner of an outcome."""


class Decided(Struct, frozen=True):
    """What a command came to, and the state in which it did."""

    result: Step | Refusal
    state: SessionQuestions | None


class QuestionLane(Struct, frozen=True):
    """What deciding about questions needs."""

    lanes: Lanes[SessionQuestions]
    mailboxes: Mailboxes
    clock: Clock
    counters: Counters

    async def decide(self, session: str, command: Command) -> Decided:
        """Apply a command to a session's questions and return what it came to, once that is stored.

        Raises:
            Unavailable: it may be stored or not; the same command again finds out.
        """
        decided: Decided | None = None

        def on_state(state: SessionQuestions | None) -> Save[SessionQuestions] | None:
            nonlocal decided
            result = command(state, self.clock())
            decided = Decided(result, state)
            return save_of(result.state) if isinstance(result, Step) and result.changed else None

        await apply(self.lanes, session, on_state)
        if decided is None:
            raise RuntimeError("the lanes stored something that nobody decided")
        self._tell(session, decided.result)
        return decided

    def _tell(self, session: str, result: Step | Refusal) -> None:
        if isinstance(result, Refusal):
            self.counters.refused[result.kind.value] += 1
        elif result.changed and result.outcome is not None:
            self.counters.questions[result.outcome.kind.value] += 1
            self.mailboxes.nudge(result.outcome.runner, MAIL, outcome_of(session, result.outcome))
        elif result.changed:
            self.counters.questions["asked"] += 1


def save_of(state: SessionQuestions) -> Save[SessionQuestions]:
    """Return a new state with the event that it is."""
    return Save(state, Event(state.cause.type, state.cause.at, wants_something(state)))


def outcome_of(session: str, outcome: Outcome, *, repeated: bool = False) -> QuestionOutcome:
    """Return the wire form of an outcome; the runner that asked knows its request."""
    return QuestionOutcome(session, replace(outcome, request=None), repeated)


def error_of(refusal: Refusal) -> ErrorBody:
    """Return the wire form of a refusal of the question protocol."""
    return ErrorBody(ErrorCode(refusal.kind.value), refusal.message, dict(refusal.details))
