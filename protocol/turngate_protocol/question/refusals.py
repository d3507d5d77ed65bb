"""The refusals of a session's questions: what does not fit the state it meets, who is in the way, and the way out.

The kinds are this system's own, beside the protocol's `no_pending` and `mismatch`. Each function writes one sentence
and the facts behind it. Nothing is decided here; `asked` decides.
"""

from turngate_protocol.question.errors import RefusalKind, RefusedError, shown
from turngate_protocol.question.model import IDENTITY_BYTES, tool_of
from turngate_protocol.question.session import DecidedBy, Outcome, PendingQuestion
from turngate_protocol.text import visible


def no_pending(request_id: str) -> RefusedError:
    """Say that a session has no question of this id, neither waiting nor among its outcomes."""
    return RefusedError(
        RefusalKind.NO_PENDING,
        f"The question {shown(request_id)} does not wait in this session: look for it among those that do.",
        {"request_id": visible(request_id[:IDENTITY_BYTES])},
    )


def blank_answer(path: str) -> RefusedError:
    """Say which text of an answer says nothing."""
    return RefusedError(
        RefusalKind.BLANK_ANSWER,
        f"{path} holds only white space: write an answer, or cancel the question.",
        {"path": path},
    )


def pool_mismatch(session: str, asking: str, pool: str) -> RefusedError:
    """Say that `asking` is not the `pool` that a session belongs to."""
    return RefusedError(
        RefusalKind.POOL_MISMATCH,
        f"The session {shown(session)} belongs to the pool {shown(pool)}, not to {shown(asking)}: "
        "ask from a runner of its pool.",
        {"session": session, "pool": pool},
    )


def another_pending(pending: PendingQuestion) -> RefusedError:
    """Say which other question of the session still waits."""
    request = pending.request
    return RefusedError(
        RefusalKind.ANOTHER_PENDING,
        f"The question {shown(request.id)} of tool call {shown(request.tool_call_id)} still waits for its answer: "
        "wait for that before asking another.",
        {
            "request_id": request.id,
            "schema_digest": request.schema_digest,
            "tool_call_id": request.tool_call_id,
            "tool": tool_of(request),
            "runner": pending.runner,
            "asked_at": pending.asked_at,
        },
    )


def reused_id(outcome: Outcome) -> RefusedError:
    """Say that an id was that of another question, whose outcome is `outcome`."""
    return RefusedError(
        RefusalKind.MISMATCH,
        f"The id {shown(outcome.request_id)} stood for another question before: ask this one under an id of its own.",
        {"request_id": outcome.request_id, "schema_digest": outcome.schema_digest},
    )


def already_resolved(outcome: Outcome) -> RefusedError:
    """Say who decided a question before, and how."""
    who = shown(outcome.by) if outcome.decided_by is DecidedBy.PERSON else "its policy"
    return RefusedError(
        RefusalKind.ALREADY_RESOLVED,
        f"The question {shown(outcome.request_id)} was decided before by {who} ({outcome.kind}): read its outcome.",
        {
            "request_id": outcome.request_id,
            "kind": outcome.kind,
            "decided_by": outcome.decided_by,
            "by": outcome.by,
            "at": outcome.at,
        },
    )


def not_due(pending: PendingQuestion, now: int) -> RefusedError:
    """Say when a question that waits will expire, if ever."""
    request = pending.request
    due = pending.expires_at
    when = "never expires: let it wait" if due is None else f"expires in {due - now} ms: come back then"
    return RefusedError(
        RefusalKind.NOT_DUE, f"The question {shown(request.id)} {when}.", {"request_id": request.id, "expires_at": due}
    )
