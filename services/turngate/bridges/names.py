"""Which Turngate session an agent's calls belong to, from the ids and directories that an agent has.

An id that a person configured is used as it is, or refused. An id that an agent's program gave is mapped: the same one
always to the same session, two different ones never to one.
"""

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

SESSION_VARIABLE: Final = "TURNGATE_SESSION"
"""The environment variable that names the session."""

_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,128}", re.ASCII)
_NO_ID: Final = re.compile(r"[^A-Za-z0-9_-]+", re.ASCII)
_READABLE: Final = 40


class NotASession(ValueError):
    """A configured session id that can be none; the message says where it stands and what would be right."""


def configured(flag: str, environment: Mapping[str, str]) -> str:
    """Return the session that a person named, or nothing where nobody did.

    Raises:
        NotASession: what was named is no id.
    """
    for name, value in (("--session", flag), (SESSION_VARIABLE, environment.get(SESSION_VARIABLE, ""))):
        if value and _ID.fullmatch(value) is None:
            raise NotASession(
                f"{name} {ascii(value)[:80]} is no session id; use 1 to 128 characters of A-Z, a-z, 0-9, '_' and '-'"
            )
        if value:
            return value
    return ""


def session_of_name(name: str) -> str:
    """Return the session of an id that an agent's program gave: itself where it is an id, else with a hash of it."""
    if _ID.fullmatch(name) is not None:
        return name
    return _hashed(name, name)


def session_of_directory(directory: Path) -> str:
    """Return the session of agents that have nothing but the directory that they work in."""
    path = directory.expanduser().absolute().resolve()
    return _hashed(path.name, str(path))


def _hashed(readable: str, whole: str) -> str:
    digest = hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    start = _NO_ID.sub("-", readable).strip("-")[:_READABLE]
    return f"{start or 'session'}-{digest}"
