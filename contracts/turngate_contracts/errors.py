"""Every error that can cross the wire, listed once: its code, the number a micro service reports, and its shape.

A body is `{code, message, details}`. Codes are stable; messages are one sentence that names the value and the way out.
"""

from enum import StrEnum
from typing import Any, Final

from msgspec import Struct

_SHOWN: Final = 80


class ErrorCode(StrEnum):
    """The codes of error bodies. The refusals of the turn gate and of questions are among them under the same names."""

    INVALID_ID = "invalid_id"
    INVALID_MESSAGE = "invalid_message"
    INVALID = "invalid"
    PAYLOAD_TOO_LARGE = "payload_too_large"
    IDENTITY_MISMATCH = "identity_mismatch"
    POOL_MISMATCH = "pool_mismatch"
    ATTEMPT_CONFLICT = "attempt_conflict"
    SUPERSEDED = "superseded"
    TURN_DECIDED = "turn_decided"
    TURN_UNKNOWN = "turn_unknown"
    NO_CARD = "no_card"
    OPTION_UNKNOWN = "option_unknown"
    ALREADY_ANSWERED = "already_answered"
    ALREADY_DISMISSED = "already_dismissed"
    PROMPT_CONFLICT = "prompt_conflict"
    NO_PENDING = "no_pending"
    ANOTHER_PENDING = "another_pending"
    MISMATCH = "mismatch"
    BLANK_ANSWER = "blank_answer"
    ALREADY_RESOLVED = "already_resolved"
    TASK_NOT_TERMINAL = "task_not_terminal"
    TASK_CONFLICT = "task_conflict"
    OBJECTIVE_EXISTS = "objective_exists"
    INVALID_OBJECTIVE = "invalid_objective"
    INVALID_TRANSITION = "invalid_transition"
    INVALID_ARGUMENT = "invalid_argument"
    STALE_RUN = "stale_run"
    CLAIM_REFUSED = "claim_refused"
    NOT_FOUND = "not_found"
    PROCESS_KILLED = "process_killed"
    EXHAUSTED = "exhausted"
    OVERLOADED = "overloaded"
    UNAVAILABLE = "unavailable"
    INTERNAL = "internal"


STATUS: Final[dict[ErrorCode, int]] = {
    ErrorCode.INVALID_ID: 400,
    ErrorCode.INVALID_MESSAGE: 400,
    ErrorCode.INVALID: 400,
    ErrorCode.PAYLOAD_TOO_LARGE: 413,
    ErrorCode.IDENTITY_MISMATCH: 403,
    ErrorCode.POOL_MISMATCH: 403,
    ErrorCode.ATTEMPT_CONFLICT: 409,
    ErrorCode.SUPERSEDED: 409,
    ErrorCode.TURN_DECIDED: 409,
    ErrorCode.TURN_UNKNOWN: 404,
    ErrorCode.NO_CARD: 409,
    ErrorCode.OPTION_UNKNOWN: 404,
    ErrorCode.ALREADY_ANSWERED: 409,
    ErrorCode.ALREADY_DISMISSED: 409,
    ErrorCode.PROMPT_CONFLICT: 409,
    ErrorCode.NO_PENDING: 404,
    ErrorCode.ANOTHER_PENDING: 409,
    ErrorCode.MISMATCH: 409,
    ErrorCode.BLANK_ANSWER: 400,
    ErrorCode.ALREADY_RESOLVED: 409,
    ErrorCode.TASK_NOT_TERMINAL: 409,
    ErrorCode.TASK_CONFLICT: 409,
    ErrorCode.OBJECTIVE_EXISTS: 409,
    ErrorCode.INVALID_OBJECTIVE: 400,
    ErrorCode.INVALID_TRANSITION: 409,
    ErrorCode.INVALID_ARGUMENT: 400,
    ErrorCode.STALE_RUN: 409,
    ErrorCode.CLAIM_REFUSED: 409,
    ErrorCode.NOT_FOUND: 404,
    ErrorCode.PROCESS_KILLED: 500,
    ErrorCode.EXHAUSTED: 500,
    ErrorCode.OVERLOADED: 429,
    ErrorCode.UNAVAILABLE: 503,
    ErrorCode.INTERNAL: 500,
}
"""The number that goes into the `Nats-Service-Error-Code` header beside each code."""


class ErrorBody(Struct, frozen=True, omit_defaults=True):
    """The body of an error reply, and of a refusal in a runner's mailbox."""

    code: ErrorCode
    message: str
    details: dict[str, Any] = {}


class TurngateError(Exception):
    """Base of every error of Turngate: a code, one sentence, and the facts as details."""

    code: ErrorCode = ErrorCode.INTERNAL

    def __init__(self, message: str, /, **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.details = details

    def body(self) -> ErrorBody:
        """Return what goes over the wire for this error."""
        return ErrorBody(self.code, self.message, self.details)


class InvalidId(TurngateError, ValueError):
    """An id that could become a wildcard, another subject or a header line."""

    code = ErrorCode.INVALID_ID

    def __init__(
        self, field: str, value: object, rule: str = "1 to 128 characters of A-Z, a-z, 0-9, '_' and '-'"
    ) -> None:
        super().__init__(f"{field} {shown(value)} is not an id; use {rule}", field=field, value=shown(value))
        self.field = field


class InvalidMessage(TurngateError, ValueError):
    """A body that can't be decoded, or whose values can't be."""

    code = ErrorCode.INVALID_MESSAGE


class PayloadTooLarge(TurngateError, ValueError):
    """A message that would not fit the server's max_payload, headers included."""

    code = ErrorCode.PAYLOAD_TOO_LARGE

    def __init__(self, what: str, size: int, limit: int) -> None:
        super().__init__(f"{what} is {size} bytes; at most {limit} can be sent", size=size, limit=limit)
        self.size = size
        self.limit = limit


class IdentityMismatch(TurngateError):
    """A body that claims another sender than its subject does."""

    code = ErrorCode.IDENTITY_MISMATCH

    def __init__(self, field: str, claimed: object, actual: str) -> None:
        super().__init__(
            f"{field} {shown(claimed)} in the message is not {actual}, who sent it; send it as {actual}",
            field=field,
            claimed=shown(claimed),
            actual=actual,
        )


class Unavailable(TurngateError):
    """Nobody answered: no server, no service, or not in time."""

    code = ErrorCode.UNAVAILABLE


class Refusal(TurngateError):
    """An error that a service answered with; `code` says which."""

    def __init__(self, code: ErrorCode, message: str, /, **details: Any) -> None:
        super().__init__(message, **details)
        self.code = code


class Overloaded(Refusal):
    """There is too much of something for now; nothing of this was done. Try again after `retry_after_ms`."""

    def __init__(self, message: str, retry_after_ms: int, /, **details: Any) -> None:
        super().__init__(ErrorCode.OVERLOADED, message, **details, retry_after_ms=retry_after_ms)
        self.retry_after_ms = retry_after_ms


def refusal_of(error: ErrorBody) -> Refusal:
    """Return a service's error as it is raised at its caller's: Overloaded where that says when to try again."""
    after = error.details.get("retry_after_ms")
    if error.code is ErrorCode.OVERLOADED and isinstance(after, int):
        rest = {name: value for name, value in error.details.items() if name != "retry_after_ms"}
        return Overloaded(error.message, after, **rest)
    return Refusal(error.code, error.message, **error.details)


def shown(value: object) -> str:
    """Return `value` as an error message may show it: escaped, quoted and cut to 80 characters."""
    text = ascii(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
