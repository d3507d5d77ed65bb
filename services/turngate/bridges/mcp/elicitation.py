"""A question as a form that an MCP client shows by itself, and what a person filled in as an answer.

Forms of MCP are flat and know no choice with a free text beside it, and older ones no choice of several: so a question
with one choice is a field, one with several is a tick for each option, and each has a field for a person's own words.
"""

from collections.abc import Mapping
from typing import Any, Final

from mcp_types import ElicitRequestedSchema

from turngate_protocol.question.model import Answer, Question, Request, RequestKind
from turngate_protocol.text import is_blank

_TEXT: Final = "answer"


class Unanswered(ValueError):
    """The form does not answer the question; the message says what is missing, for the person."""


def form_of(request: Request) -> tuple[str, ElicitRequestedSchema]:
    """Return the message and the fields of the form for a question."""
    if request.kind is RequestKind.FREEFORM:
        field = {"type": "string", "title": "Answer", "minLength": 1}
        return request.prompt, {"type": "object", "properties": {_TEXT: field}, "required": [_TEXT]}
    fields: dict[str, Any] = {}
    for number, question in enumerate(request.questions, 1):
        fields |= _fields(number, question)
    message = "\n\n".join(f"{question.header}: {question.question}" for question in request.questions)
    return message, {"type": "object", "properties": fields}


def answer_of(request: Request, content: Mapping[str, Any] | None) -> tuple[tuple[Answer, ...], str]:
    """Return the answers, or the chat text, that a form was filled in with.

    Raises:
        Unanswered: something is missing.
    """
    given = content or {}
    if request.kind is RequestKind.FREEFORM:
        text = given.get(_TEXT)
        if not isinstance(text, str) or is_blank(text):
            raise Unanswered("Please write an answer.")
        return (), text
    return tuple(_answer(number, question, given) for number, question in enumerate(request.questions, 1)), ""


def _fields(number: int, question: Question) -> dict[str, Any]:
    own = {"type": "string", "title": f"{question.header}: in your own words", "description": "Instead of the options."}
    if question.multiple:
        ticks = {
            f"q{number}_{place}": {
                "type": "boolean",
                "title": f"{question.header}: {option.label}",
                "description": option.description,
            }
            for place, option in enumerate(question.options, 1)
        }
        return ticks | {f"q{number}_own": own}
    choice = {
        "type": "string",
        "title": question.header,
        "description": "; ".join(f"{option.label}: {option.description}" for option in question.options),
        "enum": [option.label for option in question.options],
    }
    return {f"q{number}": choice, f"q{number}_own": own}


def _answer(number: int, question: Question, given: Mapping[str, Any]) -> Answer:
    own = given.get(f"q{number}_own")
    if isinstance(own, str) and not is_blank(own):
        return Answer(custom=own)
    labels = [option.label for option in question.options]
    if question.multiple:
        chosen = [label for place, label in enumerate(labels, 1) if given.get(f"q{number}_{place}") is True]
    else:
        chosen = [label for label in labels if given.get(f"q{number}") == label]
    if not chosen:
        raise Unanswered(f"Please answer {question.header!r} too.")
    return Answer(tuple(chosen))
