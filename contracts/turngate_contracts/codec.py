"""JSON on the wire: one encoder, one decoder per type, and decoding that names what is wrong.

Encoders and decoders are built once: building one costs more than a small message.
"""

from typing import Any, Final, TypeVar

import msgspec

from turngate_contracts.errors import InvalidMessage
from turngate_protocol.text import visible

T = TypeVar("T")

encode: Final = msgspec.json.Encoder().encode
"""Encode a Struct or plain value as JSON bytes."""


_REASON_MAX: Final = 200
_REASON_END: Final = 60

_decoders: dict[type[Any], msgspec.json.Decoder[Any]] = {}


def decoder(kind: type[T]) -> msgspec.json.Decoder[T]:
    """Return the one decoder of a type."""
    found = _decoders.get(kind)
    if found is None:
        found = _decoders[kind] = msgspec.json.Decoder(kind)
    return found


def decode(data: bytes, kind: type[T], what: str) -> T:
    """Decode a message.

    Args:
        data: JSON bytes.
        kind: the Struct to decode into.
        what: how an error names the message, such as `a ReportSubmitted`.

    Raises:
        InvalidMessage: the bytes are not that message; the error says where and why.
    """
    try:
        return decoder(kind).decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        reason = reason_of(error)
        raise InvalidMessage(f"the body is not {what}: {reason}", reason=reason) from None


def reason_of(error: Exception) -> str:
    """Return what msgspec says is wrong, for a sentence: visible, and bounded, because it quotes what was sent.

    The place that it names stands at the end and is kept.
    """
    reason = visible(str(error)) or type(error).__name__
    if len(reason) <= _REASON_MAX:
        return reason
    return f"{reason[: _REASON_MAX - _REASON_END - 1]}…{reason[-_REASON_END:]}"


def to_builtins(value: Any) -> Any:
    """Return a Struct as plain dicts and lists, as `--json` output shows it."""
    return msgspec.json.decode(encode(value))
