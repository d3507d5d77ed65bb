"""A session's question: what is asked, what each option means, what happens without an answer, how it came out."""

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from turngate.console.views.texts import Chip, Fact, count, facts, many_lines, one_line
from turngate.console.views.times import Time, time
from turngate_contracts.questions import QuestionFound
from turngate_protocol.question import (
    Answer,
    AnswerAfter,
    DecidedBy,
    ExpireAfter,
    Lineage,
    Outcome,
    OutcomeKind,
    PendingQuestion,
    Request,
    RequestKind,
)
from turngate_protocol.spans import span

_OUTCOME: Final = {
    OutcomeKind.ANSWERED: "good",
    OutcomeKind.CHAT: "good",
    OutcomeKind.CANCELLED: "idle",
    OutcomeKind.EXPIRED: "warn",
}


class Choice(Struct, frozen=True):
    """An option: `value` is the label as it must come back, `label` as it may be shown."""

    number: int
    value: str
    label: str
    description: str
    preview: str


class Part(Struct, frozen=True):
    """One question of a request; `place` counts from 0, as the form's fields do."""

    place: int
    header: str
    question: str
    multiple: bool
    choices: tuple[Choice, ...]


class Waiting(Struct, frozen=True):
    """A question that waits; `freeform` when it wants one text. `decides` is what its policy does without an answer."""

    id: str
    digest: str
    freeform: bool
    prompt: str
    parts: tuple[Part, ...]
    asked: Time
    expires: Time | None
    decides: str
    facts: tuple[Fact, ...]
    parent: str


class Said(Struct, frozen=True):
    """What was answered to one part."""

    header: str
    text: str
    own: bool


class Decided(Struct, frozen=True):
    """How a question came out, and who decided it."""

    id: str
    chip: Chip
    by: str
    at: Time
    asked: Time
    said: tuple[Said, ...]
    chat: str


class QuestionPage(Struct, frozen=True):
    """Everything that the page of a session's questions shows."""

    session: str
    pool: str
    waiting: Waiting | None
    outcome: Decided | None


def page(found: QuestionFound, now: int) -> QuestionPage:
    """Return what the page of a session's questions shows at `now`, in ms since the epoch."""
    return QuestionPage(
        found.session,
        found.pool,
        waiting(found.pending, found.pool, now) if found.pending else None,
        _decided(found.outcome, now) if found.outcome else None,
    )


def waiting(pending: PendingQuestion, pool: str, now: int) -> Waiting:
    """Return a question that waits, as a page shows it."""
    request = pending.request
    return Waiting(
        request.id,
        request.schema_digest,
        request.kind is RequestKind.FREEFORM,
        many_lines(request.prompt),
        _parts(request),
        time(pending.asked_at, now),
        time(pending.expires_at, now) if pending.expires_at else None,
        _decides(pending, now),
        facts(
            ("Runner", one_line(pending.runner)),
            ("Pool", one_line(pool)),
            ("Turn", str(pending.turn or "")),
            ("For", _lineage(pending.lineage)),
        ),
        pending.lineage.parent_session if pending.lineage else "",
    )


def asks(request: Request) -> str:
    """Return what a request asks, on one line."""
    first = request.prompt if request.kind is RequestKind.FREEFORM else request.questions[0].question
    return one_line(first)


def kind_of(request: Request) -> str:
    """Return in words how a request is answered."""
    if request.kind is RequestKind.FREEFORM:
        return "one text"
    if len(request.questions) > 1:
        return count(len(request.questions), "question")
    return "any number of options" if request.questions[0].multiple else "one option"


def _parts(request: Request) -> tuple[Part, ...]:
    return tuple(
        Part(
            place,
            one_line(question.header),
            many_lines(question.question),
            question.multiple,
            tuple(
                Choice(
                    number, option.label, one_line(option.label), many_lines(option.description),
                    many_lines(option.preview),
                )
                for number, option in enumerate(question.options, 1)
            ),
        )
        for place, question in enumerate(request.questions)
    )  # fmt: skip


def _decides(pending: PendingQuestion, now: int) -> str:
    policy = pending.policy
    if not isinstance(policy, ExpireAfter | AnswerAfter) or pending.expires_at is None:
        return ""
    left = pending.expires_at - now
    when = f"In {span(left)}" if left > 0 else "Any moment now"
    if isinstance(policy, ExpireAfter):
        return f"{when} it expires, and the agent goes on without an answer."
    said = one_line(policy.chat) or "; ".join(_answer(answer) for answer in policy.answers)
    return f"{when} it takes this answer by itself: {said}"


def _decided(outcome: Outcome, now: int) -> Decided:
    return Decided(
        one_line(outcome.request_id),
        Chip(outcome.kind.value, _OUTCOME.get(outcome.kind, "idle")),
        one_line(outcome.by) if outcome.decided_by is DecidedBy.PERSON else "its policy",
        time(outcome.at, now),
        time(outcome.asked_at, now),
        tuple(_said(outcome)),
        many_lines(outcome.resolution.chat) if outcome.resolution else "",
    )


def _said(outcome: Outcome) -> Iterable[Said]:
    answers = outcome.resolution.answers if outcome.resolution else ()
    asked = outcome.request.questions if outcome.request else ()
    for place, answer in enumerate(answers):
        header = one_line(asked[place].header) if place < len(asked) else f"Question {place + 1}"
        yield Said(header, _answer(answer), bool(answer.custom))


def _answer(answer: Answer) -> str:
    return many_lines(answer.custom) or ", ".join(one_line(label) for label in answer.selections)


def _lineage(lineage: Lineage | None) -> str:
    if lineage is None:
        return ""
    task = f", task {lineage.task}" if lineage.task else ""
    return one_line(f"session {lineage.parent_session}{task}")
