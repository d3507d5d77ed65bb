"""The tools that an agent of a session used, one line of JSON each, as its hooks told of them.

The log is the evidence of the host: whether a turn changed anything, and how many calls a subagent made. Writers hold
the session's lock, so that a line is whole or missing. Only Python's own library is needed here.
"""

import contextlib
import errno
import fcntl
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

LOG: Final = "tools.jsonl"
LOCK: Final = "lock"
MAX_LINE: Final = 4_096
"""Longest line that is read back; `append` never writes one."""
TRIM_BYTES: Final = 256 * 1024
"""How long the log may get before a turn that is over lets it begin anew."""
MAX_READ: Final = 8 * 1024 * 1024
"""How much of the log is looked at, from its end: an agent that never ends its turn costs no more than that."""

LOCK_S: Final = 2.0
"""How long to wait for a lock that its holders have for milliseconds: one that was stopped may have it for ever."""

_NAME_CHARS: Final = 200
_LOOK_S: Final = 0.005


class ToolUse(NamedTuple):
    """One use of a tool: whether it may have changed something, whether it worked, and by which subagent."""

    tool: str
    mutated: bool = False
    ok: bool = True
    agent: str = ""
    at: float = 0.0


class Seen(NamedTuple):
    """What a part of the log says; `end` is where it ends, in bytes."""

    mutated: bool
    used_tools: bool
    end: int


@contextlib.contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Hold the session's lock, which the end of the process releases whatever happens; for some milliseconds only.

    Raises:
        OSError: it can't be had; with ETIMEDOUT, somebody holds it who does not let go.
    """
    path = directory / LOCK
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        _lock(descriptor, path)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int, path: Path) -> None:
    deadline = time.monotonic() + LOCK_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise OSError(errno.ETIMEDOUT, "another process holds this lock and does not let go", path) from None
            time.sleep(_LOOK_S)
        else:
            return


def append(directory: Path, use: ToolUse) -> None:
    """Write down one use of a tool."""
    entry: dict[str, Any] = {"tool": use.tool[:_NAME_CHARS], "at": round(use.at, 3)}
    if use.mutated:
        entry["mutated"] = True
    if not use.ok:
        entry["ok"] = False
    if use.agent:
        entry["agent"] = use.agent[:_NAME_CHARS]
    line = json.dumps(entry).encode() + b"\n"
    with locked(directory):
        descriptor = os.open(directory / LOG, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.write(descriptor, line)
        finally:
            os.close(descriptor)


def read(directory: Path, mark: int = 0) -> tuple[list[ToolUse], int]:
    """Return the uses behind the byte `mark`, and where the log ends; the caller holds the lock.

    Lines that are none, as after a full disk, are left out.
    """
    try:
        with (directory / LOG).open("rb") as log:
            end = log.seek(0, os.SEEK_END)
            # A log that is shorter than the mark was made anew since.
            log.seek(max(mark if mark <= end else 0, end - MAX_READ))
            uses = [use for line in log if (use := _parsed(line)) is not None]
    except FileNotFoundError:
        return [], 0
    return uses, end


def seen(directory: Path, mark: int) -> Seen:
    """Return what the uses behind `mark` come to; the caller holds the lock."""
    uses, end = read(directory, mark)
    return Seen(any(use.mutated for use in uses), bool(uses), end)


def trim(directory: Path, mark: int) -> int:
    """Begin the log anew where it has grown long and nothing behind `mark` is in it; return the mark from now on."""
    path = directory / LOG
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        return 0
    if size < TRIM_BYTES or mark < size:
        return mark
    os.truncate(path, 0)
    return 0


def _parsed(line: bytes) -> ToolUse | None:
    if len(line) > MAX_LINE:
        return None
    try:
        entry = json.loads(line)
        return ToolUse(
            str(entry["tool"]), entry.get("mutated") is True, entry.get("ok", True) is True, str(entry.get("agent", ""))
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
