"""The JSON that agents' command lines hand to their hooks, as one kind of event, whichever of them wrote it.

Claude Code, Codex, Gemini CLI and opencode's plugin name the event `hook_event_name`, Goose `event`; Cursor has events
of its own. Fields that an older or newer version leaves out or adds change nothing; an event that is none of ours is
`OTHER`. What comes is bounded, and its texts are an agent's: they are data, never commands.
"""

import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, NamedTuple

MAX_BYTES: Final = 16 * 1024 * 1024
"""Longest event that is read."""
_MAX_TEXT: Final = 512 * 1024
_MAX_PATH: Final = 4_096


class Kind(StrEnum):
    """What an event means to us."""

    TOOL = "tool"
    STOP = "stop"
    SUBAGENT_STOP = "subagent_stop"
    OTHER = "other"


class Dialect(StrEnum):
    """How a hook tells its agent to go on: by exit code 2 and standard error, or by Cursor's JSON."""

    EXIT = "exit"
    CURSOR = "cursor"


class HookEvent(NamedTuple):
    """One event.

    Attributes:
        kind: what it means to us.
        name: as the agent's program calls it.
        dialect: how to answer.
        session: the program's own id of its session; may be empty.
        directory: where the agent works; may be empty.
        tool: the tool that was used.
        ok: whether it worked.
        arguments: what the tool was called with, where that is an object.
        agent: the subagent that it is about; empty for the agent itself.
        interrupted: a person stopped the agent, or an error did: it is not to go on.
        again: the agent stops after a hook had told it to go on.
    """

    kind: Kind
    name: str
    dialect: Dialect = Dialect.EXIT
    session: str = ""
    directory: str = ""
    tool: str = ""
    ok: bool = True
    arguments: Mapping[str, Any] = {}
    agent: str = ""
    interrupted: bool = False
    again: bool = False


class NotAnEvent(ValueError):
    """What came on standard input is no hook event; the message says why."""


_KINDS: Final = {
    "PostToolUse": Kind.TOOL,
    "PostToolUseFailure": Kind.TOOL,
    "AfterTool": Kind.TOOL,
    "postToolUse": Kind.TOOL,
    "postToolUseFailure": Kind.TOOL,
    "afterFileEdit": Kind.TOOL,
    "afterShellExecution": Kind.TOOL,
    "afterMCPExecution": Kind.TOOL,
    "Stop": Kind.STOP,
    "AfterAgent": Kind.STOP,
    "stop": Kind.STOP,
    "SubagentStop": Kind.SUBAGENT_STOP,
    "subagentStop": Kind.SUBAGENT_STOP,
}
_TOOL_OF_EVENT: Final = {"afterFileEdit": "edit_file", "afterShellExecution": "shell"}


def decode(data: bytes) -> HookEvent:
    """Return the event that a hook was given.

    Raises:
        NotAnEvent: it is too long, no JSON object, or says no event's name, or a field has a wrong type.
    """
    if len(data) > MAX_BYTES:
        raise NotAnEvent(f"the event is longer than {MAX_BYTES} bytes")
    try:
        event = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise NotAnEvent(
            f"standard input holds no JSON ({ascii(str(error))[:80]}); a hook's event is expected"
        ) from None
    if not isinstance(event, dict):
        raise NotAnEvent("standard input holds JSON that is no object; a hook's event is expected")
    name = _text(event, "hook_event_name") or _text(event, "event")
    if not name:
        raise NotAnEvent("the event has no hook_event_name; this command is for the hooks of agents' command lines")
    cursor = "conversation_id" in event
    return HookEvent(
        _KINDS.get(name, Kind.OTHER),
        name,
        Dialect.CURSOR if cursor else Dialect.EXIT,
        _text(event, "session_id") or _text(event, "conversation_id"),
        _path(event.get("cwd")) or _path(event.get("working_dir")) or _path(_first(event.get("workspace_roots"))),
        _text(event, "tool_name") or _TOOL_OF_EVENT.get(name, ""),
        _worked(name, event.get("tool_response")),
        _arguments(event.get("tool_input")),
        _text(event, "agent_id"),
        event.get("is_interrupt") is True or event.get("status") in ("aborted", "error"),
        event.get("stop_hook_active") is True or bool(_count(event.get("loop_count"))),
    )


def _text(event: Mapping[str, Any], field: str) -> str:
    value = event.get(field)
    if value is None:
        return ""
    if not isinstance(value, str) or len(value) > _MAX_TEXT or "\0" in value:
        raise NotAnEvent(f"{field} of the event is no text of at most {_MAX_TEXT} characters")
    return value


def _first(values: Any) -> Any:
    return values[0] if isinstance(values, list) and values else ""


def _path(given: Any) -> str:
    """Return a directory's path, or nothing where no directory can have it: the event counts all the same."""
    if not isinstance(given, str) or len(given) > _MAX_PATH or "\0" in given:
        return ""
    try:
        given.encode()
    except UnicodeEncodeError:
        return ""
    return given


def _worked(name: str, response: Any) -> bool:
    if name.endswith("Failure"):
        return False
    if not isinstance(response, dict):
        return True
    return not (response.get("error") or response.get("is_error") is True or response.get("success") is False)


def _arguments(given: Any) -> Mapping[str, Any]:
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except (ValueError, RecursionError):
            return {}
    return given if isinstance(given, dict) else {}


def _count(given: Any) -> int:
    return given if isinstance(given, int) else 0
