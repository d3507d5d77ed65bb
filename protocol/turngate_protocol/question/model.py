"""The values of the question protocol: what an agent asks, what a person answers, and how big each part may be.

The rule book is the question protocol of the Go original, whose JSON names and field order these structures keep: the
order matters, for a digest is taken over it. A value here may still break the rules; `spec` and `rules` say whether
it does. Nothing is ever repaired, shortened or filled in.
"""

from enum import StrEnum
from typing import Final

from msgspec import Struct, field

CATALOG: Final = "coding.question"
"""The catalogue that the two tools belong to."""
ASK_USER: Final = "ask_user"
"""The tool that asks structured questions."""
ASK_USER_TEXT: Final = "ask_user_text"
"""The tool that asks one question to be answered in free text."""

MIN_QUESTIONS: Final = 1
MAX_QUESTIONS: Final = 4
MIN_OPTIONS: Final = 2
MAX_OPTIONS: Final = 4

# All in UTF-8 bytes.
HEADER_BYTES: Final = 64
QUESTION_BYTES: Final = 4096
LABEL_BYTES: Final = 128
DESCRIPTION_BYTES: Final = 1024
PREVIEW_BYTES: Final = 16 * 1024
CUSTOM_BYTES: Final = 4096
CHAT_BYTES: Final = 16 * 1024
PROMPT_BYTES: Final = 4096
IDENTITY_BYTES: Final = 512
REASON_BYTES: Final = 1024


class RequestKind(StrEnum):
    """Whether a request offers choices or wants one free text."""

    STRUCTURED = ""
    FREEFORM = "freeform"


class Option(Struct, frozen=True, omit_defaults=True):
    """One choice that the agent offers; `preview` is a longer text to look at before choosing."""

    label: str
    description: str
    preview: str = ""


class Question(Struct, frozen=True, omit_defaults=True):
    """One question with its options in the order offered; `multiple` lets a person choose several."""

    header: str
    question: str
    options: tuple[Option, ...]
    multiple: bool = False


class Spec(Struct, frozen=True):
    """What the agent passes to `ask_user`: one to four questions."""

    questions: tuple[Question, ...]


def _no_questions() -> tuple[Question, ...]:
    # A factory of our own keeps `questions` in the JSON of a free-form request, where the original has it too.
    return ()


class Request(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A question bound to the tool call it came from; `schema_digest` fixes what exactly was asked."""

    id: str
    tool_call_id: str
    schema_digest: str
    kind: RequestKind = RequestKind.STRUCTURED
    prompt: str = ""
    questions: tuple[Question, ...] = field(default_factory=_no_questions)


class Answer(Struct, frozen=True, omit_defaults=True):
    """The answer to one question: labels of its options, or a text of the person's own."""

    selections: tuple[str, ...] = ()
    custom: str = ""


class Resolution(Struct, frozen=True, omit_defaults=True):
    """A response to one request: an answer to each question in the order asked, or one chat text."""

    request_id: str
    schema_digest: str
    answers: tuple[Answer, ...] = ()
    chat: str = ""


def tool_of(request: Request) -> str:
    """Return the name of the tool whose call became `request`."""
    return ASK_USER if request.kind is RequestKind.STRUCTURED else ASK_USER_TEXT


def is_same(one: Request, other: Request) -> bool:
    """Say whether two requests are the same question: id and digest are equal."""
    return (one.id, one.schema_digest) == (other.id, other.schema_digest)
