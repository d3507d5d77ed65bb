"""Conclusions of subagents that wait to be told: made by the tool `conclude`, told when their subagent ended.

The MCP server of a session does not know which subagent calls it; the hook that follows the call does, and attributes
the conclusion by its content. A conclusion is dropped once it was told, so a hook that is killed tells it again, which
is harmless. Only Python's own library is needed here.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypedDict

from turngate.bridges.toollog import locked

FILE: Final = "conclusions.json"
KEPT: Final = 32
"""How many conclusions wait at most; the oldest make room."""
_MAX_BYTES: Final = 64 * 1024 * 1024


class Waiting(TypedDict):
    """One conclusion: its content's digest, the tool's arguments, and the subagent that made it, once that is known."""

    digest: str
    arguments: dict[str, Any]
    agent: str


def record(directory: Path, arguments: Mapping[str, Any]) -> None:
    """Keep a conclusion that is not attributed yet; the same again is kept once."""
    digest = digest_of(arguments)
    with locked(directory):
        waiting = _load(directory)
        if not any(entry["digest"] == digest and not entry["agent"] for entry in waiting):
            _save(directory, [*waiting, Waiting(digest=digest, arguments=dict(arguments), agent="")])


def attribute(directory: Path, arguments: Mapping[str, Any], agent: str) -> None:
    """Note which subagent made a conclusion."""
    digest = digest_of(arguments)
    with locked(directory):
        waiting = _load(directory)
        for entry in waiting:
            if entry["digest"] == digest and not entry["agent"]:
                entry["agent"] = agent
                _save(directory, waiting)
                return


def of_agent(directory: Path, agent: str) -> Waiting | None:
    """Return the newest conclusion of a subagent: one that is attributed to it, else the only one that is to nobody."""
    with locked(directory):
        waiting = _load(directory)
    own = [entry for entry in waiting if entry["agent"] == agent]
    if own:
        return own[-1]
    unclaimed = [entry for entry in waiting if not entry["agent"]]
    return unclaimed[0] if len(unclaimed) == 1 else None


def agents(directory: Path) -> list[str]:
    """Return the subagents whose conclusions were not told yet."""
    with locked(directory):
        return list(dict.fromkeys(entry["agent"] for entry in _load(directory) if entry["agent"]))


def drop(directory: Path, told: Waiting) -> None:
    """Forget a conclusion that was told."""
    with locked(directory):
        _save(directory, [entry for entry in _load(directory) if entry != told])


def digest_of(arguments: Mapping[str, Any]) -> str:
    """Return what tells one conclusion's content from another's, whatever the order of its fields."""
    return hashlib.sha256(json.dumps(arguments, sort_keys=True).encode()).hexdigest()


def _load(directory: Path) -> list[Waiting]:
    try:
        with (directory / FILE).open("rb") as file:
            entries = json.loads(file.read(_MAX_BYTES))
        return [entry for entry in entries if _is_waiting(entry)]
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return []


def _is_waiting(entry: Any) -> bool:
    texts = isinstance(entry["digest"], str) and isinstance(entry["agent"], str)
    return texts and isinstance(entry["arguments"], dict) and entry["digest"] != ""


def _save(directory: Path, waiting: list[Waiting]) -> None:
    beside = directory / f"{FILE}.new"
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(json.dumps(waiting[-KEPT:]).encode())
    beside.replace(directory / FILE)
