"""What happens to a question that nobody answers: wait for ever, expire, or take a named default answer.

These rules are this system's own; the Go original waits for ever, which is the default. A policy is fixed when the
question is asked, and its default answer must be one that a person could have given. Nothing here waits: the time of
expiry is computed from the time of asking, and a timer elsewhere says when it has come.
"""

from typing import Final

from msgspec import Struct

from turngate_protocol.question.errors import InvalidQuestionError
from turngate_protocol.question.model import Answer, Request, Resolution
from turngate_protocol.question.rules import blank_part, validate_resolution

MAX_EXPIRY_MS: Final = 10 * 366 * 24 * 60 * 60 * 1000
"""The longest time a policy may give: ten years, so that the time of expiry stays a date that every clock can tell."""


class WaitForEver(Struct, frozen=True, tag_field="kind", tag="wait"):
    """The question waits until a person answers or cancels it."""


class ExpireAfter(Struct, frozen=True, tag_field="kind", tag="expire"):
    """The question is given up `after_ms` milliseconds after it was asked, with the outcome `expired`."""

    after_ms: int


class AnswerAfter(Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="default"):
    """The question takes this answer `after_ms` milliseconds after it was asked, recorded as decided by policy."""

    after_ms: int
    answers: tuple[Answer, ...] = ()
    chat: str = ""


Policy = WaitForEver | ExpireAfter | AnswerAfter


def check_policy(policy: Policy, request: Request) -> None:
    """Check a policy against the question that it is for.

    Raises:
        InvalidQuestionError: the time is out of range, or the default answer does not answer the question.
    """
    if isinstance(policy, WaitForEver):
        return
    if not 1 <= policy.after_ms <= MAX_EXPIRY_MS:
        raise InvalidQuestionError(
            "policy.after_ms", f"is {policy.after_ms}", f"give 1 to {MAX_EXPIRY_MS} milliseconds"
        )
    resolution = default_resolution(policy, request)
    if resolution is None:
        return
    try:
        validate_resolution(request, resolution)
    except InvalidQuestionError as error:
        raise InvalidQuestionError(f"policy.{error.path}", error.problem, error.remedy) from None
    if (path := blank_part(resolution)) is not None:
        raise InvalidQuestionError(f"policy.{path}", "is blank", "name an answer that says something")


def expires_at(policy: Policy, asked_at: int) -> int | None:
    """Return when a question asked at `asked_at` expires (both in ms since the epoch), or None if it never does."""
    return None if isinstance(policy, WaitForEver) else asked_at + policy.after_ms


def default_resolution(policy: Policy, request: Request) -> Resolution | None:
    """Return the answer that `policy` names for `request`, or None if it names none."""
    if not isinstance(policy, AnswerAfter):
        return None
    return Resolution(request.id, request.schema_digest, policy.answers, policy.chat)
