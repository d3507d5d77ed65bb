"""The two tools as they are declared to a model, and the results that it gets.

The rule book is the question protocol: local tools of read risk in the catalogue `coding.question`. They only pause
the agent; running one directly is an error, for only this system answers. The schemas bound counts with minItems and
maxItems; sizes are in bytes, which JSON Schema can't count, so they stand in the descriptions and the decoder checks
them.
"""

from typing import Any, Final

from msgspec import Struct

from turngate_protocol.question.model import (
    ASK_USER,
    ASK_USER_TEXT,
    CATALOG,
    DESCRIPTION_BYTES,
    HEADER_BYTES,
    LABEL_BYTES,
    MAX_OPTIONS,
    MAX_QUESTIONS,
    MIN_OPTIONS,
    MIN_QUESTIONS,
    PREVIEW_BYTES,
    PROMPT_BYTES,
    QUESTION_BYTES,
)
from turngate_protocol.question.rules import encode_resolution
from turngate_protocol.question.session import Outcome, OutcomeKind

CANCELLATION: Final = "The user dismissed this question without an answer."
"""What the model gets, as a tool error, when a person cancels its question."""
EXPIRY: Final = "Nobody answered this question in the time it was given."
"""What the model gets, as a tool error, when its question expires without an answer."""

_ALONE: Final = "Call it alone, with no other tool beside it."
_DIRECT_RUN: Final = (
    "This tool does not run by itself: it waits for the user, and only the user's answer is its result."
)


class ToolDeclaration(Struct, frozen=True):
    """A tool as a model is told of it; `parameters` is the JSON Schema of its arguments."""

    name: str
    description: str
    parameters: dict[str, Any]
    catalog: str = CATALOG
    local: bool = True
    risk: str = "read"
    tags: tuple[str, ...] = ("question", "user", "interactive")


class ToolResult(Struct, frozen=True):
    """What a tool call gives back to the model."""

    content: str
    is_error: bool = False


def tool_declarations() -> tuple[ToolDeclaration, ToolDeclaration]:
    """Return the declarations of `ask_user` and `ask_user_text`, made anew for each caller."""
    return (
        ToolDeclaration(
            ASK_USER,
            f"Ask the user {MIN_QUESTIONS} to {MAX_QUESTIONS} questions with options to choose from, and wait. "
            f"The user may also write an own answer to a question, or reply in chat. {_ALONE}",
            _object({"questions": _list(_question(), MIN_QUESTIONS, MAX_QUESTIONS)}),
        ),
        ToolDeclaration(
            ASK_USER_TEXT,
            f"Ask the user one question to be answered in free text, and wait. {_ALONE}",
            _object({"question": _text("What to ask.", PROMPT_BYTES)}),
        ),
    )


def tool_result(outcome: Outcome) -> ToolResult:
    """Return what the asking call gives back to the model once its question is decided."""
    if outcome.kind is OutcomeKind.CANCELLED:
        return ToolResult(CANCELLATION, is_error=True)
    if outcome.resolution is None:
        return ToolResult(EXPIRY, is_error=True)
    return ToolResult(encode_resolution(outcome.resolution))


def direct_run_result() -> ToolResult:
    """Return the error that a host gives when something runs one of the tools directly."""
    return ToolResult(_DIRECT_RUN, is_error=True)


def _question() -> dict[str, Any]:
    multiple = {"type": "boolean", "description": "Whether the user may choose several options."}
    return _object(
        {
            "header": _text("A short title, different for each question.", HEADER_BYTES),
            "question": _text("The question in full.", QUESTION_BYTES),
            "options": _list(_option(), MIN_OPTIONS, MAX_OPTIONS),
        },
        {"multiple": multiple},
    )


def _option() -> dict[str, Any]:
    return _object(
        {
            "label": _text("What to choose, different for each option.", LABEL_BYTES),
            "description": _text("What choosing it means.", DESCRIPTION_BYTES),
        },
        {"preview": {"type": "string", "description": f"A longer text to look at, at most {PREVIEW_BYTES} bytes."}},
    )


def _object(required: dict[str, Any], optional: dict[str, Any] | None = None) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": required | (optional or {}),
        "required": list(required),
        "additionalProperties": False,
    }


def _list(items: dict[str, Any], least: int, most: int) -> dict[str, Any]:
    return {"type": "array", "items": items, "minItems": least, "maxItems": most}


def _text(purpose: str, limit: int) -> dict[str, Any]:
    return {"type": "string", "minLength": 1, "description": f"{purpose} At most {limit} bytes of UTF-8."}
