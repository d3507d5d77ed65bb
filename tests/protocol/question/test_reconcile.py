"""What a restarted runner finds in its own tool calls."""

import pytest

from tests.protocol.question.samples import ARGS, called
from turngate_protocol.question import (
    ASK_USER,
    ASK_USER_TEXT,
    InvalidQuestionError,
    ToolCall,
    generic_request,
    reconcile,
)

ASKED = ToolCall(ASK_USER, "call-1", ARGS)
OTHER = ToolCall("read_file", "call-0", "{}")

CASES = {
    "no calls": ([], None),
    "the question": ([ASKED], called("call-1")),
    "the question before another tool": ([ASKED, OTHER], called("call-1")),
    "another tool first": ([OTHER, ASKED], None),
    "two questions": ([ASKED, ToolCall(ASK_USER, "call-2", ARGS)], called("call-1")),
    "an unreadable text question": ([ToolCall(ASK_USER_TEXT, "call-3", "?")], generic_request("call-3")),
}


@pytest.mark.parametrize(("calls", "request_"), CASES.values(), ids=CASES)
def test_the_first_call_without_a_result_decides(calls, request_):
    assert reconcile(calls) == request_


@pytest.mark.parametrize("call", [ToolCall(ASK_USER, "call-1", "?"), ToolCall(ASK_USER_TEXT, "", "?")])
def test_a_call_that_can_not_have_been_asked_is_an_error(call):
    with pytest.raises(InvalidQuestionError):
        reconcile([call])
