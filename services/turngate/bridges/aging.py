"""Forgetting sessions that nobody used for long: once a day, when a session is new, the oldest directories go.

What is forgotten costs what losing the files costs: nothing that is in the services. Only Python's own library is
needed here.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

DAY_S: Final = 86_400.0
IDLE_S: Final = 30 * DAY_S
"""After what time without a tool, a call or a stop a session's files are removed."""
KEPT: Final = 2_000
"""How many sessions are kept beside those of the last day, however young they are."""
SWEPT: Final = "swept"
"""The file whose age says when this was done last."""


class _Place(NamedTuple):
    used: float
    path: Path


def sweep(root: Path, sessions: Path, links: Path, now: float) -> None:
    """Remove what was not used for long, unless that was done within a day; what can't be removed stays.

    Args:
        root: where the file `swept` is.
        sessions: the directory of the sessions' directories.
        links: the directory of the links to them.
        now: in seconds since the epoch.
    """
    stamp = root / SWEPT
    with contextlib.suppress(OSError):
        if now - stamp.stat().st_mtime < DAY_S:
            return
    with contextlib.suppress(OSError):
        stamp.touch(mode=0o600)
        places = sorted(_places(sessions), reverse=True)
        for number, place in enumerate(places):
            idle_s = now - place.used
            if idle_s > IDLE_S or (number >= KEPT and idle_s > DAY_S):
                _remove(place.path)
        _unlink_dead(sessions, links)


def _places(sessions: Path) -> Iterator[_Place]:
    with os.scandir(sessions) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield _Place(_used(entry), Path(entry.path))


def _used(entry: "os.DirEntry[str]") -> float:
    """Return when anything of a session was written last."""
    newest = entry.stat(follow_symlinks=False).st_mtime
    with contextlib.suppress(OSError), os.scandir(entry.path) as files:
        newest = max((newest, *(file.stat(follow_symlinks=False).st_mtime for file in files)))
    return newest


def _remove(directory: Path) -> None:
    import shutil

    shutil.rmtree(directory, ignore_errors=True)


def _unlink_dead(sessions: Path, links: Path) -> None:
    """Remove the links to sessions of which nothing is left."""
    for link in list(links.iterdir()):
        with contextlib.suppress(OSError, ValueError):
            if not (sessions / link.read_text(encoding="ascii")).is_dir():
                link.unlink()
