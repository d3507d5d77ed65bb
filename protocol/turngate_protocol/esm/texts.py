"""What a text of a person or a model must be before it is kept: trimmed, not blank, short enough, sendable.

A half surrogate pair is no character: no UTF-8 carries it, so a state that held one could never be saved.
"""

from collections.abc import Iterable

from turngate_protocol.esm.errors import InvalidArgumentError, InvalidObjectiveError
from turngate_protocol.esm.objective import OBJECTIVE_BYTES
from turngate_protocol.text import byte_length, has_surrogate, trim


def objective_text(text: str) -> str:
    """Return `text` as the text of an objective, trimmed.

    Raises:
        InvalidObjectiveError: it is blank, over 65,536 UTF-8 bytes, or holds half a surrogate pair.
    """
    text = trim(text)
    size = byte_length(text)
    if not text:
        raise InvalidObjectiveError("is blank", "say what is to be achieved", 0)
    if size > OBJECTIVE_BYTES:
        remedy = "shorten it, or put the details into a file that it names"
        raise InvalidObjectiveError(f"has {size} bytes and may have {OBJECTIVE_BYTES}", remedy, size)
    if has_surrogate(text):
        raise InvalidObjectiveError("holds half a surrogate pair, which is no character", "take it out", size)
    return text


def required(field: str, text: str, remedy: str, limit: int | None = None) -> str:
    """Return the argument `text` trimmed.

    Args:
        field: what the argument is called.
        text: its value.
        remedy: what to give instead of a blank.
        limit: how many UTF-8 bytes it may have, None for any number.

    Raises:
        InvalidArgumentError: it is blank, too long, or holds half a surrogate pair.
    """
    text = trim(text)
    if not text:
        raise InvalidArgumentError(field, text, remedy)
    if has_surrogate(text):
        raise InvalidArgumentError(field, text, "take out the half surrogate pair, which is no character")
    if limit is not None and byte_length(text) > limit:
        raise InvalidArgumentError(field, text, f"shorten it to {limit} bytes")
    return text


def sendable(text: str) -> str:
    """Return `text` with half surrogate pairs replaced, for texts that are kept whatever they hold."""
    return text.encode("utf-8", "replace").decode("utf-8") if has_surrogate(text) else text


def kept_items(items: Iterable[str]) -> tuple[str, ...]:
    """Return `items` trimmed, without the blank ones."""
    return tuple(kept for item in items if (kept := trim(item)))
