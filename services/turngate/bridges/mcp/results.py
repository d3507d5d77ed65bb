"""What a call of a tool gives back: texts that a model can act upon, and the same as data."""

import json
from typing import Any, Final

import msgspec
from mcp_types import CallToolResult, TextContent

from turngate_contracts import messages as m
from turngate_contracts.errors import ErrorCode, TurngateError, Unavailable
from turngate_protocol.question.model import Request, RequestKind, tool_of
from turngate_protocol.question.session import Outcome
from turngate_protocol.question.tools import tool_result
from turngate_protocol.report.session import Outcome as ReportOutcome

_ACCEPTED: Final = "The report is accepted and the user has it. Your turn is over: stop here, and write nothing more."
_RETRYABLE: Final = frozenset({ErrorCode.OVERLOADED, ErrorCode.UNAVAILABLE})


def text_result(text: str, *, is_error: bool = False, data: dict[str, Any] | None = None) -> CallToolResult:
    """Return a result of one text; `data` is the same for programs."""
    return CallToolResult(content=[TextContent(type="text", text=text)], is_error=is_error, structured_content=data)


def verdict_result(verdict: m.Verdict) -> CallToolResult:
    """Return what a model gets for the verdict of its report."""
    accepted = verdict.outcome is ReportOutcome.ACCEPTED
    data = {
        "outcome": verdict.outcome.value,
        "turn": verdict.turn,
        "attempt": verdict.attempt,
        "attempts_left": verdict.attempts_left,
        "problems": [{"path": p.path, "code": p.code, "message": p.message} for p in verdict.problems],
    }
    return text_result(_ACCEPTED if accepted else verdict.text, is_error=not accepted, data=data)


def outcome_result(outcome: Outcome) -> CallToolResult:
    """Return what a model gets for the outcome of its question."""
    result = tool_result(outcome)
    data = None if result.is_error else json.loads(result.content)
    return text_result(result.content, is_error=result.is_error, data=data)


def call_text(request: Request) -> str:
    """Return what a model is told to call so that it asks the very question that a session waits for."""
    if request.kind is RequestKind.FREEFORM:
        arguments: dict[str, Any] = {"question": request.prompt}
    else:
        arguments = {"questions": msgspec.to_builtins(request.questions)}
    text = json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))
    return f"call {tool_of(request)} with exactly these arguments: {text}"


def error_result(tool: str, error: TurngateError) -> CallToolResult:
    """Return what a model gets when a call could not be done: what is wrong, and whether calling again helps."""
    end = "" if error.message.endswith((".", "?")) else "."
    text = f"{error.code.value}: {error.message}{end}"
    if error.code in _RETRYABLE or isinstance(error, Unavailable):
        text += f" Nothing was lost: make the very same call of {tool} again in a minute; it is not done twice."
    return text_result(text, is_error=True)
