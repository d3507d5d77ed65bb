"""What can be wrong with a question, an answer or a command, as a closed set of kinds.

The rules raise a `QuestionError`; the machine of `asked` returns a `Refusal`, because a refused command is an
ordinary outcome there. Both carry a kind, one sentence that names the value and the way out, and the facts as
`details`. No text of a model or a person gets into a message without its control characters made visible.
"""

from enum import StrEnum
from typing import Final

from msgspec import Struct

from turngate_protocol.text import visible

_SHOWN_CHARACTERS: Final = 60


class RefusalKind(StrEnum):
    """Why a call, a response or a command was refused; the first three are the protocol's, the rest the service's."""

    INVALID = "invalid"
    NO_PENDING = "no_pending"
    MISMATCH = "mismatch"
    INVALID_ID = "invalid_id"
    BLANK_ANSWER = "blank_answer"
    POOL_MISMATCH = "pool_mismatch"
    ANOTHER_PENDING = "another_pending"
    ALREADY_RESOLVED = "already_resolved"
    NOT_DUE = "not_due"


Details = dict[str, str | int | None]
"""The facts behind a refusal, ready for JSON."""


class Refusal(Struct, frozen=True):
    """A command that changed nothing, and why."""

    kind: RefusalKind
    message: str
    details: Details


class QuestionError(Exception):
    """The base of every error that this package raises.

    Attributes:
        kind: which kind it is.
        message: one sentence that names the value and the way out.
        details: the facts, ready for JSON.
    """

    kind: RefusalKind

    def __init__(self, message: str, details: Details) -> None:
        super().__init__(message)
        self.message = message
        self.details = details


class RefusedError(QuestionError):
    """A command does not fit the state that it meets; which of the service's kinds it is, is an argument."""

    def __init__(self, kind: RefusalKind, message: str, details: Details) -> None:
        super().__init__(message, details)
        self.kind = kind


class InvalidQuestionError(QuestionError):
    """A call, a request or a resolution breaks the protocol.

    Attributes:
        path: the part that breaks it, such as `questions[0].header`.
        problem: what is wrong with it, to be read after the path.
        remedy: what to do instead.
    """

    kind = RefusalKind.INVALID

    def __init__(self, path: str, problem: str, remedy: str) -> None:
        super().__init__(f"{path} {problem}: {remedy}.", {"path": path})
        self.path = path
        self.problem = problem
        self.remedy = remedy


class InvalidIdError(QuestionError):
    """A session, pool, runner or task id is none.

    Attributes:
        field: which id it is.
        value: what was given.
    """

    kind = RefusalKind.INVALID_ID

    def __init__(self, field: str, value: str) -> None:
        super().__init__(
            f"{field} {shown(value)} is no id: use 1 to 128 of the characters A-Z, a-z, 0-9, _ and -.", {"field": field}
        )
        self.field = field
        self.value = value


class QuestionMismatchError(QuestionError):
    """A response names another request, or another version of it, than the one that it is held against.

    Attributes:
        field: `request_id` or `schema_digest`.
        given: what the response names.
        expected: what the request has.
    """

    kind = RefusalKind.MISMATCH

    def __init__(self, field: str, given: str, expected: str) -> None:
        super().__init__(
            f"{field} {shown(given)} is not that of the question, {shown(expected)}: read the question again and "
            "answer that one.",
            {"field": field, "given": visible(given[:128]), "expected": expected},
        )
        self.field = field
        self.given = given
        self.expected = expected


def refusal_of(error: QuestionError) -> Refusal:
    """Return `error` as data."""
    return Refusal(error.kind, error.message, error.details)


def shown(text: str) -> str:
    """Return `text` in quotes, safe to show and short enough for a sentence."""
    cut = text[:_SHOWN_CHARACTERS]
    return f'"{visible(cut)}{"…" if len(text) > len(cut) else ""}"'
