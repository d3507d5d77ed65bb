"""The rules of a spec: what an agent may ask, and what every text and identity of the protocol must be.

The rule book is the question protocol: lengths count UTF-8 bytes, a text is valid Unicode without NUL and is there
unless it is optional, an identity also stays on one line. A text of white space alone is a text here; that such a
text is no answer is the business of `asked`.
"""

from collections.abc import Sequence
from typing import Final

from turngate_protocol.question.errors import InvalidQuestionError, shown
from turngate_protocol.question.model import (
    DESCRIPTION_BYTES,
    HEADER_BYTES,
    IDENTITY_BYTES,
    LABEL_BYTES,
    MAX_OPTIONS,
    MAX_QUESTIONS,
    MIN_OPTIONS,
    MIN_QUESTIONS,
    PREVIEW_BYTES,
    QUESTION_BYTES,
    Question,
    Spec,
)
from turngate_protocol.text import byte_length, has_surrogate

_LINE_BREAKS: Final = ("\n", "\r")


def check_text(path: str, text: str, limit: int) -> None:
    """Check one text that has to be there.

    Args:
        path: where it stands, for the error.
        text: the text.
        limit: the most UTF-8 bytes it may have.

    Raises:
        InvalidQuestionError: it is empty, too long, holds NUL or is not valid Unicode.
    """
    if not text:
        raise InvalidQuestionError(path, "is empty", "give it a text")
    check_optional_text(path, text, limit)


def check_optional_text(path: str, text: str, limit: int) -> None:
    """Check one text that may be empty; arguments and errors as in `check_text`."""
    if "\0" in text:
        raise InvalidQuestionError(path, "holds a NUL character", "leave it out")
    if has_surrogate(text):
        raise InvalidQuestionError(path, "holds a lone surrogate, which is not valid Unicode", "leave it out")
    if (size := byte_length(text)) > limit:
        raise InvalidQuestionError(path, f"is {size} bytes long", f"shorten it to at most {limit} bytes of UTF-8")


def check_identity(path: str, identity: str) -> None:
    """Check the id of a request, a tool call, an actor or an operation.

    Raises:
        InvalidQuestionError: it is no text of at most 512 bytes on one line.
    """
    check_text(path, identity, IDENTITY_BYTES)
    if any(mark in identity for mark in _LINE_BREAKS):
        raise InvalidQuestionError(path, f"{shown(identity)} holds a line break", "keep it on one line")


def validate_spec(spec: Spec) -> None:
    """Check what an agent wants to ask.

    Raises:
        InvalidQuestionError: the first part that breaks a rule, in reading order.
    """
    validate_questions(spec.questions)


def validate_questions(questions: Sequence[Question]) -> None:
    """Check the questions of a spec or of a structured request; errors as in `validate_spec`."""
    _check_count("questions", len(questions), MIN_QUESTIONS, MAX_QUESTIONS)
    headers: set[str] = set()
    for index, question in enumerate(questions):
        path = f"questions[{index}]"
        check_text(f"{path}.header", question.header, HEADER_BYTES)
        _check_unique(f"{path}.header", question.header, headers)
        check_text(f"{path}.question", question.question, QUESTION_BYTES)
        _validate_options(path, question)


def _validate_options(path: str, question: Question) -> None:
    _check_count(f"{path}.options", len(question.options), MIN_OPTIONS, MAX_OPTIONS)
    labels: set[str] = set()
    for index, option in enumerate(question.options):
        where = f"{path}.options[{index}]"
        check_text(f"{where}.label", option.label, LABEL_BYTES)
        _check_unique(f"{where}.label", option.label, labels)
        check_text(f"{where}.description", option.description, DESCRIPTION_BYTES)
        check_optional_text(f"{where}.preview", option.preview, PREVIEW_BYTES)


def _check_count(path: str, count: int, least: int, most: int) -> None:
    if not least <= count <= most:
        raise InvalidQuestionError(path, f"has {count} entries", f"give {least} to {most}")


def _check_unique(path: str, text: str, seen: set[str]) -> None:
    if text in seen:
        raise InvalidQuestionError(path, f"{shown(text)} is there twice", "tell the two apart")
    seen.add(text)
