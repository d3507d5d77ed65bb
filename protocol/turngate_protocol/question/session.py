"""What one session remembers of its questions: the one that waits, and how the last sixteen came out.

The shape is this system's own; `asked` says how it changes, `effects` what a state wants done outside of it. A value
is a full snapshot that every reader can draw a question from, so it holds whole requests, but never more than a message
may carry: when the outcomes get too big, older ones let go of their request first and are forgotten then. The newest
outcome is always there.
"""

from enum import StrEnum
from hashlib import sha256
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from turngate_protocol.cause import SYSTEM, Cause
from turngate_protocol.question.model import Request, Resolution, tool_of
from turngate_protocol.question.policy import Policy, WaitForEver

OUTCOMES_KEPT: Final = 16
"""How many outcomes a session remembers."""
OUTCOMES_BYTES: Final = 1536 * 1024
"""The most that they take as JSON. A request of control characters alone takes 1.75 MiB; both fit into 4 MiB."""


class OutcomeKind(StrEnum):
    """How a question came out."""

    ANSWERED = "answered"
    CHAT = "chat"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


class DecidedBy(StrEnum):
    """Who decided it: a person, or the policy that the question was asked with."""

    PERSON = "person"
    POLICY = "policy"


class Lineage(Struct, frozen=True, omit_defaults=True):
    """Where a delegated session comes from: its parent session, and the parent's task if there is one."""

    parent_session: str
    task: str = ""


class PendingQuestion(Struct, frozen=True, omit_defaults=True):
    """A question that waits.

    Attributes:
        request: what was asked.
        runner: the runner that waits for the outcome.
        asked_at: when it was asked, in ms since the epoch.
        asked_by: the runner that asked it first.
        policy: what happens if nobody answers.
        expires_at: when the policy takes effect, in ms since the epoch; None for never.
        lineage: where the session comes from, if it is a delegated one.
        turn: the turn in which it was asked, if the runner said so.
    """

    request: Request
    runner: str
    asked_at: int
    asked_by: str
    policy: Policy = WaitForEver()
    expires_at: int | None = None
    lineage: Lineage | None = None
    turn: int | None = None


class Outcome(Struct, frozen=True, omit_defaults=True):
    """How a question came out; it never changes again, but for letting go of its request.

    Attributes:
        request_id: the id of the request.
        schema_digest: its digest.
        tool_call_id: the tool call that asked.
        tool: the tool's name.
        kind: how it came out.
        decided_by: whether a person or a policy decided.
        at: when, in ms since the epoch.
        asked_at: when it was asked, in ms since the epoch.
        runner: the runner that waits for the outcome.
        resolution: the answer or chat text; None when there is none.
        by: the person who decided; empty when a policy did.
        op: the operation of that person's client, by which a retry is known; may be empty.
        lineage: where the session comes from, if it is a delegated one.
        turn: the turn in which it was asked, if the runner said so.
        request: what was asked; None once it was let go of for room.
    """

    request_id: str
    schema_digest: str
    tool_call_id: str
    tool: str
    kind: OutcomeKind
    decided_by: DecidedBy
    at: int
    asked_at: int
    runner: str
    resolution: Resolution | None = None
    by: str = ""
    op: str = ""
    lineage: Lineage | None = None
    turn: int | None = None
    request: Request | None = None


class SessionQuestions(Struct, frozen=True, omit_defaults=True):
    """The questions of one session: at most one waits, and the outcomes stand oldest first.

    Attributes:
        session: the session.
        pool: the pool that first used it; runners of other pools can't ask in it.
        cause: why this revision exists.
        op: the operation that made this revision, set when it is saved.
        pending: the question that waits.
        outcomes: how the last ones came out.
        listed: whether the inbox may show the session.
        stale_timers: timers that may still be set for questions that no longer wait.
    """

    session: str
    pool: str
    cause: Cause
    op: str = ""
    pending: PendingQuestion | None = None
    outcomes: tuple[Outcome, ...] = ()
    listed: bool = False
    stale_timers: tuple[str, ...] = ()


def timer_id(session: str, request_id: str, expires_at: int) -> str:
    """Return the id of the timer of one question: always a legal id, and never that of another question."""
    return "t-" + sha256(f"{session}\0{request_id}\0{expires_at}".encode()).hexdigest()[:32]


def find_outcome(state: SessionQuestions | None, request_id: str) -> Outcome | None:
    """Return the outcome of the request with this id, or None if it waits, was never asked or is forgotten."""
    if state is None:
        return None
    return next((outcome for outcome in reversed(state.outcomes) if outcome.request_id == request_id), None)


def settle(
    state: SessionQuestions,
    pending: PendingQuestion,
    kind: OutcomeKind,
    at: int,
    *,
    resolution: Resolution | None = None,
    by: str = "",
    op: str = "",
) -> tuple[SessionQuestions, Outcome]:
    """Turn the waiting question into an outcome.

    Args:
        state: the session.
        pending: the question that waits in it.
        kind: how it came out.
        at: when, in ms since the epoch.
        resolution: the answer or chat text, if there is one.
        by: the person who decided; empty means that the policy did.
        op: the operation of that person's client.

    Returns:
        The session without a pending question, and the outcome.
    """
    request = pending.request
    outcome = Outcome(
        request_id=request.id,
        schema_digest=request.schema_digest,
        tool_call_id=request.tool_call_id,
        tool=tool_of(request),
        kind=kind,
        decided_by=DecidedBy.PERSON if by else DecidedBy.POLICY,
        at=at,
        asked_at=pending.asked_at,
        runner=pending.runner,
        resolution=resolution,
        by=by,
        op=op,
        lineage=pending.lineage,
        turn=pending.turn,
        request=request,
    )
    changed = replace(
        state,
        cause=Cause(f"question.{kind}", by or SYSTEM, at, pending.turn or 0, message=request.id),
        pending=None,
        outcomes=_within_bounds((*state.outcomes, outcome)),
        stale_timers=(*state.stale_timers, *_timer_of(state.session, pending))[-OUTCOMES_KEPT:],
    )
    return changed, outcome


def _timer_of(session: str, pending: PendingQuestion) -> tuple[str, ...]:
    # Also when that very timer decided: it may have been set twice, and then fires twice.
    if pending.expires_at is None:
        return ()
    return (timer_id(session, pending.request.id, pending.expires_at),)


def _within_bounds(outcomes: tuple[Outcome, ...]) -> tuple[Outcome, ...]:
    kept = list(outcomes[-OUTCOMES_KEPT:])
    sizes = [_size(outcome) for outcome in kept]
    if sum(sizes) <= OUTCOMES_BYTES:
        return tuple(kept)
    bare = [replace(outcome, request=None) for outcome in kept]
    bare_sizes = [_size(outcome) for outcome in bare]
    while len(bare) > 1 and sum(bare_sizes) > OUTCOMES_BYTES:
        del kept[0], sizes[0], bare[0], bare_sizes[0]
    room = OUTCOMES_BYTES - sum(bare_sizes)
    for place in reversed(range(len(kept))):
        room -= sizes[place] - bare_sizes[place]
        if room < 0:
            break
        bare[place] = kept[place]
    return tuple(bare)


def _size(outcome: Outcome) -> int:
    return len(msgspec.json.encode(outcome))
