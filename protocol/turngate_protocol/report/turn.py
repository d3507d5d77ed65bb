"""The turn gate: the pure machine that gives each report attempt and each ending of a turn exactly one outcome.

Source: `spec/report.md`, "The turn gate". Two messages drive it, both from the session's runner: an attempt to report,
numbered 1, 2, 3 … within its turn, and an ending of the turn, numbered likewise. Any of them may arrive twice, late, or
after a later one; the numbers, not the order of arrival, say what they are. Each is looked up first: what is known is
answered from the state and changes nothing.

========== ================= ==================================== ==========================================
phase      report fits       report does not fit                  ending
========== ================= ==================================== ==========================================
open       accepted          rejected; exhausted at the fourth    nothing owed: ended. Owed: stays, reminder
rejected   accepted          rejected; exhausted at the fourth    (twice at most), then unreported
ended      accepted          rejected; exhausted at the fourth    as open
accepted   turn_decided      turn_decided                         settled
exhausted  turn_decided      turn_decided                         unreported
unreported turn_decided      turn_decided                         unreported
========== ================= ==================================== ==========================================

A message of a later turn begins that turn and is then judged as in `open`; one of an earlier turn is `superseded`
unless its verdict is known. Held prompts are released when a turn begins. Nothing here reads a clock or does I/O.
"""

import hashlib
from itertools import product
from typing import Final

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from turngate_protocol.cause import Cause
from turngate_protocol.report.decode import decode, read_plain
from turngate_protocol.report.lookup import Refused, find_attempt, find_ending, pool_mismatch
from turngate_protocol.report.model import Report
from turngate_protocol.report.normalise import normalise
from turngate_protocol.report.order import choices
from turngate_protocol.report.problems import Problem
from turngate_protocol.report.rules import Rules, buried_proposal_hint, validate
from turngate_protocol.report.session import (
    HISTORY_TURNS,
    MAX_PROBLEMS,
    MAX_REMINDERS,
    MAX_REPAIRS,
    NO_REPORT,
    AttemptVerdict,
    Ending,
    EndingOutcome,
    Mode,
    Outcome,
    PastAttempt,
    PastTurn,
    Phase,
    SessionTurns,
    Turn,
)

MAX_NUMBER: Final = 2**31 - 1
"""Largest turn, attempt or ending number."""

_encode = msgspec.json.Encoder().encode
# Taking an enum's value, or an enum by its value, costs as much as a rule.
_PHASES: Final = {outcome: Phase(outcome.value) for outcome in Outcome}
# Beginning a digest costs as much as a kilobyte of it, and so does copying a report behind a few bytes.
_FACTS: Final = {
    facts: hashlib.sha256(b"%d%d%d" % facts) for facts in product((False, True), (False, True), (False, True))
}
_JUDGED_EVENTS: Final = {outcome: f"turn.report_{outcome.value}" for outcome in Outcome}


class Attempt(Struct, frozen=True, gc=False):
    """An attempt to report. `report` is the submitted JSON as it came (None when there was none).

    A view of its message is kept as one in the state, so what stands around the report should be small.
    """

    session: str
    pool: str
    runner: str
    turn: int
    attempt: int
    report: bytes | memoryview | None
    mutated: bool = False
    used_tools: bool = False


class TurnEnd(Struct, frozen=True):
    """The `ending`-th time that the agent of a turn stopped."""

    session: str
    pool: str
    runner: str
    turn: int
    ending: int
    mutated: bool = False
    used_tools: bool = False


class Judged(Struct, frozen=True, gc=False):
    """The verdict of an attempt. `state` is the state to save, or None when the verdict was known already."""

    verdict: AttemptVerdict | PastAttempt
    turn: int
    state: SessionTurns | None = None


class Ended(Struct, frozen=True):
    """The outcome of an ending. `state` is the state to save, or None when the outcome was known already."""

    ending: Ending
    turn: int
    state: SessionTurns | None = None


class GateRules(Struct, frozen=True):
    """What the gate's operator chose: which turns owe a report and how many blocks one may have."""

    mode: Mode = Mode.MUTATING
    max_blocks: int = 20


def content_digest(attempt: Attempt) -> str:
    """Return what tells a repeat of an attempt from other content under the same number."""
    digest = _FACTS[attempt.mutated, attempt.used_tools, attempt.report is None].copy()
    digest.update(attempt.report or b"")
    return digest.hexdigest()[:32]


def submit(
    state: SessionTurns | None, attempt: Attempt, rules: GateRules, now: int, plain: Report | None = None
) -> Judged | Refused:
    """Judge an attempt to report.

    Args:
        state: what is known of the session, None when nothing is.
        attempt: the attempt, its identity already checked against its sender's.
        rules: the operator's choices.
        now: ms since the epoch.
        plain: what `read_plain` makes of the attempt's report, where the caller has read it already.

    Returns:
        The one verdict of this attempt, new or known, or why the attempt is refused.
    """
    digest = content_digest(attempt)
    if state is not None:
        known = _known_attempt(state, attempt, digest)
        if known is not None:
            return known
    turn, history = _turn_of(state, attempt, now)
    verdict, report = _judge(attempt, plain, digest, turn, rules, now)
    accepted = verdict.outcome is Outcome.ACCEPTED
    new_turn = replace(
        turn,
        runner=attempt.runner,
        phase=_PHASES[verdict.outcome],
        mutated=turn.mutated or attempt.mutated,
        used_tools=turn.used_tools or attempt.used_tools,
        attempts=(*turn.attempts, verdict),
        rejections=turn.rejections + (not accepted),
        report=report[0] if report else NO_REPORT,
        choices=tuple(choices(report[1])) if report else (),
    )
    cause = Cause(
        type=_JUDGED_EVENTS[verdict.outcome],
        actor=attempt.runner,
        at=now,
        turn=attempt.turn,
        attempt=attempt.attempt,
    )
    return Judged(verdict, attempt.turn, _next(state, attempt, new_turn, history, cause))


def end(state: SessionTurns | None, ended: TurnEnd, rules: GateRules, now: int) -> Ended | Refused:
    """Apply the gate to the end of a turn; arguments and result as for `submit`."""
    if state is not None:
        known = _known_ending(state, ended)
        if known is not None:
            return known
    turn, history = _turn_of(state, ended, now)
    mutated, used_tools = turn.mutated or ended.mutated, turn.used_tools or ended.used_tools
    phase, outcome = _settle(turn, owes(rules.mode, mutated, used_tools))
    ending = Ending(ended.ending, outcome, now)
    new_turn = replace(
        turn,
        runner=ended.runner,
        phase=phase,
        mutated=mutated,
        used_tools=used_tools,
        endings=(*turn.endings, ending),
        reminders=turn.reminders + (outcome is EndingOutcome.REMINDER),
    )
    cause = Cause(
        type=f"turn.{'ended' if outcome is EndingOutcome.SETTLED else outcome.value}",
        actor=ended.runner,
        at=now,
        turn=ended.turn,
        attempt=ended.ending,
    )
    return Ended(ending, ended.turn, _next(state, ended, new_turn, history, cause))


def owes(mode: Mode, mutated: bool, used_tools: bool) -> bool:
    """Say whether a turn with these facts owes a report."""
    if mode is Mode.OFF:
        return False
    return mode is Mode.ALWAYS or mutated or (mode is Mode.TOOLS and used_tools)


def remember(turn: Turn) -> PastTurn:
    """Return the summary of a turn that a later one has replaced."""
    return PastTurn(
        turn.turn,
        turn.phase,
        turn.began_at,
        tuple(map(_past, turn.attempts)),
        turn.endings,
        turn.answer,
    )


def _past(verdict: AttemptVerdict) -> PastAttempt:
    # Most attempts have no problems, and going through none costs as much as the rest.
    problems = tuple((problem.path, problem.code) for problem in verdict.problems) if verdict.problems else ()
    return PastAttempt(
        verdict.attempt,
        verdict.digest,
        verdict.outcome,
        verdict.at,
        problems,
        verdict.problem_count,
        verdict.buried_proposal,
    )


def _known_attempt(state: SessionTurns, attempt: Attempt, digest: str) -> Judged | Refused | None:
    if attempt.pool != state.pool:
        return pool_mismatch(state, attempt.pool)
    found = find_attempt(state, attempt.turn, attempt.attempt, digest)
    if found is None or isinstance(found, Refused):
        return found
    return Judged(found, attempt.turn)


def _known_ending(state: SessionTurns, ended: TurnEnd) -> Ended | Refused | None:
    if ended.pool != state.pool:
        return pool_mismatch(state, ended.pool)
    found = find_ending(state, ended.turn, ended.ending)
    if found is None or isinstance(found, Refused):
        return found
    return Ended(found, ended.turn)


def _turn_of(state: SessionTurns | None, message: Attempt | TurnEnd, now: int) -> tuple[Turn, tuple[PastTurn, ...]]:
    """Return the turn that a message belongs to, begun by it if need be, and the turns before it."""
    if state is None:
        return Turn(message.turn, now, message.runner), ()
    if state.current.turn == message.turn:
        return state.current, state.history
    return Turn(message.turn, now, message.runner), (*state.history, remember(state.current))[-HISTORY_TURNS:]


def _judge(
    attempt: Attempt, plain: Report | None, digest: str, turn: Turn, rules: GateRules, now: int
) -> tuple[AttemptVerdict, tuple[Raw, Report] | None]:
    decoded = plain or read_plain(attempt.report) or decode(bytes(attempt.report or b""))
    hint = False
    if isinstance(decoded, Report):
        report = normalise(decoded)
        problems = validate(report, Rules(rules.max_blocks, turn.mutated or attempt.mutated))
        if not problems:
            # Bytes that normalising did not change are kept as they came: encoding them again would only cost time.
            raw = Raw(attempt.report or b"") if report is decoded else Raw(_encode(report))
            return AttemptVerdict(attempt.attempt, digest, Outcome.ACCEPTED, now), (raw, report)
        hint = buried_proposal_hint(report)
    else:
        problems = decoded
    outcome = Outcome.EXHAUSTED if turn.rejections >= MAX_REPAIRS else Outcome.REJECTED
    kept: tuple[Problem, ...] = tuple(problems[:MAX_PROBLEMS])
    return AttemptVerdict(attempt.attempt, digest, outcome, now, kept, len(problems), hint), None


def _settle(turn: Turn, owed: bool) -> tuple[Phase, EndingOutcome]:
    if turn.phase is Phase.ACCEPTED:
        return turn.phase, EndingOutcome.SETTLED
    if turn.phase in (Phase.EXHAUSTED, Phase.UNREPORTED):
        return Phase.UNREPORTED, EndingOutcome.UNREPORTED
    if not owed:
        return Phase.ENDED, EndingOutcome.SETTLED
    if turn.reminders < MAX_REMINDERS:
        return turn.phase, EndingOutcome.REMINDER
    return Phase.UNREPORTED, EndingOutcome.UNREPORTED


def _next(
    state: SessionTurns | None,
    message: Attempt | TurnEnd,
    turn: Turn,
    history: tuple[PastTurn, ...],
    cause: Cause,
) -> SessionTurns:
    listed = bool(turn.choices) and turn.answer is None and turn.dismissal is None
    if state is None:
        return SessionTurns(message.session, message.pool, turn, cause, history=history, listed=listed)
    begins = state.current.turn != turn.turn
    return SessionTurns(
        state.session,
        state.pool,
        turn,
        cause,
        history=history,
        held=() if begins else state.held,
        outgoing=(*state.outgoing, *state.held) if begins else state.outgoing,
        listed=state.listed or listed,
        sent=state.sent,
    )
