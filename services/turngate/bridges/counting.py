"""How the turns of a session are counted for agents that count none: pure, from what is remembered and what is known.

The services count turns, attempts and endings by numbers that the session's host gives. An agent that speaks MCP has no
such numbers, so the bridges give them, from a `Ledger` that is kept in a file and from what the services know, which
always wins. A ledger that is lost, old, or another client's is therefore only slower, never wrong.

A turn begins with the first call after one that was decided or ended. A report that is repeated keeps its number where
the agent can't have read its verdict (it was not delivered, or was delivered to another connection), or where nothing
happened since it was accepted. The very same report sent again over the connection that was told of its rejection is
the model's next attempt.
"""

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from turngate.bridges.toollog import Seen
from turngate_protocol.report.session import EndingOutcome, Outcome, Phase, Turn

QUESTIONS_KEPT: Final = 64
"""How many different questions of a session are remembered."""

_BEHIND: Final = frozenset({Phase.ACCEPTED, Phase.ENDED, Phase.UNREPORTED})


class LastReport(Struct, frozen=True, omit_defaults=True):
    """The last attempt to report: its content's digest, its facts, the connection it came by, and what came of it.

    `outcome` is empty while nobody was told.
    """

    digest: str
    turn: int
    attempt: int
    mutated: bool
    used_tools: bool
    by: str
    outcome: str = ""


class Asked(Struct, frozen=True, omit_defaults=True):
    """A question of `turn`, asked for the `count`-th time there; `told` is the connection that was answered."""

    turn: int
    count: int
    told: str = ""


class Ledger(Struct, frozen=True, omit_defaults=True):
    """What is remembered of a session's turns.

    Attributes:
        turn: the number of the newest turn; 0 before the first.
        phase: where it stands, as the gate would say.
        attempts: the number of its last attempt.
        endings: the number of its last ending.
        over: its agent stopped, and the gate let it.
        hooked: hooks tell of this session's endings.
        mark: where in the tool log the evidence of the newest turn begins.
        last: the last attempt to report.
        asked: the questions, by the digest of their call.
    """

    turn: int = 0
    phase: Phase = Phase.OPEN
    attempts: int = 0
    endings: int = 0
    over: bool = False
    hooked: bool = False
    mark: int = 0
    last: LastReport | None = None
    asked: dict[str, Asked] = {}


class TurnExhausted(Exception):
    """The turn used up its repairs, and takes no other report until its agent stops."""


def reconcile(ledger: Ledger, known: Turn | None) -> Ledger:
    """Return the ledger with what the services know of the session's newest turn.

    Args:
        ledger: what is remembered.
        known: the turn as the services have it; None when they know nothing of the session.
    """
    if known is None or known.turn < ledger.turn:
        return ledger
    same = known.turn == ledger.turn
    attempts = known.attempts[-1].attempt if known.attempts else 0
    endings = known.endings[-1].ending if known.endings else 0
    return replace(
        ledger,
        turn=known.turn,
        phase=known.phase,
        attempts=max(attempts, ledger.attempts) if same else attempts,
        endings=max(endings, ledger.endings) if same else endings,
        over=bool(known.endings) and known.endings[-1].outcome is not EndingOutcome.REMINDER,
    )


def current_turn(ledger: Ledger) -> int:
    """Return the turn that a call belongs to that is made now."""
    return ledger.turn + 1 if _is_behind(ledger) else ledger.turn


def place_report(ledger: Ledger, digest: str, by: str, seen: Seen) -> tuple[Ledger, LastReport]:
    """Give an attempt to report its numbers.

    Args:
        ledger: what is remembered, reconciled.
        digest: that of the report's bytes.
        by: the connection that it came by.
        seen: the tools since the ledger's mark.

    Returns:
        The ledger to keep before the report is sent, and the attempt.

    Raises:
        TurnExhausted: the turn takes no other report.
    """
    last = ledger.last
    if last is not None and last.digest == digest and last.turn == ledger.turn and _is_repeat(ledger, last, by, seen):
        kept = replace(last, by=by)
        return replace(ledger, last=kept), kept
    if ledger.phase is Phase.EXHAUSTED and ledger.hooked and not ledger.over:
        raise TurnExhausted
    if _is_behind(ledger):
        ledger = _begun(ledger)
    attempt = ledger.attempts + 1
    placed = LastReport(digest, ledger.turn, attempt, seen.mutated, seen.used_tools, by)
    return replace(ledger, attempts=attempt, last=placed), placed


def note_verdict(ledger: Ledger, placed: LastReport, outcome: Outcome, end: int) -> Ledger:
    """Return the ledger once an attempt's verdict is about to be told; `end` is where the tool log ended before."""
    if ledger.last is not None and (ledger.last.turn, ledger.last.attempt) == (placed.turn, placed.attempt):
        ledger = replace(ledger, last=replace(placed, outcome=outcome.value))
    if ledger.turn != placed.turn or ledger.phase is Phase.ACCEPTED:
        return ledger
    accepted = outcome is Outcome.ACCEPTED
    return replace(ledger, phase=Phase(outcome.value), mark=end if accepted else ledger.mark)


def place_ending(ledger: Ledger, seen: Seen) -> tuple[Ledger, int, int]:
    """Give the end of an agent's turn its numbers; returns the ledger to keep, the turn and the ending.

    What was changed after a report was accepted is a turn of its own, which owes another one. Reading on is not: it
    would make the card that was just drawn an old one.
    """
    went_on = ledger.phase is Phase.ACCEPTED and seen.mutated
    if ledger.turn == 0 or ledger.over or went_on:
        ledger = _begun(ledger)
    ending = ledger.endings + 1
    return replace(ledger, endings=ending, hooked=True), ledger.turn, ending


def note_ending(ledger: Ledger, turn: int, outcome: EndingOutcome, end: int) -> Ledger:
    """Return the ledger once the gate has judged an ending; `end` is where the tool log ended before."""
    if ledger.turn != turn or outcome is EndingOutcome.REMINDER:
        return ledger
    phase = ledger.phase
    if outcome is EndingOutcome.UNREPORTED:
        phase = Phase.UNREPORTED
    elif phase is not Phase.ACCEPTED:
        phase = Phase.ENDED
    return replace(ledger, phase=phase, over=True, mark=end)


def place_question(ledger: Ledger, digest: str, by: str) -> tuple[Ledger, Asked]:
    """Give a question its place: the one that was asked before where its answer was never told, else a new one."""
    turn = current_turn(ledger)
    before = ledger.asked.get(digest)
    if before is None or (before.told and (before.told == by or before.turn != turn)):
        count = before.count + 1 if before is not None and before.turn == turn else 1
        before = Asked(turn, count)
    others = {key: asked for key, asked in ledger.asked.items() if key != digest}
    kept = dict(list(others.items())[-(QUESTIONS_KEPT - 1) :])
    return replace(ledger, asked=kept | {digest: before}), before


def note_answer(ledger: Ledger, digest: str, asked: Asked, by: str) -> Ledger:
    """Return the ledger once the outcome of a question is about to be told to a connection."""
    if ledger.asked.get(digest) != asked:
        return ledger
    return replace(ledger, asked=ledger.asked | {digest: replace(asked, told=by)})


def _is_behind(ledger: Ledger) -> bool:
    """Say whether the newest turn is decided or ended, so that another call begins the next one."""
    # Without hooks nothing ever says that an exhausted turn ended.
    exhausted = ledger.phase is Phase.EXHAUSTED and not ledger.hooked
    return ledger.turn == 0 or ledger.over or exhausted or ledger.phase in _BEHIND


def _begun(ledger: Ledger) -> Ledger:
    return replace(ledger, turn=ledger.turn + 1, phase=Phase.OPEN, attempts=0, endings=0, over=False, last=None)


def _is_repeat(ledger: Ledger, last: LastReport, by: str, seen: Seen) -> bool:
    if not last.outcome:
        return True
    if ledger.over:
        return False
    if last.outcome == Outcome.ACCEPTED:
        return not seen.mutated
    return last.outcome == Outcome.EXHAUSTED or last.by != by
