"""Where the bridges keep what they remember of sessions: a directory of small files for each, and links from projects.

All of it is the user's alone (0700). Losing it loses no turn and no question: those are in the services; so what was
not used for long is removed. A link says
which session the MCP server of a project directory acts for, so that hooks that start below that directory, and may
have another idea of the session, speak of the same one.
"""

import hashlib
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from turngate.bridges.aging import sweep
from turngate.bridges.names import session_of_name

DIRECTORY_VARIABLE: Final = "TURNGATE_AGENTS_DIR"
"""The environment variable that moves these files elsewhere."""

_LINK_BYTES: Final = 512


def agents_directory(environment: Mapping[str, str]) -> Path:
    """Return where the files of all sessions are."""
    if chosen := environment.get(DIRECTORY_VARIABLE, ""):
        return Path(chosen).expanduser().absolute()
    base = environment.get("XDG_STATE_HOME", "")
    state = Path(base) if base.startswith("/") else Path.home() / ".local" / "state"
    return state / "turngate" / "agents"


class Places:
    """The files below one directory."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._sessions = root / "sessions"
        self._links = root / "links"

    def knows(self, session: str) -> bool:
        """Say whether anything was ever kept of a session."""
        return (self._sessions / session).is_dir()

    def of_session(self, session: str) -> Path:
        """Return the directory of a session, made when it is not there.

        Raises:
            OSError: it can't be made.
        """
        path = self._sessions / session
        if not path.is_dir():
            # The mode is that of the last part only: each one by itself.
            for made in (self._root, self._sessions, path):
                made.mkdir(mode=0o700, parents=True, exist_ok=True)
            sweep(self._root, self._sessions, self._links, time.time())
        return path

    def link(self, directory: Path, session: str) -> None:
        """Note that the MCP server of `directory` acts for `session`; the newest one counts.

        Raises:
            OSError: it can't be written.
        """
        for made in (self._root, self._links):
            made.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._link_of(directory.resolve())
        beside = path.with_name(f"{path.name}.{os.getpid()}")
        beside.write_text(session, encoding="ascii")
        beside.replace(path)

    def linked(self, directory: Path) -> str:
        """Return the session of the nearest directory, from `directory` upwards, that has one; else nothing."""
        resolved = directory.resolve()
        for place in (resolved, *resolved.parents):
            try:
                with self._link_of(place).open(encoding="ascii") as link:
                    session = link.read(_LINK_BYTES)
            except (OSError, ValueError):
                continue
            if session and session_of_name(session) == session:
                return session
        return ""

    def _link_of(self, directory: Path) -> Path:
        return self._links / hashlib.sha256(os.fsencode(directory)).hexdigest()[:32]
