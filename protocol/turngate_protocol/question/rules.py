"""The rules of a request and of its resolution, and what the model gets back.

The rule book is the question protocol. A resolution is held against the one request that it answers: a digest is
computed again, never believed. Answers are neither sorted nor trimmed nor matched loosely: what does not fit exactly
is refused, so that nothing counts as an answer that nobody gave.
"""

import re
from typing import Final

from msgspec import Struct

from turngate_protocol.question.digest import canonical_json, freeform_digest, spec_digest
from turngate_protocol.question.errors import InvalidQuestionError, QuestionMismatchError, shown
from turngate_protocol.question.model import (
    CHAT_BYTES,
    CUSTOM_BYTES,
    LABEL_BYTES,
    MAX_OPTIONS,
    MAX_QUESTIONS,
    Answer,
    Question,
    Request,
    RequestKind,
    Resolution,
    Spec,
)
from turngate_protocol.question.spec import check_identity, check_text
from turngate_protocol.text import is_blank

_DIGEST: Final = re.compile("[0-9a-fA-F]{64}")


class _Reply(Struct, frozen=True, omit_defaults=True):
    answers: tuple[Answer, ...] = ()
    chat: str = ""


def new_request(request_id: str, tool_call_id: str, spec: Spec) -> Request:
    """Bind a spec to its identities.

    Raises:
        InvalidQuestionError: the spec or an identity breaks a rule.
    """
    check_identity("id", request_id)
    check_identity("tool_call_id", tool_call_id)
    return Request(
        id=request_id, tool_call_id=tool_call_id, schema_digest=spec_digest(spec), questions=tuple(spec.questions)
    )


def new_freeform_request(request_id: str, tool_call_id: str, prompt: str) -> Request:
    """Bind a prompt to its identities.

    Raises:
        InvalidQuestionError: the prompt or an identity breaks a rule.
    """
    check_identity("id", request_id)
    check_identity("tool_call_id", tool_call_id)
    return Request(
        id=request_id,
        tool_call_id=tool_call_id,
        schema_digest=freeform_digest(prompt),
        kind=RequestKind.FREEFORM,
        prompt=prompt,
    )


def request_count(request: Request) -> int:
    """Return how many decisions a person sees: the number of questions, or 1 for a free-form request."""
    return 1 if request.kind is RequestKind.FREEFORM else len(request.questions)


def validate_request(request: Request) -> None:
    """Check identities and content of a request, and that its digest is that of its content.

    Raises:
        InvalidQuestionError: the first rule that it breaks.
    """
    check_identity("id", request.id)
    check_identity("tool_call_id", request.tool_call_id)
    if request.kind is RequestKind.FREEFORM:
        if request.questions:
            raise InvalidQuestionError("questions", "are there beside a prompt", "ask a free-form request without them")
        digest = freeform_digest(request.prompt)
    else:
        if request.prompt:
            raise InvalidQuestionError("prompt", "is there beside questions", "ask a structured request without it")
        digest = spec_digest(Spec(request.questions))
    if request.schema_digest != digest:
        raise InvalidQuestionError(
            "schema_digest", f"{shown(request.schema_digest)} is not that of the content", f"the content has {digest}"
        )


def validate_resolution_shape(resolution: Resolution) -> None:
    """Check what can be checked of a resolution without its request: identities, counts and sizes.

    A digest in upper case, duplicates and labels that nobody offered pass here; `validate_resolution` refuses them.

    Raises:
        InvalidQuestionError: the first rule that it breaks.
    """
    check_identity("request_id", resolution.request_id)
    if not _DIGEST.fullmatch(resolution.schema_digest):
        raise InvalidQuestionError(
            "schema_digest", f"{shown(resolution.schema_digest)} is no digest", "copy the question's 64 hex digits"
        )
    if resolution.chat and resolution.answers:
        raise InvalidQuestionError("chat", "is there beside answers", "give either all answers or one chat text")
    if resolution.chat:
        check_text("chat", resolution.chat, CHAT_BYTES)
        return
    if not resolution.answers:
        raise InvalidQuestionError("answers", "are missing", "answer every question, or give one chat text")
    if len(resolution.answers) > MAX_QUESTIONS:
        raise InvalidQuestionError(
            "answers", f"has {len(resolution.answers)} entries", f"no request has more than {MAX_QUESTIONS} questions"
        )
    for index, answer in enumerate(resolution.answers):
        _validate_answer_shape(f"answers[{index}]", answer)


def _validate_answer_shape(path: str, answer: Answer) -> None:
    if answer.custom and answer.selections:
        raise InvalidQuestionError(path, "has selections and a custom text", "give one of the two")
    if answer.custom:
        check_text(f"{path}.custom", answer.custom, CUSTOM_BYTES)
        return
    if not answer.selections:
        raise InvalidQuestionError(path, "is empty", "select an option or give a custom text")
    if len(answer.selections) > MAX_OPTIONS:
        raise InvalidQuestionError(
            f"{path}.selections",
            f"has {len(answer.selections)} entries",
            f"no question has more than {MAX_OPTIONS} options",
        )
    for index, label in enumerate(answer.selections):
        check_text(f"{path}.selections[{index}]", label, LABEL_BYTES)


def check_same(field: str, given: str, expected: str) -> None:
    """Check that a response names what the question has.

    Args:
        field: `request_id` or `schema_digest`.
        given: what the response names.
        expected: what the question has.

    Raises:
        QuestionMismatchError: the two differ, if only in case.
    """
    if given != expected:
        raise QuestionMismatchError(field, given, expected)


def validate_resolution(request: Request, resolution: Resolution) -> None:
    """Check that `resolution` is one complete response to exactly `request`.

    Raises:
        InvalidQuestionError: the request or the response breaks a rule.
        QuestionMismatchError: the response is for another request, or for another version of it.
    """
    validate_request(request)
    validate_resolution_shape(resolution)
    check_same("request_id", resolution.request_id, request.id)
    check_same("schema_digest", resolution.schema_digest, request.schema_digest)
    if resolution.chat:
        return
    if request.kind is RequestKind.FREEFORM:
        raise InvalidQuestionError("answers", "are given to a free-form question", "give one chat text")
    if len(resolution.answers) != len(request.questions):
        raise InvalidQuestionError(
            "answers", f"has {len(resolution.answers)} entries", f"give {len(request.questions)}, one for each question"
        )
    for index, (question, answer) in enumerate(zip(request.questions, resolution.answers, strict=True)):
        if answer.selections:
            _validate_selections(f"answers[{index}].selections", question, answer.selections)


def _validate_selections(path: str, question: Question, selections: tuple[str, ...]) -> None:
    if not question.multiple and len(selections) != 1:
        raise InvalidQuestionError(path, f"has {len(selections)} entries", "this question takes exactly one")
    places = {option.label: place for place, option in enumerate(question.options)}
    last = -1
    for index, label in enumerate(selections):
        place = places.get(label)
        if place is None:
            raise InvalidQuestionError(
                f"{path}[{index}]", f"{shown(label)} is not offered", "select labels of the question's options"
            )
        if place <= last:
            raise InvalidQuestionError(
                f"{path}[{index}]", f"{shown(label)} is out of order", "select each once, in the order offered"
            )
        last = place


def blank_part(resolution: Resolution) -> str | None:
    """Return the path of the first text of a person that is only white space, or None.

    The protocol lets such a text pass; a service that must not take it for an answer asks here. Selections are not
    looked at: choosing an option is an answer, whatever its label looks like.
    """
    if resolution.chat and is_blank(resolution.chat):
        return "chat"
    for index, answer in enumerate(resolution.answers):
        if answer.custom and is_blank(answer.custom):
            return f"answers[{index}].custom"
    return None


def encode_resolution(resolution: Resolution) -> str:
    """Return what the model gets back: the canonical JSON of `{answers?, chat?}`.

    Raises:
        InvalidQuestionError: a text in it is not valid Unicode.
    """
    return canonical_json(_Reply(resolution.answers, resolution.chat)).decode()
