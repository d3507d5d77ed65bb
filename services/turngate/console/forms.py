"""What people do on pages: each form as a request of the catalogue, and what is said when it was done."""

import secrets
from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import Struct
from starlette.datastructures import FormData

from turngate.console.auth import text_of
from turngate.console.operations import BY_NAME, Operation
from turngate_contracts.dead import DeadDecided
from turngate_contracts.esm import ObjectiveStands
from turngate_contracts.messages import AnswerRecorded, TurnDismissed
from turngate_contracts.questions import QuestionOutcome
from turngate_protocol.question.model import MAX_QUESTIONS

Fill = Callable[[FormData], dict[str, Any]]


class Form(Struct, frozen=True):
    """One form.

    Attributes:
        path: where it is sent to.
        operation: what does it.
        fill: the fields of the request, from those of the form.
        said: what is said when it was done, from what the service says.
        page: the page to show then, with the parts of the path in it.
    """

    path: str
    operation: Operation
    fill: Fill
    said: Callable[[Any], str]
    page: str

    def request(self, path: Mapping[str, Any], form: FormData) -> Struct:
        """Return the request that a form makes.

        Raises:
            InvalidMessage: a field is missing, or no number where it should be one.
        """
        given = self.fill(form)
        if "op" in self.operation.other_fields():
            given["op"] = text_of(form, "op") or new_op()
        return self.operation.build(path, given, typed=False)


def new_op() -> str:
    """Return a new operation id: repeating a form with it does nothing a second time."""
    return secrets.token_hex(12)


def _fields(*names: str) -> Fill:
    return lambda form: {name: text_of(form, name) for name in names}


def _answer(form: FormData) -> dict[str, Any]:
    # From the tenth option on there is no number: those are named by their block and their own id.
    picked = text_of(form, "option")
    block, named, option = picked.partition("/")
    which = {"block": block, "option": option} if named else {"number": picked}
    return {"turn": text_of(form, "turn"), **which, "text": _lines(text_of(form, "text"))}


def _question(form: FormData) -> dict[str, Any]:
    return {"request_id": text_of(form, "id"), "schema_digest": text_of(form, "digest")}


def _resolve(form: FormData) -> dict[str, Any]:
    answers = []
    for place in range(MAX_QUESTIONS):
        choices, custom = form.getlist(f"choice-{place}"), _lines(text_of(form, f"custom-{place}"))
        if f"choice-{place}" not in form and f"custom-{place}" not in form:
            continue
        selections = [choice for choice in choices if isinstance(choice, str) and choice]
        answers.append({"selections": selections, "custom": custom})
    return {**_question(form), "answers": answers}


def _chat(form: FormData) -> dict[str, Any]:
    return {**_question(form), "chat": _lines(text_of(form, "text"))}


def _text(form: FormData) -> dict[str, Any]:
    return {"text": _lines(text_of(form, "text"))}


def _create(form: FormData) -> dict[str, Any]:
    ids = {name: text_of(form, name).strip() for name in ("session", "pool", "work_dir", "mode")}
    return {**ids, **_text(form)}


def _lines(text: str) -> str:
    # Browsers send CR LF for a line break; nobody typed a CR.
    return text.replace("\r\n", "\n")


def _answered(reply: AnswerRecorded) -> str:
    return f"Answered turn {reply.turn} of {reply.session}: {reply.answer.label}"


def _dismissed(reply: TurnDismissed) -> str:
    return f"Dismissed the card of turn {reply.turn} of {reply.session}"


def _decided(reply: QuestionOutcome) -> str:
    return f"The question of {reply.session} is {reply.outcome.kind.value}"


def _done(what: str) -> Callable[[ObjectiveStands], str]:
    return lambda reply: f"{what}: {reply.session}"


def _letter(reply: DeadDecided) -> str:
    return f"The dead letter is {reply.entry.status.value}"


def _form(path: str, name: str, fill: Fill, said: Callable[[Any], str], page: str) -> Form:
    return Form(path, BY_NAME[name], fill, said, page)


_SESSION: Final = "/sessions/{session}"
_ASKED: Final = "/questions/{session}"
_DRIVEN: Final = "/objectives/{session}"

FORMS: Final = (
    _form(f"{_SESSION}/answer", "turn.answer", _answer, _answered, _SESSION),
    _form(f"{_SESSION}/dismiss", "turn.dismiss", _fields("turn"), _dismissed, _SESSION),
    _form(f"{_ASKED}/resolve", "question.resolve", _resolve, _decided, _ASKED),
    _form(f"{_ASKED}/chat", "question.resolve", _chat, _decided, _ASKED),
    _form(f"{_ASKED}/cancel", "question.reject", _question, _decided, _ASKED),
    _form(
        "/objectives",
        "esm.create",
        _create,
        _done("The objective is created"),
        _DRIVEN,
    ),
    _form(f"{_DRIVEN}/edit", "esm.edit", _text, _done("The objective is edited"), _DRIVEN),
    _form(f"{_DRIVEN}/guide", "esm.guide", _text, _done("Your guidance waits for the next run"), _DRIVEN),
    _form(f"{_DRIVEN}/pause", "esm.pause", _fields(), _done("Paused"), _DRIVEN),
    _form(f"{_DRIVEN}/resume", "esm.resume", _fields(), _done("Resumed"), _DRIVEN),
    _form(f"{_DRIVEN}/run", "esm.run", _fields(), _done("The next run is wanted now"), _DRIVEN),
    _form(f"{_DRIVEN}/clear", "esm.clear", _fields(), _done("The objective is cleared"), "/objectives"),
    _form("/dead/{letter}/retry", "dead.retry", _fields("why"), _letter, "/fleet"),
    _form("/dead/{letter}/drop", "dead.drop", _fields("why"), _letter, "/fleet"),
)
"""Every form but those of logging in and out."""
