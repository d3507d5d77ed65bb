"""What the server says of messages that it gave up, or that were ended without being handled.

The stream of advisories holds exactly those about this namespace's streams: their names are part of the subjects, so
that namespaces on one server never see each other's.
"""

from typing import Final

from msgspec import Struct

from turngate_contracts import codec
from turngate_contracts.errors import ErrorBody, ErrorCode
from turngate_contracts.topology import TERMINATED

_KIND: Final = -3


class Advisory(Struct, frozen=True):
    """An advisory of the server about one message of one consumer."""

    stream: str
    consumer: str
    stream_seq: int
    deliveries: int = 0
    reason: str = ""


def read(body: bytes) -> Advisory:
    """Return an advisory.

    Raises:
        InvalidMessage: it is none.
    """
    return codec.decode(body, Advisory, "an advisory of the server")


def reason_of(subject: str, advisory: Advisory) -> ErrorBody:
    """Return why the message is dead; the subject says which kind of advisory it is."""
    details = {"consumer": advisory.consumer, "deliveries": advisory.deliveries}
    if subject.split(".")[_KIND] == TERMINATED:
        text = advisory.reason or "without a reason"
        known = text in set(ErrorCode)
        message = f"{advisory.consumer} ended it unhandled: {text}"
        return ErrorBody(ErrorCode(text) if known else ErrorCode.INVALID_MESSAGE, message, details)
    return exhausted(advisory.consumer, advisory.deliveries)


def exhausted(consumer: str, deliveries: int = 0) -> ErrorBody:
    """Return the reason of a message that was delivered as often as it may be, and never acknowledged."""
    often = f"{deliveries} times" if deliveries else "as often as it may be"
    return ErrorBody(
        ErrorCode.EXHAUSTED,
        f"it was delivered {often} and never acknowledged; the logs of its service may say why",
        {"consumer": consumer, "deliveries": deliveries},
    )
