"""What this machine's file system says about paths that a model cited, without ever being led astray or held up.

Answers are given only for paths under the roots: links are resolved first, a path with `..` and whatever ends outside
are uncheckable, never missing, so that nothing is learned about the rest of the machine. Paths are looked at, not
opened: a FIFO or a device can't block. Only regular files are opened, for their hashes, bounded in size, and not in a
way that could wait. Everything here blocks on the file system: run it in a thread.
"""

import hashlib
import os
import stat
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from turngate_contracts.errors import ErrorCode, TurngateError, shown
from turngate_protocol.conclusion import RefState, StartRecord, StatAnswer
from turngate_protocol.conclusion.record import CLOCK_GRAIN_MS

MAX_HASHED_FILE_BYTES: Final = 8 * 1024 * 1024
"""Files that are larger are not hashed; size and modification time still tell of a change."""
MAX_HASHED_BYTES: Final = 64 * 1024 * 1024
"""Bytes that one call hashes at most."""

_UNCHECKABLE: Final = StatAnswer(RefState.UNCHECKABLE)
_MISSING: Final = StatAnswer(RefState.MISSING)
_NS_PER_MS: Final = 1_000_000


class RootUnusable(TurngateError, ValueError):
    """A root that is no directory of this machine."""

    code = ErrorCode.INVALID

    def __init__(self, root: object) -> None:
        super().__init__(f"root {shown(str(root))} is no directory; name existing directories by absolute path")


class Evidence:
    """Looks at paths under some roots."""

    def __init__(self, roots: Iterable[str | Path]) -> None:
        """Resolve the roots.

        Args:
            roots: absolute paths of directories; paths outside of all of them are uncheckable.

        Raises:
            RootUnusable: one of them is relative or no directory.
        """
        self.roots = tuple(dict.fromkeys(map(_resolved_root, roots)))

    def look(self, paths: Sequence[str], *, hashes: bool = False) -> list[StatAnswer]:
        """Return what there is at each path, in their order; never raises.

        Args:
            paths: absolute paths; others are uncheckable.
            hashes: hash the contents of regular files, as far as the limits go.
        """
        left = MAX_HASHED_BYTES
        answers = []
        for path in paths:
            answer, hashed = self._look(path, left if hashes else 0)
            left -= hashed
            answers.append(answer)
        return answers

    def _look(self, path: str, hash_limit: int) -> tuple[StatAnswer, int]:
        """Return the answer about one path, and how many bytes were hashed for it."""
        root = ""
        try:
            if not path.startswith("/") or ".." in path.split("/"):
                return _UNCHECKABLE, 0
            # Links on the way are resolved also where the path ends in nothing: it may end outside.
            resolved = os.path.realpath(path)
            root = next((root for root in self.roots if _is_under(resolved, root)), "")
            if not root:
                return _UNCHECKABLE, 0
            found = os.lstat(resolved)
        except FileNotFoundError:
            # A root that is gone, such as a volume that is not mounted, proves nothing about what was in it.
            return (_MISSING if Path(root).is_dir() else _UNCHECKABLE), 0
        except (OSError, ValueError):
            return _UNCHECKABLE, 0
        if stat.S_ISLNK(found.st_mode):
            return _UNCHECKABLE, 0  # a circle of links, or one that was made this very moment
        modified = found.st_mtime_ns // _NS_PER_MS
        if not stat.S_ISREG(found.st_mode):
            return StatAnswer(RefState.PRESENT, mtime_ms=modified), 0
        digest = None
        if found.st_size <= min(hash_limit, MAX_HASHED_FILE_BYTES) and hash_limit:
            digest = _hash(resolved, found)
        return StatAnswer(RefState.PRESENT, found.st_size, modified, digest), found.st_size if digest else 0


def start_record(paths: Iterable[str | Path] = (), *, hashes: bool = False) -> StartRecord:
    """Return what a runner notes before a task begins, for strict checking.

    Args:
        paths: absolute paths of files whose state before the task should count, such as all that are checked in; a
            file that is not named here is judged by its modification time alone.
        hashes: hash their contents too: a file that was only touched then counts as unchanged.
    """
    names = [str(path) for path in paths]
    answers = Evidence(("/",)).look(names, hashes=hashes)
    return StartRecord(time.time_ns() // _NS_PER_MS - CLOCK_GRAIN_MS, dict(zip(names, answers, strict=True)))


def _resolved_root(root: str | Path) -> str:
    try:
        resolved = os.path.realpath(root, strict=True)
    except (OSError, ValueError):
        raise RootUnusable(root) from None
    if not Path(root).is_absolute() or not Path(resolved).is_dir():
        raise RootUnusable(root)
    return resolved


def _is_under(path: str, root: str) -> bool:
    return root == "/" or path == root or path.startswith(f"{root}/")


def _hash(path: str, found: os.stat_result) -> str | None:
    """Return the hash of a regular file's content; None when it is not the file that was looked at, or grew since."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
    try:
        with os.fdopen(os.open(path, flags), "rb") as file:
            now = os.fstat(file.fileno())
            if not stat.S_ISREG(now.st_mode) or (now.st_dev, now.st_ino) != (found.st_dev, found.st_ino):
                return None
            data = file.read(found.st_size + 1)
    except OSError:
        return None
    return f"sha256:{hashlib.sha256(data).hexdigest()}" if len(data) == found.st_size else None
