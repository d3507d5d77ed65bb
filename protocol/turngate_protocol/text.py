"""What the four protocols mean by white space, blank, characters and bytes.

The vectors come from a Go program, so "white space" is Unicode's White_Space property. Python's `str.strip` also takes
U+001C to U+001F, which are not in it: every trim of the protocols goes through this module.
"""

import re
from typing import Final

WHITE_SPACE: Final = "".join(
    map(
        chr,
        [*range(0x09, 0x0E), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000],
    )
)
"""Every character with Unicode's White_Space property."""

_SURROGATE = re.compile("[\ud800-\udfff]")


def trim(text: str) -> str:
    """Return `text` without the white space around it."""
    return text.strip(WHITE_SPACE)


def is_blank(text: str) -> bool:
    """Say whether `text` is empty or holds only white space."""
    return not text.strip(WHITE_SPACE)


def has_surrogate(text: str) -> bool:
    """Say whether `text` holds a lone surrogate, which no UTF-8 can carry."""
    return not text.isascii() and _SURROGATE.search(text) is not None


def byte_length(text: str) -> int:
    """Return the length of `text` in UTF-8 bytes; a lone surrogate counts as the three bytes it would take."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def cut_bytes(text: str, limit: int) -> str:
    """Return the longest start of `text` of at most `limit` UTF-8 bytes that does not cut a character in two."""
    data = text.encode("utf-8", "surrogatepass")
    if len(data) <= limit:
        return text
    return data[:limit].decode("utf-8", "ignore")


def visible(text: str) -> str:
    r"""Return `text` with control, format and bidirectional-override characters shown as escapes such as `\x1b`.

    Model-written text goes through this before a terminal shows it: it can then neither move the cursor nor reorder
    what a person reads. Line breaks and tabs are escaped too; split a text into lines first.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if c.isprintable() else _escape(c) for c in text)


def _escape(char: str) -> str:
    code = ord(char)
    if char == "\n":
        return "\\n"
    if char == "\t":
        return "\\t"
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
