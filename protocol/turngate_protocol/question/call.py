"""Tool calls of a model, decoded and decided: ask, deny, or not ours.

The rule book is the question protocol. Decoding is strict and repairs nothing: an unknown field, a key given twice or
a word after the end makes the call malformed. A malformed `ask_user` is denied with a reason and the simpler tool
offered; a malformed `ask_user_text` becomes a free-form request with a prompt of our own, so that an agent that
cannot spell its question still reaches its user. Both tools are called alone in their batch. Nothing is asked here:
what to do is returned.
"""

from typing import Final

from msgspec import Struct

from turngate_protocol.question import strict
from turngate_protocol.question.digest import (
    freeform_request_id,
    generic_request_id,
    spec_digest,
    structured_request_id,
)
from turngate_protocol.question.errors import InvalidQuestionError, shown
from turngate_protocol.question.model import (
    ASK_USER,
    ASK_USER_TEXT,
    REASON_BYTES,
    Option,
    Question,
    Request,
    Spec,
    is_same,
)
from turngate_protocol.question.rules import new_freeform_request, new_request
from turngate_protocol.text import cut_bytes

TOOLS: Final = (ASK_USER, ASK_USER_TEXT)
"""The names of the tools that ask a question."""

GENERIC_PROMPT: Final = (
    "The agent wants to ask you something, but its question could not be read. Tell it in your own words how to go on."
)
"""What a person sees when an `ask_user_text` call can't be read."""

_OFFER: Final = f' Or ask one plain question with {ASK_USER_TEXT} and {{"question": "…"}}.'


class ToolCall(Struct, frozen=True):
    """One tool call as the model made it: `args` is its raw JSON."""

    name: str
    id: str
    args: str


class CallAccepted(Struct, frozen=True, tag="accepted"):
    """The call asks `request`; the agent pauses until that is resolved."""

    request: Request


class CallDenied(Struct, frozen=True, tag="denied"):
    """The call asks nothing: the model gets `reason`, at most 1024 bytes, and may call `offer` if that is set."""

    reason: str
    offer: str = ""


# The wire shapes: an optional null counts as absent, which the model's own values have no room for.
class _OptionArgs(Struct, frozen=True, forbid_unknown_fields=True):
    label: str
    description: str
    preview: str | None = None


class _QuestionArgs(Struct, frozen=True, forbid_unknown_fields=True):
    header: str
    question: str
    options: tuple[_OptionArgs, ...]
    multiple: bool | None = None


class _SpecArgs(Struct, frozen=True, forbid_unknown_fields=True):
    questions: tuple[_QuestionArgs, ...] | str


class _TextArgs(Struct, frozen=True, forbid_unknown_fields=True):
    question: str


def request_from_call(name: str, tool_call_id: str, args: str | bytes) -> Request:
    """Return the request that a tool call asks.

    Args:
        name: the tool's name.
        tool_call_id: the id of the call.
        args: its raw JSON arguments, as text or UTF-8 bytes.

    Raises:
        InvalidQuestionError: the tool is not one of ours, or the call breaks a rule.
    """
    if name == ASK_USER:
        spec = _decode_spec(args)
        return new_request(structured_request_id(tool_call_id, spec_digest(spec)), tool_call_id, spec)
    if name == ASK_USER_TEXT:
        prompt = strict.convert("arguments", strict.load("arguments", args), _TextArgs).question
        return new_freeform_request(freeform_request_id(tool_call_id, prompt), tool_call_id, prompt)
    raise InvalidQuestionError("name", f"{shown(name)} asks no question", f"call {ASK_USER} or {ASK_USER_TEXT}")


def generic_request(tool_call_id: str) -> Request:
    """Return the free-form request that stands in for an `ask_user_text` call that can't be read.

    Raises:
        InvalidQuestionError: even the call's id breaks a rule.
    """
    return new_freeform_request(generic_request_id(tool_call_id), tool_call_id, GENERIC_PROMPT)


def request_or_generic(name: str, tool_call_id: str, args: str | bytes) -> Request:
    """Return the request of a call as `request_from_call`, or the generic one for a malformed `ask_user_text`.

    Raises:
        InvalidQuestionError: the call breaks a rule and nothing can stand in for it.
    """
    try:
        return request_from_call(name, tool_call_id, args)
    except InvalidQuestionError:
        if name != ASK_USER_TEXT:
            raise
    return generic_request(tool_call_id)


def decide_call(
    call: ToolCall, batch_size: int = 1, pending: Request | None = None
) -> CallAccepted | CallDenied | None:
    """Decide what to do with a tool call before it runs.

    Args:
        call: the call.
        batch_size: how many calls the model made at once, this one included.
        pending: the question that the session waits for already.

    Returns:
        The question to ask, or the denial for the model, or None for a call of another tool, which its owner decides.
    """
    if call.name not in TOOLS:
        return None
    if batch_size != 1:
        return _denied(f"{call.name} was one of {batch_size} calls: call it alone, with no other tool beside it.")
    try:
        request = request_or_generic(call.name, call.id, call.args)
    except InvalidQuestionError as error:
        offer = ASK_USER_TEXT if call.name == ASK_USER else ""
        return _denied(f"{call.name} asked nothing. {error.message}", offer)
    if pending is not None and not is_same(pending, request):
        return _denied(
            f"{call.name} asked nothing. The question {shown(pending.id)} of tool call {shown(pending.tool_call_id)} "
            "still waits for its answer: wait for that first."
        )
    return CallAccepted(request)


def _denied(reason: str, offer: str = "") -> CallDenied:
    # The offer must survive the cut: it is the way out.
    tail = _OFFER if offer else ""
    return CallDenied(cut_bytes(reason, REASON_BYTES - len(tail.encode())) + tail, offer)


def _decode_spec(args: str | bytes) -> Spec:
    questions = strict.convert("arguments", strict.load("arguments", args), _SpecArgs).questions
    if isinstance(questions, str):
        path = "arguments.questions"
        questions = strict.convert(path, strict.load(path, questions), tuple[_QuestionArgs, ...])
    return Spec(
        tuple(
            Question(
                q.header,
                q.question,
                tuple(Option(o.label, o.description, o.preview or "") for o in q.options),
                q.multiple or False,
            )
            for q in questions
        )
    )
