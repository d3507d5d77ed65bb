"""What a target is, and what every target asks of a text that goes to people, models or the wire."""

import atexit
import os
import shutil
import tempfile
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

SENTENCE_MAX: Final = 1_500
"""Longest error message, in characters, whatever the input was."""


class Target(Struct, frozen=True):
    """One decoder or parser.

    Attributes:
        name: its folder in `corpus`.
        run: takes bytes and raises where they break a promise.
        is_json: whether inputs are JSON, and are changed value by value as well as byte by byte.
        largest: the longest input that is tried, in bytes.
    """

    name: str
    run: Callable[[bytes], None]
    is_json: bool = False
    largest: int = 4_096


def check_sentence(text: str, longest: int = SENTENCE_MAX) -> None:
    """An error's message is bounded, and can be written as UTF-8 and shown on one line."""
    assert len(text) <= longest, f"a message of {len(text)} characters"
    assert text.isprintable(), f"not printable: {text!r}"


def same_again(value: Struct) -> None:
    """What was decoded is written, and read again as the same."""
    written = msgspec.json.encode(value)
    again = msgspec.json.decode(written, type=type(value))
    assert msgspec.json.encode(again) == written, f"{value!r} is read again as {again!r}"


def finished(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine that waits for nothing, without an event loop."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    finally:
        coroutine.close()
    raise AssertionError("it waits for something")


_directories: dict[str, Path] = {}


def directory(name: str) -> Path:
    """Return a directory of this process, removed at its end."""
    if name not in _directories:
        _directories[name] = Path(tempfile.mkdtemp(prefix=f"turngate-fuzz-{name}-"))
        atexit.register(_remove, _directories[name], os.getpid())
    return _directories[name]


def _remove(path: Path, owner: int) -> None:
    if os.getpid() == owner:  # and no fork of it
        shutil.rmtree(path, ignore_errors=True)
