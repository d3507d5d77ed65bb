"""Event streams as the agents' documentation describes them, shortened to what is read."""

import json
from typing import Any


def lines(*events: dict[str, Any]) -> list[bytes]:
    return [json.dumps(event).encode() for event in events]


CLAUDE = lines(
    {"type": "system", "subtype": "init", "session_id": "s-1", "tools": ["Bash", "Read"], "model": "m"},
    {
        "type": "assistant",
        "message": {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "I look at the tests first."},
                {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "pytest"}},
            ],
        },
    },
    {
        "type": "user",
        "message": {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "boom", "is_error": True}],
        },
    },
    {
        "type": "assistant",
        "message": {"content": [{"type": "tool_use", "id": "toolu_2", "name": "Read", "input": {"file_path": "a.py"}}]},
    },
    {"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "toolu_2", "content": "x = 1"}]}},
    {
        "type": "result",
        "subtype": "success",
        "is_error": False,
        "result": '{"status": "continue"}',
        "num_turns": 3,
        "usage": {"input_tokens": 100, "output_tokens": 20, "cache_read_input_tokens": 5},
    },
)

CODEX = lines(
    {"type": "thread.started", "thread_id": "t-1"},
    {"type": "turn.started"},
    {
        "type": "item.started",
        "item": {"id": "item_0", "type": "command_execution", "command": "bash -lc ls", "status": "in_progress"},
    },
    {
        "type": "item.completed",
        "item": {
            "id": "item_0",
            "type": "command_execution",
            "command": "bash -lc ls",
            "exit_code": 2,
            "status": "failed",
        },
    },
    {"type": "item.completed", "item": {"id": "item_1", "type": "file_change", "status": "completed"}},
    {"type": "item.completed", "item": {"id": "item_2", "type": "agent_message", "text": '{"status": "continue"}'}},
    {"type": "turn.completed", "usage": {"input_tokens": 100, "cached_input_tokens": 50, "output_tokens": 25}},
)

OPENCODE = lines(
    {"type": "step_start", "sessionID": "ses_1", "part": {"type": "step-start"}},
    {
        "type": "tool_use",
        "sessionID": "ses_1",
        "part": {"type": "tool", "callID": "call_1", "tool": "bash", "state": {"status": "completed"}},
    },
    {
        "type": "tool_use",
        "sessionID": "ses_1",
        "part": {"type": "tool", "callID": "call_2", "tool": "edit", "state": {"status": "error", "error": "no file"}},
    },
    {
        "type": "step_finish",
        "part": {"type": "step-finish", "reason": "tool-calls", "tokens": {"input": 60, "output": 10, "reasoning": 5}},
    },
    {"type": "text", "part": {"type": "text", "text": '{"status": "continue"}'}},
    {
        "type": "step_finish",
        "part": {"type": "step-finish", "reason": "stop", "tokens": {"input": 40, "output": 10, "reasoning": 0}},
    },
)

EVENTS = lines(
    {"type": "tool_call", "id": "1", "name": "bash"},
    {"type": "tool_result", "id": "1", "error": True},
    {"type": "tool_call", "id": "2", "name": "read"},
    {"type": "progress", "text": "half done"},
    {"type": "result", "text": '{"status": "continue"}', "tokens": 125},
)
