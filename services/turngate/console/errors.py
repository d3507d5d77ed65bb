"""What the console itself refuses, beside the errors that services answer with: each with its HTTP status and its code.

A service's error keeps its own code; `turngate_contracts.errors.STATUS` says which HTTP status that is.
"""

import re
from typing import Any, Final

import msgspec
from msgspec import Struct

from turngate_contracts.errors import STATUS, ErrorCode, TurngateError


class Fault(Struct, frozen=True):
    """An error as a person or a program gets it; `retry_after` in seconds, 0 where waiting would not help."""

    status: int
    code: str
    message: str
    details: dict[str, Any] = {}
    retry_after: int = 0

    def body(self) -> bytes:
        """Return the JSON of `{code, message, details}`."""
        return msgspec.json.encode({"code": self.code, "message": self.message, "details": self.details})


class Refused(Exception):
    """The console does not do what it was asked to do."""

    def __init__(self, status: int, code: str, message: str, *, retry_after: int = 0, **details: Any) -> None:
        super().__init__(message)
        self.fault = Fault(status, code, message, details, retry_after)


class Told(Refused):
    """A fault as it is to be told."""

    def __init__(self, fault: Fault) -> None:
        Exception.__init__(self, fault.message)
        self.fault = fault


CODES: Final[dict[str, int]] = {
    "not_signed_in": 401,
    "wrong_token": 401,
    "forbidden": 403,
    "wrong_origin": 403,
    "csrf": 403,
    "no_such_page": 404,
    "wrong_method": 405,
    "body_too_large": 413,
    "wrong_content_type": 415,
    "wrong_host": 421,
    "too_many": 429,
}
"""The codes that are the console's own, and their statuses."""


def refuse(code: str, message: str, *, retry_after: int = 0, **details: Any) -> Refused:
    """Return the refusal of one of CODES."""
    return Refused(CODES[code], code, message, retry_after=retry_after, **details)


def fault_of(error: Exception) -> Fault:
    """Return what to tell about an error; of one that is nobody's to know only that it happened."""
    if isinstance(error, Refused):
        return error.fault
    if isinstance(error, TurngateError):
        status = STATUS[error.code]
        return Fault(status, error.code.value, error.message, error.details, _RETRY_S if status in _PASSING else 0)
    text = "the console failed on this; its log says why"
    return Fault(500, ErrorCode.INTERNAL.value, text)


def for_people(fault: Fault) -> Fault:
    """Return a fault in the words of a page: its questions are counted from 1, and have no paths."""
    words = _ANSWER.sub(lambda found: f"the answer to question {int(found[1]) + 1}", fault.message)
    return msgspec.structs.replace(fault, message=words)


_ANSWER: Final = re.compile(r"^answers\[([0-9]{1,3})\](?:\.[a-z]+)?")
_RETRY_S: Final = 2
_PASSING: Final = (429, 503)
