"""From what the state knows to what goes over the wire: verdicts, outcomes of endings, and refusals."""

from msgspec import Raw
from msgspec.structs import replace

from turngate_contracts.errors import ErrorBody, ErrorCode
from turngate_contracts.messages import EndingVerdict, GetTurn, TurnFound, Verdict
from turngate_protocol.report.lookup import Refused, find_attempt, find_ending
from turngate_protocol.report.session import (
    NO_REPORT,
    AttemptVerdict,
    Ending,
    EndingOutcome,
    Outcome,
    PastAttempt,
    SessionTurns,
)
from turngate_protocol.report.texts import attempts_left, problems_of, reminder_text, verdict_text


def verdict_of(
    state: SessionTurns, turn: int, verdict: AttemptVerdict | PastAttempt, submitted: bytes | memoryview | None = None
) -> Verdict:
    """Return the wire form of a verdict; the accepted report comes with it while its turn is the current one.

    A runner that is told at once still has what it `submitted`: the same bytes are not sent back to it.
    """
    current = turn == state.current.turn
    accepted = verdict.outcome is Outcome.ACCEPTED
    if accepted:
        report = state.current.report if current else NO_REPORT
        choices = state.current.choices if current else ()
        same = current and submitted is not None and report == Raw(submitted)
        return Verdict(
            state.session,
            turn,
            verdict.attempt,
            verdict.outcome,
            verdict.at,
            report=NO_REPORT if same else report,
            choices=choices,
            as_submitted=same,
            digest=verdict.digest,
        )
    past = next((p.attempts for p in state.history if p.turn == turn), ())
    left = attempts_left(verdict, state.current.attempts if current else past)
    return Verdict(
        state.session,
        turn,
        verdict.attempt,
        verdict.outcome,
        verdict.at,
        problems_of(verdict),
        verdict.problem_count,
        left,
        verdict.buried_proposal,
        verdict_text(verdict, left),
        digest=verdict.digest,
    )


def ending_of(state: SessionTurns, turn: int, ending: Ending) -> EndingVerdict:
    """Return the wire form of an ending's outcome, with the reminder that the agent should read."""
    text = ""
    if ending.outcome is EndingOutcome.REMINDER:
        endings = state.current.endings
        if turn != state.current.turn:
            endings = next((p.endings for p in state.history if p.turn == turn), ())
        count = sum(e.outcome is EndingOutcome.REMINDER and e.at <= ending.at for e in endings)
        text = reminder_text(count)
    return EndingVerdict(state.session, turn, ending.ending, ending.outcome, ending.at, text)


def refusal_of(refused: Refused) -> ErrorBody:
    """Return the wire form of a refusal of the gate."""
    return ErrorBody(ErrorCode(refused.code.value), refused.message, dict(refused.details))


def found(state: SessionTurns, revision: int, asked: GetTurn) -> TurnFound:
    """Return what is known of a session and of one attempt or ending of it; the state carries the report, once."""
    verdict = ended = refused = None
    turn, attempt, ending = asked.turn, asked.attempt, asked.ending
    if attempt:
        known = find_attempt(state, turn, attempt, asked.digest)
        if isinstance(known, Refused):
            refused = refusal_of(known)
        elif known is not None:
            verdict = replace(verdict_of(state, turn, known), report=NO_REPORT)
    elif ending:
        outcome = find_ending(state, turn, ending)
        if isinstance(outcome, Refused):
            refused = refusal_of(outcome)
        elif outcome is not None:
            ended = ending_of(state, turn, outcome)
    return TurnFound(state, revision, verdict, ended, refused)
