"""Replaying the history of sessions: every revision must be the gate's own step from the one before it.

Each revision names its cause. The message behind the cause is looked up in the ledger and given to the pure gate
together with the state before; what comes out must be the stored bytes. A lost update, a verdict given twice, an
outcome that nobody asked for: each shows as a step that can't be explained.
"""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from tests.system.ledger import Ledger
from turngate.jetstream.direct import Stored
from turngate_contracts import codec
from turngate_protocol.cause import SYSTEM
from turngate_protocol.report.answering import Changed, Wants, answer, dismiss, enqueue, settled
from turngate_protocol.report.session import SessionTurns
from turngate_protocol.report.turn import Ended, GateRules, Judged, end, submit

_RULES: Final = GateRules()


def replayed(session: str, revisions: Sequence[Stored], ledger: Ledger) -> SessionTurns | None:
    """Return the state that the gate makes of a session's history; fails where a revision can't be explained."""
    state: SessionTurns | None = None
    ops: set[str] = set()
    for revision in revisions:
        stored = codec.decode(revision.body, SessionTurns, f"revision {revision.sequence} of {session}")
        expected = _step(session, state, stored, ledger)
        assert expected is not None, (
            f"revision {revision.sequence} of {session} ({stored.cause}) can't follow from the one before it:"
            f" it was decided on an older state, or twice"
        )
        assert stored.op not in ops, f"operation {stored.op} of {session} was saved twice"
        ops.add(stored.op)
        expected = replace(expected, op=stored.op)
        assert codec.encode(expected) == revision.body, (
            f"revision {revision.sequence} of {session} ({stored.cause}) is not what the gate makes of the one"
            f" before it:\nstored   {revision.body!r}\nexpected {codec.encode(expected)!r}"
        )
        state = stored
    return state


def _step(session: str, before: SessionTurns | None, stored: SessionTurns, ledger: Ledger) -> SessionTurns | None:
    cause = stored.cause
    what = cause.type
    if what.startswith("turn.report_"):
        judged = submit(before, ledger.reports[session, cause.turn, cause.attempt].sent, _RULES, cause.at)
        return judged.state if isinstance(judged, Judged) else None
    if what in ("turn.ended", "turn.reminder", "turn.unreported"):
        ended = end(before, ledger.endings[session, cause.turn, cause.attempt].sent, _RULES, cause.at)
        return ended.state if isinstance(ended, Ended) else None
    assert before is not None, f"{session} begins with {cause}"
    if what == "turn.answered":
        return _changed(answer(before, ledger.answers[session, cause.turn, cause.actor], cause.at))
    if what == "turn.dismissed":
        op = ledger.dismissals[session, cause.turn, cause.actor]
        return _changed(dismiss(before, cause.turn, cause.actor, cause.at, op))
    if what in ("turn.prompt_held", "turn.prompt_released"):
        prompt = replace(ledger.prompts[cause.message], created_at=cause.at)
        return _changed(enqueue(before, prompt, cause.at))
    assert cause.actor == SYSTEM, f"nobody sent what {session} says it was caused by: {cause}"
    sent = tuple(prompt for prompt in before.outgoing if prompt not in stored.outgoing)
    return settled(before, Wants(sent, None, before.listed and not stored.listed), cause.at)


def _changed(decided: object) -> SessionTurns | None:
    return decided.state if isinstance(decided, Changed) else None
