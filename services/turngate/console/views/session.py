"""A session: the card of its turn, what was answered, what waits behind it, and how earlier turns went."""

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from turngate.console.views.card import Card, card
from turngate.console.views.texts import Chip, Fact, facts, many_lines, one_line, words
from turngate.console.views.times import Time, time
from turngate_contracts.messages import TurnFound
from turngate_protocol.report.session import (
    Answer,
    AttemptVerdict,
    Ending,
    EndingOutcome,
    Outcome,
    PastAttempt,
    PastTurn,
    Phase,
    Prompt,
    SessionTurns,
    Turn,
)
from turngate_protocol.report.texts import problems_of

_PHASE: Final = {
    Phase.OPEN: "info",
    Phase.REJECTED: "bad",
    Phase.ACCEPTED: "good",
    Phase.EXHAUSTED: "bad",
    Phase.ENDED: "idle",
    Phase.UNREPORTED: "warn",
}
_OUTCOME: Final = {Outcome.ACCEPTED: "good", Outcome.REJECTED: "bad", Outcome.EXHAUSTED: "bad"}
_ENDING: Final = {EndingOutcome.SETTLED: "good", EndingOutcome.REMINDER: "warn", EndingOutcome.UNREPORTED: "bad"}
_EFFECT: Final = {
    "dispatch": "its instruction goes to the session as the next prompt",
    "collect": "its text is the person's to edit and to send",
    "resolve": "it is settled; no turn starts",
}


class ProblemShown(Struct, frozen=True):
    """One thing that was wrong with a report: where, its code, and the sentence that the model read."""

    path: str
    code: str
    message: str


class Step(Struct, frozen=True):
    """An attempt to report, or an ending; `problems` say why it was rejected, `more` how many of them are left out."""

    name: str
    chip: Chip
    at: Time
    problems: tuple[ProblemShown, ...] = ()
    more: int = 0
    buried: bool = False


class Given(Struct, frozen=True):
    """The answer that stands: who gave it, what follows, and the text that is to be edited, if one is."""

    label: str
    number: int
    name: str
    effect: str
    follows: str
    actor: str
    at: Time
    text: str
    prompt: str
    editor_text: str


class Closed(Struct, frozen=True):
    """Who closed a card without an answer, and when."""

    actor: str
    at: Time


class PromptShown(Struct, frozen=True):
    """A prompt that is held back, or on its way."""

    id: str
    kind: str
    text: str
    at: Time


class EarlierTurn(Struct, frozen=True):
    """A turn that is over."""

    turn: int
    phase: Chip
    began: Time
    steps: tuple[Step, ...]
    answer: Given | None


class SessionPage(Struct, frozen=True):
    """Everything that a session's page shows. `waiting` says whether its card can be answered now."""

    session: str
    pool: str
    turn: int
    phase: Chip
    waiting: bool
    facts: tuple[Fact, ...]
    began: Time
    card: Card | None
    answer: Given | None
    dismissal: Closed | None
    steps: tuple[Step, ...]
    held: tuple[PromptShown, ...]
    outgoing: tuple[PromptShown, ...]
    history: tuple[EarlierTurn, ...]


def page(found: TurnFound, now: int) -> SessionPage:
    """Return what the page of a session shows at `now`, in ms since the epoch."""
    state, turn = found.state, found.state.current
    closed = turn.dismissal
    return SessionPage(
        state.session,
        state.pool,
        turn.turn,
        phase(state),
        state.waiting,
        _facts(state, turn, found.revision),
        time(turn.began_at, now),
        card(turn.report),
        _given(turn.answer, now),
        Closed(one_line(closed.actor), time(closed.at, now)) if closed else None,
        _steps(turn.attempts, turn.endings, now),
        _prompts(state.held, now),
        _prompts(state.outgoing, now),
        tuple(_earlier(past, now) for past in reversed(state.history)),
    )


def phase(state: SessionTurns) -> Chip:
    """Return where the current turn of a session stands; a card that waits is what a person looks for."""
    if not state.current.turn:
        return Chip("no turn yet")
    return Chip("waits for you", "ask") if state.waiting else phase_chip(state.current.phase)


def phase_chip(known: Phase) -> Chip:
    """Return the chip of a phase."""
    return Chip(known.value, _PHASE.get(known, "idle"))


def _facts(state: SessionTurns, turn: Turn, revision: int) -> tuple[Fact, ...]:
    did = ["changed something"] if turn.mutated else []
    did += ["used tools"] if turn.used_tools else []
    return facts(
        ("Pool", one_line(state.pool)),
        ("Runner", one_line(turn.runner)),
        ("Did", ", ".join(did) or "no change, no tools"),
        ("Rejections", str(turn.rejections or "")),
        ("Reminders", str(turn.reminders or "")),
        ("Revision", str(revision)),
    )


def _steps(attempts: Iterable[AttemptVerdict | PastAttempt], endings: Iterable[Ending], now: int) -> tuple[Step, ...]:
    steps = [_attempt(attempt, now) for attempt in attempts]
    steps += [
        Step(
            f"Ending {known.ending}",
            Chip(words(known.outcome), _ENDING.get(known.outcome, "idle")),
            time(known.at, now),
        )
        for known in endings
    ]
    return tuple(sorted(steps, key=lambda step: step.at.ms))


def _attempt(known: AttemptVerdict | PastAttempt, now: int) -> Step:
    problems = tuple(
        ProblemShown(one_line(problem.path), one_line(problem.code), _message(problem.code, problem.message))
        for problem in problems_of(known)
    )
    return Step(
        f"Attempt {known.attempt}",
        Chip(known.outcome.value, _OUTCOME.get(known.outcome, "idle")),
        time(known.at, now),
        problems,
        max(0, known.problem_count - len(problems)),
        known.buried_proposal,
    )


def _message(code: str, message: str) -> str:
    # The problems of an earlier turn have lost their sentences: the code stands in for them.
    return "" if message == code else one_line(message)


def _given(answer: Answer | None, now: int) -> Given | None:
    if answer is None:
        return None
    return Given(
        one_line(answer.label),
        answer.number,
        one_line(f"{answer.block}/{answer.option}"),
        one_line(answer.effect),
        _EFFECT.get(answer.effect, ""),
        one_line(answer.actor),
        time(answer.at, now),
        many_lines(answer.text),
        answer.prompt,
        many_lines(answer.editor_text),
    )


def _prompts(prompts: Iterable[Prompt], now: int) -> tuple[PromptShown, ...]:
    return tuple(
        PromptShown(one_line(p.id), one_line(p.kind), many_lines(p.text), time(p.created_at, now)) for p in prompts
    )


def _earlier(past: PastTurn, now: int) -> EarlierTurn:
    return EarlierTurn(
        past.turn,
        phase_chip(past.phase),
        time(past.began_at, now),
        _steps(past.attempts, past.endings, now),
        _given(past.answer, now),
    )
