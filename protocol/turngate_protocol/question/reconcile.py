"""What a session waits for, found again from its own durable tool calls.

The rule book is the question protocol: a runner that was killed still has the tool calls that its agent made and that
have no result yet. The first of them decides. Ids are computed from the call, so the request found is the one that
was asked before; nothing is asked here.
"""

from collections.abc import Sequence

from turngate_protocol.question.call import TOOLS, ToolCall, request_or_generic
from turngate_protocol.question.model import Request


def reconcile(pending_calls: Sequence[ToolCall]) -> Request | None:
    """Return the question that a session waits for, judged by its tool calls that have no result yet.

    Args:
        pending_calls: the calls without a result, oldest first.

    Returns:
        The request of the first call, or None when there is no call or the first one belongs to another tool: its owner
        decides then.

    Raises:
        InvalidQuestionError: the first call is an `ask_user` that should have been denied, or its id breaks a rule.
    """
    if not pending_calls or pending_calls[0].name not in TOOLS:
        return None
    first = pending_calls[0]
    return request_or_generic(first.name, first.id, first.args)
