"""Texts of models and people as a page may show them, and the words that a page has of its own.

A page escapes markup; here control, format and bidirectional characters are made visible, as on a terminal. What goes
back to a server from a field (a label, a text to edit) is left as it is: an escape would come back as another text.
"""

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from turngate_protocol.text import visible

_TAB: Final = 4
_KILO: Final = 1_000
_THOUSAND: Final = 10_000


class Chip(Struct, frozen=True):
    """A word in a colour: `tone` is good, warn, bad, info, ask or idle."""

    text: str
    tone: str = "idle"


class Fact(Struct, frozen=True):
    """A thing and its name."""

    label: str
    text: str


class Link(Struct, frozen=True):
    """Where a thing can be seen: a path of the console."""

    href: str
    text: str


def one_line(text: str) -> str:
    """Return a text of others on one line, with its control characters visible."""
    return visible(text) if "\n" not in text else " ".join(visible(line) for line in text.split("\n"))


def many_lines(text: str) -> str:
    """Return a text of others with its own line breaks, tabs spread, other control characters visible."""
    lines = text.replace("\r\n", "\n").split("\n")
    return "\n".join(visible(line.expandtabs(_TAB)) for line in lines)


def words(name: str) -> str:
    """Return the name of a state as words."""
    return one_line(name.replace("_", " "))


def count(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun, such as `1 problem` or `1,200 problems`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def short(number: int) -> str:
    """Return a number as a glance takes it: `812`, `48.2k`, `1.3M`."""
    if number < _KILO:
        return str(number)
    if number < _KILO * _KILO:
        thousands = number / _KILO
        return f"{thousands:.1f}k" if number < _KILO * 100 else f"{thousands:.0f}k"
    return f"{number / _KILO / _KILO:.1f}M"


def size(number: int) -> str:
    """Return a number of bytes as a glance takes it."""
    return f"{number:,} bytes" if number < _THOUSAND else f"{number / _KILO:,.0f} kB"


def facts(*pairs: tuple[str, str]) -> tuple[Fact, ...]:
    """Return those of these pairs that have something to say."""
    return tuple(Fact(label, text) for label, text in pairs if text)


def joined(items: Iterable[str]) -> str:
    """Return names in a row."""
    return ", ".join(one_line(item) for item in items)
