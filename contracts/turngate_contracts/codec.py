"""JSON on the wire: one encoder, one decoder per type, and decoding that names what is wrong.

Encoders and decoders are built once: building one costs more than a small message.
"""

from typing import Any, Final, TypeVar

import msgspec

from turngate_contracts.errors import InvalidMessage

T = TypeVar("T")

encode: Final = msgspec.json.Encoder().encode
"""Encode a Struct or plain value as JSON bytes."""


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
        reason = str(error) or type(error).__name__
        raise InvalidMessage(f"the body is not {what}: {reason}", reason=reason) from None


def to_builtins(value: Any) -> Any:
    """Return a Struct as plain dicts and lists, as `--json` output shows it."""
    return msgspec.json.decode(encode(value))
