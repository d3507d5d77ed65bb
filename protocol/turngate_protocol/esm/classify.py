"""Why a role failed, from what its runner says about the error.

Two failures are not the role's fault: the provider's account is used up, and the wire to the provider broke. Both are
recognised by their text, because providers agree on nothing else. The tests are conservative: what is not recognised is
an error that a person should look at. Nothing here decides what follows from a failure.
"""

import re
from enum import StrEnum
from typing import Final

from turngate_protocol.esm.casing import lower

_USAGE_LIMIT: Final = (
    "usage limit",
    "rate limit",
    "quota",
    "insufficient_quota",
    "resource_exhausted",
    "billing",
    "too many requests",
)

_SENDING: Final = "send request:"

_HELPED_BY_RETRY: Final = re.compile(
    r"connection refused|connection reset|broken pipe|unexpected eof|no such host|network is unreachable"
    r"|time(?:d )?[ -]?out|\b5\d\d\b|internal server error|bad gateway|service unavailable|server error"
)

_ENDED_ON_PURPOSE: Final = re.compile(r"context canceled|cancell?ed|deadline exceeded")


class FailureKind(StrEnum):
    """How a role run ended without a report."""

    INCOMPLETE = "incomplete"
    """It stopped before it had finished; what it did is there to go on from."""

    DEADLINE = "deadline"
    """Its time was up."""

    LOST = "lost"
    """Its runner is gone. Found by the watchdog, never reported by a runner."""

    TRANSPORT = "transport"
    """The wire to the provider broke in a way that a retry can help."""

    USAGE_LIMIT = "usage_limit"
    """The provider's account or limit is used up."""

    CANCELLED = "cancelled"
    """Somebody beside its runner stopped it."""

    ERROR = "error"
    """Anything else: a person has to look."""


def is_usage_limit(message: str) -> bool:
    """Say whether an error text speaks of a limit of the provider or the account."""
    text = lower(message)
    return any(words in text for words in _USAGE_LIMIT)


def is_retryable_transport(message: str) -> bool:
    """Say whether an error text speaks of a request that did not get through, and of a kind that a retry can help."""
    text = lower(message)
    return _SENDING in text and _HELPED_BY_RETRY.search(text) is not None and _ENDED_ON_PURPOSE.search(text) is None


def classify_failure(kind: FailureKind, message: str) -> FailureKind:
    """Return what a failure is, given what its runner calls it and the error text.

    A runner that knows better is believed; a plain error is looked at. A usage limit is looked for first: providers
    report it with status codes that would look like a broken wire.
    """
    if kind is not FailureKind.ERROR:
        return kind
    if is_retryable_transport(message) and not is_usage_limit(message):
        return FailureKind.TRANSPORT
    return FailureKind.USAGE_LIMIT if is_usage_limit(message) else kind
