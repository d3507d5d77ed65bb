"""Keys of a terminal: bytes to names, and the mode in which a terminal gives every key at once.

Pasted text is told apart from typed keys (bracketed paste): a digit in somebody's clipboard must not answer a card.
"""

import contextlib
import os
import sys
import termios
import tty
from collections.abc import Iterator
from typing import Final, NamedTuple

ESCAPE_S: Final = 0.05
"""How long a lone escape may be the beginning of a longer sequence."""
PASTE_BYTES: Final = 64 * 1024
"""Of a longer paste the rest is dropped."""

_PASTE: Final = b"\x1b[200~"
_PASTE_END: Final = b"\x1b[201~"
_SEQUENCES: Final = {
    b"\x1b[A": "up",
    b"\x1b[B": "down",
    b"\x1b[C": "right",
    b"\x1b[D": "left",
    b"\x1bOA": "up",
    b"\x1bOB": "down",
    b"\x1bOC": "right",
    b"\x1bOD": "left",
    b"\x1b[5~": "page up",
    b"\x1b[6~": "page down",
}
_CONTROL: Final = {
    b"\r": "enter",
    b"\n": "enter",
    b"\x7f": "backspace",
    b"\x08": "backspace",
    b"\x03": "interrupt",
    b"\x04": "interrupt",
    b"\x15": "clear",
}
_LONGEST: Final = 16


class Key(NamedTuple):
    """A key: its name, or `text` and what was typed, or `paste` and what was pasted."""

    name: str
    text: str = ""


def keys(data: bytes, *, complete: bool = False) -> tuple[list[Key], bytes]:
    """Return the keys that bytes from a terminal mean, and the bytes whose end is still to come.

    Args:
        data: what was read, with the rest of the last call before it.
        complete: nothing more comes: a lone escape is the escape key, and half a sequence is dropped.
    """
    found: list[Key] = []
    while data:
        key, used = _first(data)
        if not used:
            if not complete:
                return found, data
            key, used = (Key("escape"), 1) if data == b"\x1b" else (None, len(data))
        if key is not None:
            found.append(key)
        data = data[used:]
    return found, b""


def _first(data: bytes) -> tuple[Key | None, int]:
    """Return the first key and how many bytes it took; no bytes where more must come first."""
    if data[:1] in _CONTROL:
        return Key(_CONTROL[data[:1]]), 1
    if data[:1] == b"\x1b":
        return _sequence(data)
    if data[0] < 0x20:
        return None, 1
    return _character(data)


def _character(data: bytes) -> tuple[Key | None, int]:
    length = 1 if data[0] < 0x80 else 2 if data[0] < 0xE0 else 3 if data[0] < 0xF0 else 4
    try:
        return Key("text", data[:length].decode()), length
    except UnicodeDecodeError as error:
        # Only the byte that begins no character is passed over: what follows it may be a key of its own.
        return None, 0 if error.reason == "unexpected end of data" and len(data) < length else 1


def _sequence(data: bytes) -> tuple[Key | None, int]:
    if data.startswith(_PASTE):
        end = data.find(_PASTE_END)
        if end < 0:
            return None, 0
        text = data[len(_PASTE) : min(end, len(_PASTE) + PASTE_BYTES)].decode("utf-8", "ignore")
        return Key("paste", text), end + len(_PASTE_END)
    for sequence, name in _SEQUENCES.items():
        if data.startswith(sequence):
            return Key(name), len(sequence)
    if data[1:2] not in (b"[", b"O", b""):
        return Key("escape"), 1
    # Any other sequence ends with a letter or a tilde; it means nothing here.
    for at in range(2, min(len(data), _LONGEST)):
        if 0x40 <= data[at] <= 0x7E:
            return None, at + 1
    return (None, _LONGEST) if len(data) >= _LONGEST else (None, 0)


class Screen:
    """A terminal taken over: every key at once, no echo, and a screen of its own that leaves no trace."""

    def __init__(self, stdin: int) -> None:
        """Remember the terminal's mode; nothing is changed yet."""
        self._stdin = stdin
        self._before = termios.tcgetattr(stdin)

    def take(self) -> None:
        """Take the terminal over."""
        tty.setcbreak(self._stdin)
        mode = termios.tcgetattr(self._stdin)
        mode[3] &= ~termios.ISIG  # ^C is a key like others, so that the terminal is always given back
        termios.tcsetattr(self._stdin, termios.TCSADRAIN, mode)
        _write("\x1b[?1049h\x1b[?25l\x1b[?2004h")

    def give_back(self) -> None:
        """Give the terminal back as it was."""
        _write("\x1b[?2004l\x1b[?25h\x1b[?1049l")
        termios.tcsetattr(self._stdin, termios.TCSADRAIN, self._before)

    @contextlib.contextmanager
    def taken(self) -> Iterator[None]:
        """Take the terminal over for as long as the context lasts."""
        self.take()
        try:
            yield
        finally:
            self.give_back()

    def read(self) -> bytes:
        """Return what was typed; empty at the end of the input."""
        return os.read(self._stdin, 4096)


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
