"""One YAML scalar: its text as it was written, or the number that it stands for.

The rules are those of the Go YAML decoder that the vectors of the specification's conclusion page were made with. An
explicit tag must be true of its scalar, `!!binary` is decoded, an unknown tag means nothing. No object is ever built.
"""

import base64
import re
from collections.abc import Callable
from math import inf, isinf, nan
from typing import Final

from yaml.events import ScalarEvent

from turngate_protocol.text import has_surrogate

TAG_PREFIX: Final = "tag:yaml.org,2002:"

_NULLS: Final = frozenset({"", "~", "null", "Null", "NULL"})
_BOOLS: Final = frozenset({"true", "True", "TRUE", "false", "False", "FALSE"})
_SPECIAL: Final = {
    **dict.fromkeys((".nan", ".NaN", ".NAN"), nan),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -inf),
}
_INT = re.compile(r"([+-]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|([1-9][0-9]*|0))")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_TIMESTAMP = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt ][0-9:.]+(?:Z|[+-][0-9:]+)?)?")


class NotStructured(Exception):
    """The body is no usable YAML; `reason` says why, in words of the software."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def scalar_text(event: ScalarEvent) -> str | None:
    """Return the text of a scalar as it was written; None for null.

    Raises:
        NotStructured: Its tag is not true of it, or it holds half a character.
    """
    text: str = event.value
    tag = event.tag
    if tag is not None and tag != "!":
        found = _tagged_text(tag.removeprefix(TAG_PREFIX), text)
        if found is None:
            return None
        text = found
    elif not event.style and text in _NULLS:
        return None
    if has_surrogate(text):
        raise NotStructured("it escapes half a character")
    return text


def scalar_number(event: ScalarEvent) -> float | None:
    """Return the number that a scalar stands for; None for null.

    Raises:
        NotStructured: It is no number: a text, a quoted number, a truth value, a date.
    """
    if scalar_text(event) is None:
        return None
    tag = (event.tag or "").removeprefix(TAG_PREFIX)
    counts = not event.style if tag in {"", "!"} else tag in {"float", "int"}
    found = number(event.value) if counts else None
    if found is None:
        raise NotStructured("confidence is not a number")
    return float(found)


def _tagged_text(tag: str, text: str) -> str | None:
    """Return the text of a scalar with an explicit tag: what a known tag says it must be, others mean nothing."""
    if tag == "binary":
        try:
            data = base64.b64decode(text.replace("\n", "").replace("\r", ""), validate=True)
        except ValueError:
            raise NotStructured("a value is not what its tag !!binary says") from None
        return data.decode("utf-8", "replace")
    if tag in _TAGS and not _TAGS[tag](text):
        raise NotStructured(f"a value is not what its tag !!{tag} says")
    return None if text in _NULLS and tag in _TAGS else text


_TAGS: Final[dict[str, Callable[[str], bool]]] = {
    "null": _NULLS.__contains__,
    "bool": _BOOLS.__contains__,
    "int": lambda text: isinstance(number(text), int),
    "float": lambda text: number(text) is not None,
    "timestamp": lambda text: _TIMESTAMP.fullmatch(text) is not None,
}


def number(text: str) -> int | float | None:
    """Return the number that a plain scalar stands for, by the rules of the Go decoder; None when it is none.

    `0x`, `0b` and `0o` prefixes count, a leading 0 is octal, `_` separates digits, `.nan` and `.inf` are numbers; an
    integer beyond 64 bits is a float, a float beyond the largest is no number.
    """
    if text in _SPECIAL:
        return _SPECIAL[text]
    if not text.startswith("."):
        text = text.replace("_", "")
    if found := _INT.fullmatch(text):
        sign, *digits = found.groups()
        base, written = next((b, d) for b, d in zip((16, 2, 8, 10), digits, strict=True) if d is not None)
        value = int(written, base) if len(written) <= 64 else 1 << 64
        if value < 1 << (64 if not sign else 63) or (sign == "-" and value == 1 << 63):
            return -value if sign == "-" else value
    if _FLOAT.fullmatch(text):
        written_as_float = float(text)
        return None if isinf(written_as_float) else written_as_float
    return None
