"""Looking up what is known of a turn, and the refusals that come of it.

Source: `spec/report.md`, "The turn gate". What is known is answered from the state and changes nothing; this is also
what `turn.get` answers, so that the truth and the nudge never differ. Nothing here decides anything new.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

from msgspec import Struct

from turngate_protocol.report.session import (
    MAX_ENDINGS,
    AttemptVerdict,
    Ending,
    PastAttempt,
    Phase,
    SessionTurns,
)

REPORTABLE: Final = frozenset({Phase.OPEN, Phase.REJECTED, Phase.ENDED})
"""The phases in which a turn takes a report."""


class RefusalCode(StrEnum):
    """Why a message about a turn changes nothing."""

    ATTEMPT_CONFLICT = "attempt_conflict"
    SUPERSEDED = "superseded"
    TURN_DECIDED = "turn_decided"
    POOL_MISMATCH = "pool_mismatch"
    TURN_UNKNOWN = "turn_unknown"
    NO_CARD = "no_card"
    OPTION_UNKNOWN = "option_unknown"
    ALREADY_ANSWERED = "already_answered"
    ALREADY_DISMISSED = "already_dismissed"
    OVERLOADED = "overloaded"
    PROMPT_CONFLICT = "prompt_conflict"
    INVALID = "invalid"


class Refused(Struct, frozen=True):
    """A message that is refused: it is data, not an exception, and goes back to whoever sent it."""

    code: RefusalCode
    message: str
    details: dict[str, str | int] = {}


def find_attempt(
    state: SessionTurns, turn: int, attempt: int, digest: str = ""
) -> AttemptVerdict | PastAttempt | Refused | None:
    """Look up what became of an attempt: its verdict, why it is refused, or None when it is unknown.

    With a digest, a verdict is only for that content: for any other the answer is that the two are in conflict.
    """
    found = _find_attempt(state, turn, attempt)
    if not digest or found is None or isinstance(found, Refused) or found.digest == digest:
        return found
    return Refused(
        RefusalCode.ATTEMPT_CONFLICT,
        f"attempt {attempt} of turn {turn} was {found.outcome.value} with other content; "
        f"send a new report as attempt {attempt + 1}",
        {"turn": turn, "attempt": attempt, "outcome": found.outcome.value},
    )


def _find_attempt(state: SessionTurns, turn: int, attempt: int) -> AttemptVerdict | PastAttempt | Refused | None:
    if turn == state.current.turn:
        current = state.current
        for verdict in reversed(current.attempts):
            if verdict.attempt == attempt:
                return verdict
        if current.attempts and attempt < current.attempts[-1].attempt:
            return _superseded(turn, state.current.turn, f"attempt {current.attempts[-1].attempt}")
        if current.phase not in REPORTABLE:
            return Refused(
                RefusalCode.TURN_DECIDED,
                f"turn {turn} is {current.phase.value}: it takes no further report; begin turn {turn + 1}",
                {"turn": turn, "phase": current.phase.value},
            )
        return None
    if turn > state.current.turn:
        return None
    for past in reversed(state.history):
        if past.turn == turn:
            for old in past.attempts:
                if old.attempt == attempt:
                    return old
    return _superseded(turn, state.current.turn)


def find_ending(state: SessionTurns, turn: int, ending: int) -> Ending | Refused | None:
    """Look up what became of an ending: its outcome, that it is superseded, or None when it is unknown."""
    if turn > state.current.turn:
        return None
    endings: Sequence[Ending] = ()
    if turn == state.current.turn:
        endings = state.current.endings
    else:
        endings = next((past.endings for past in state.history if past.turn == turn), ())
    for known in endings:
        if known.ending == ending:
            return known
    if turn < state.current.turn or (endings and ending < endings[-1].ending):
        return _superseded(turn, state.current.turn)
    if len(endings) >= MAX_ENDINGS:
        return Refused(
            RefusalCode.TURN_DECIDED,
            f"turn {turn} has ended {MAX_ENDINGS} times; begin turn {turn + 1}",
            {"turn": turn, "limit": MAX_ENDINGS},
        )
    return None


def pool_mismatch(state: SessionTurns, pool: str) -> Refused:
    """Return the refusal of a message that names another pool than the session's."""
    return Refused(
        RefusalCode.POOL_MISMATCH,
        f"session {state.session} belongs to pool {state.pool}, not {pool}; use a runner of that pool",
        {"session": state.session, "pool": state.pool},
    )


def _superseded(turn: int, current: int, by: str = "") -> Refused:
    return Refused(
        RefusalCode.SUPERSEDED,
        f"turn {turn} was overtaken by {by or f'turn {current}'} before this message arrived; nothing was changed",
        {"turn": turn, "current_turn": current},
    )
