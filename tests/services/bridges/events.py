"""Hook events as the agents' command lines write them, each with the fields that its documentation names."""

import json
from typing import Any


def claude(name: str, **fields: Any) -> bytes:
    """An event of Claude Code."""
    return _event(
        session_id="0d1c7f1e-5b6a-4c7d-9e2f-8a1b2c3d4e5f",
        transcript_path="/home/ann/.claude/projects/web/0d1c7f1e.jsonl",
        permission_mode="default",
        hook_event_name=name,
        **fields,
    )


def codex(name: str, **fields: Any) -> bytes:
    """An event of Codex."""
    return _event(
        session_id="019a-thread", turn_id="7", transcript_path=None, model="m", hook_event_name=name, **fields
    )


def gemini(name: str, **fields: Any) -> bytes:
    """An event of Gemini CLI."""
    return _event(
        session_id="gemini-1", transcript_path="/t", hook_event_name=name, timestamp="2026-11-30T12:00:00Z", **fields
    )


def cursor(name: str, **fields: Any) -> bytes:
    """An event of Cursor."""
    return _event(
        conversation_id="conv-1",
        generation_id="gen-1",
        hook_event_name=name,
        cursor_version="2.0.77",
        workspace_roots=["/srv/web"],
        **fields,
    )


def goose(name: str, **fields: Any) -> bytes:
    """An event of Goose."""
    return _event(event=name, session_id="20261130_1", **fields)


def _event(**fields: Any) -> bytes:
    return json.dumps(fields).encode()
