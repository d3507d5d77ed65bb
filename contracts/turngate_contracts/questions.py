"""The messages of questions: what a runner asks, what a person answers, and what comes back.

As those of `messages`: frozen, growing only by fields with defaults, times in ms since the epoch. A question is named
by its session, its request id and its digest, so that no answer can reach another question or another version of it.
`op` is a caller's own operation id: repeating a request with it has the same result.
"""

from typing import Final

from msgspec import Struct

from turngate_protocol.question.call import ToolCall
from turngate_protocol.question.model import Answer
from turngate_protocol.question.policy import Policy, WaitForEver
from turngate_protocol.question.session import Lineage, Outcome, PendingQuestion, SessionQuestions


class AskQuestion(Struct, frozen=True, omit_defaults=True):
    """Ask what a model's tool call asks. The identical call asked again gets the same question or its outcome.

    `batch` is how many calls the model made at once; `turn` counts from 1, 0 says that the runner counts none.
    """

    session: str
    pool: str
    runner: str
    call: ToolCall
    policy: Policy = WaitForEver()
    lineage: Lineage | None = None
    turn: int = 0
    batch: int = 1


class WaitingFor(Struct, frozen=True, omit_defaults=True):
    """The identity of the question that a session waits for already."""

    request_id: str
    schema_digest: str
    tool_call_id: str
    tool: str
    runner: str
    asked_at: int


class QuestionDenied(Struct, frozen=True, omit_defaults=True):
    """Nothing was asked. The model gets `reason` as its call's error, and may call `offer` instead where that is set.

    `waiting_for` is the other question that has to be decided first, if that was the reason.
    """

    reason: str
    offer: str = ""
    waiting_for: WaitingFor | None = None


class QuestionAsked(Struct, frozen=True, omit_defaults=True):
    """What became of an AskQuestion, exactly one of: it waits, it is decided already, nothing was asked."""

    session: str
    pending: PendingQuestion | None = None
    outcome: Outcome | None = None
    denied: QuestionDenied | None = None


class ResolveQuestion(Struct, frozen=True, omit_defaults=True):
    """Answer a question: an answer to each part of it in the order asked, or one chat text."""

    session: str
    request_id: str
    schema_digest: str
    answers: tuple[Answer, ...] = ()
    chat: str = ""
    op: str = ""


class RejectQuestion(Struct, frozen=True, omit_defaults=True):
    """Give a question up without an answer: its outcome is `cancelled`."""

    session: str
    request_id: str
    schema_digest: str
    op: str = ""


class QuestionOutcome(Struct, frozen=True, omit_defaults=True):
    """How a question came out; `repeated` when this very operation had decided it before. The request is left out."""

    session: str
    outcome: Outcome
    repeated: bool = False


class GetQuestion(Struct, frozen=True, omit_defaults=True):
    """Ask what a session's questions are: one of them, or what waits and the last outcome where none is named."""

    session: str
    request_id: str = ""


class QuestionFound(Struct, frozen=True, omit_defaults=True):
    """What is known at `revision`: the question that waits, whichever it is, and the outcome that was asked for."""

    session: str
    pool: str
    revision: int
    pending: PendingQuestion | None = None
    outcome: Outcome | None = None


class QuestionDue(Struct, frozen=True):
    """What a timer says when a question's time has come; the state decides whether it still means anything."""

    session: str
    request_id: str
    schema_digest: str
    expires_at: int


QUESTION_SCHEMAS: Final[dict[type[Struct], str]] = {
    AskQuestion: "ask_question.v1",
    QuestionAsked: "question_asked.v1",
    ResolveQuestion: "resolve_question.v1",
    RejectQuestion: "reject_question.v1",
    QuestionOutcome: "question_outcome.v1",
    GetQuestion: "get_question.v1",
    QuestionFound: "question_found.v1",
    QuestionDue: "question_due.v1",
    SessionQuestions: "session_questions.v1",
}
"""The name and version of every message of questions; `messages.SCHEMAS` holds them too."""
