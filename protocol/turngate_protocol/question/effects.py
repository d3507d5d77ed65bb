"""What the newest state of a session's questions wants done outside of it: its place in the inbox, and its timer.

The rules are this system's own. `wants` says what to do; each part of it may be done twice, or by somebody who is
late, and changes nothing then: an inbox entry knows its revision, and a timer names the one question that it is for.
`settled` is the state once all of it was done. Nothing here does any of it, and nothing reads a clock.
"""

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from turngate_protocol.cause import SYSTEM, Cause
from turngate_protocol.inbox import InboxEntry
from turngate_protocol.question.model import Request, RequestKind
from turngate_protocol.question.rules import request_count
from turngate_protocol.question.session import Lineage, PendingQuestion, SessionQuestions, timer_id
from turngate_protocol.text import cut_bytes

KIND: Final = "question"
"""The kind of a question's inbox entry and of its timer."""
TITLE_BYTES: Final = 240
"""Longest title of an inbox entry, in UTF-8 bytes; the whole question stands in the state."""


class Timer(Struct, frozen=True):
    """A timer to be set: it fires at `at`, in ms since the epoch, for this one request."""

    id: str
    at: int
    request_id: str
    schema_digest: str


class Wants(Struct, frozen=True):
    """What a state needs done.

    Attributes:
        inbox: the entry to show; None to show none.
        clears_inbox: whether an entry may be there that has to go.
        timer: the timer to set, if the question that waits expires.
        cancels: timers to remove, of questions that no longer wait.
    """

    inbox: InboxEntry | None = None
    clears_inbox: bool = False
    timer: Timer | None = None
    cancels: tuple[str, ...] = ()


def wants_something(state: SessionQuestions) -> bool:
    """Say whether there is anything to do for this state."""
    return state.listed or bool(state.stale_timers)


def wants(state: SessionQuestions) -> Wants:
    """Return what must be done outside of the state; each part may be done more than once with the same result."""
    pending = state.pending
    if pending is None:
        return Wants(clears_inbox=state.listed, cancels=state.stale_timers)
    return Wants(_entry(state, pending), timer=_timer(state, pending), cancels=state.stale_timers)


def settled(state: SessionQuestions, now: int) -> SessionQuestions | None:
    """Return the state once all that it wants was done, or None when that leaves nothing to record.

    It records what was done for exactly this state. A newer one may have shown an entry since: what that wants is done
    for it, and only then recorded.

    Args:
        state: the state whose wants were done.
        now: ms since the epoch.
    """
    listed = state.pending is not None
    if listed == state.listed and not state.stale_timers:
        return None
    return replace(state, cause=Cause("question.settled", SYSTEM, now), listed=listed, stale_timers=())


def _entry(state: SessionQuestions, pending: PendingQuestion) -> InboxEntry:
    lineage = pending.lineage or Lineage("")
    return InboxEntry(
        KIND,
        state.session,
        state.pool,
        pending.asked_at,
        cut_bytes(_title(pending.request), TITLE_BYTES),
        pending.turn or 0,
        request_id=pending.request.id,
        questions=request_count(pending.request),
        # Who asked first, not who waits now: an entry that changes would lose its place among the oldest.
        runner=pending.asked_by,
        expires_at=pending.expires_at or 0,
        parent_session=lineage.parent_session,
        task=lineage.task,
    )


def _title(request: Request) -> str:
    return request.prompt if request.kind is RequestKind.FREEFORM else request.questions[0].question


def _timer(state: SessionQuestions, pending: PendingQuestion) -> Timer | None:
    if pending.expires_at is None:
        return None
    request = pending.request
    return Timer(
        timer_id(state.session, request.id, pending.expires_at), pending.expires_at, request.id, request.schema_digest
    )
