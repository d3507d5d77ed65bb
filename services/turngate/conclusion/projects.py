"""The project registry: the id and the name of a project by its canonical path, from a file or from a bucket.

The registry is the operator's, so what it says replaces whatever a runner wrote. Without an entry a project is called
by the last element of its path.
"""

import hashlib
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Protocol

from turngate.conclusion.buckets import read_key
from turngate.jetstream.request import NoResponders, Requester, RequestTimeout
from turngate_contracts import codec
from turngate_contracts.errors import ErrorCode, InvalidMessage, TurngateError, shown
from turngate_protocol.conclusion import Project
from turngate_protocol.conclusion.refs import clean
from turngate_protocol.text import has_surrogate

log = logging.getLogger(__name__)

TIMEOUT_MS: Final = 2_000
MAX_TEXT: Final = 256
"""Longest id and name of a project, in characters."""


class Projects(Protocol):
    """A project registry."""

    async def find(self, path: str) -> Project | None:
        """Return the project at a canonical path, or None when it is not registered.

        Raises:
            Unavailable: our own connection is down.
        """


class ProjectsUnreadable(TurngateError, ValueError):
    """The file of projects can't be used."""

    code = ErrorCode.INVALID

    def __init__(self, path: str | Path, reason: str) -> None:
        super().__init__(
            f"projects file {path}: {reason}; write a mapping of absolute paths to a name, or to `id` and `name`"
        )


class ProjectFile:
    """A registry that was read from a YAML file when the process started."""

    def __init__(self, projects: Mapping[str, Project]) -> None:
        """Make it of projects by canonical path."""
        self._projects = projects

    @classmethod
    def read(cls, path: str | Path) -> "ProjectFile":
        """Read a file such as `/srv/web: {id: web, name: Web shop}`.

        Raises:
            ProjectsUnreadable: it is missing, no YAML, or not of that form.
        """
        import yaml

        try:
            # BaseLoader makes only texts: a project may be called `off` or `007`.
            loaded = yaml.load(Path(path).read_text(encoding="utf-8"), Loader=yaml.BaseLoader)  # noqa: S506
        except OSError as error:
            raise ProjectsUnreadable(path, error.strerror or str(error)) from None
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            raise ProjectsUnreadable(path, f"it is not YAML ({type(error).__name__})") from None
        if not isinstance(loaded, dict):
            raise ProjectsUnreadable(path, "it is not a mapping")
        return cls(dict(_entry(path, key, value) for key, value in loaded.items()))

    async def find(self, path: str) -> Project | None:
        """Return the project at a canonical path."""
        return self._projects.get(path)


class ProjectBucket:
    """A registry in a bucket: under the SHA-256 of a canonical path, in hex, stands a JSON object of id and name."""

    def __init__(self, requester: Requester, bucket: str) -> None:
        """Make it: `bucket` is the bucket's whole name."""
        self._requester = requester
        self._bucket = bucket

    async def find(self, path: str) -> Project | None:
        """Return the project at a canonical path; a registry that can't be read has none."""
        try:
            reply = await read_key(self._requester, self._bucket, project_bucket_key(path), TIMEOUT_MS)
            found = None if reply is None else codec.decode(reply.body, Project, "a Project")
        except (NoResponders, RequestTimeout, InvalidMessage) as error:
            log.warning("project registry %s can't be asked about %s: %s", self._bucket, shown(path), error)
            return None
        return None if found is None else Project(found.id[:MAX_TEXT], found.name[:MAX_TEXT])


def project_bucket_key(path: str) -> str:
    """Return the key under which a bucket keeps the project at a path: paths themselves are no keys."""
    return hashlib.sha256(clean(path).encode()).hexdigest()


def _entry(file: str | Path, path: Any, value: Any) -> tuple[str, Project]:
    if not isinstance(path, str) or not path.startswith("/") or has_surrogate(path):
        raise ProjectsUnreadable(file, f"{shown(path)} is no absolute path")
    if _is_text(value):
        return clean(path), Project(name=value)
    if not isinstance(value, dict) or not set(value) <= {"id", "name"} or not all(map(_is_text, value.values())):
        raise ProjectsUnreadable(file, f"{shown(path)} has neither a name nor an id and a name")
    return clean(path), Project(**value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= MAX_TEXT and not has_surrogate(value)
