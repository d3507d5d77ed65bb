"""Evidence: which session an event is about, and what a used tool says of the turn.

A tool that is not known to only look counts as one that changed something: a turn owes its report once too often rather
than once too seldom. The turn tools themselves count as nothing.
"""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from turngate.bridges import conclusions, toollog
from turngate.bridges.hook.decode import HookEvent
from turngate.bridges.names import configured, session_of_directory, session_of_name
from turngate.bridges.places import Places
from turngate.bridges.toollog import ToolUse

OWN_TOOLS: Final = ("Report", "ask_user", "ask_user_text", "get_esm", "update_esm", "conclude")
"""The tools of `turngate mcp`; agents call them by these names with that of the server before them."""
CONCLUDE: Final = "conclude"

READ_ONLY: Final = frozenset(
    (
        # Claude Code
        *("Read", "Glob", "Grep", "LS", "NotebookRead", "WebFetch", "WebSearch", "TodoWrite", "TodoRead", "Task"),
        *(
            "Agent",
            "BashOutput",
            "TaskOutput",
            "ToolSearch",
            "AskUserQuestion",
            "ExitPlanMode",
            "EnterPlanMode",
            "Skill",
        ),
        *("TaskCreate", "TaskUpdate", "TaskList", "TaskGet", "ListMcpResourcesTool", "ReadMcpResourceTool", "LSP"),
        # Codex
        *("update_plan", "view_image", "web_search", "list_dir", "grep_files"),
        # Gemini CLI
        *("read_file", "read_many_files", "list_directory", "search_file_content", "grep_search", "glob"),
        *("google_web_search", "web_fetch", "write_todos"),
        # opencode
        *("read", "grep", "list", "webfetch", "websearch", "todowrite", "todoread", "task", "skill"),
        # Goose
        *("developer__tree", "developer__read_image", "todo__todo_write"),
    )
)
"""Tools of agents' command lines that change nothing outside of the conversation."""

_BEFORE_NAME: Final = ("__", "turngate_", ".", "/", ":")
_PROJECT_VARIABLES: Final = ("CLAUDE_PROJECT_DIR", "GEMINI_PROJECT_DIR", "CURSOR_PROJECT_DIR")


def directories_of(event: HookEvent, environment: Mapping[str, str], working: Path) -> list[Path]:
    """Return the directories that an event may be about, the surest one first."""
    named = [environment.get(variable, "") for variable in _PROJECT_VARIABLES]
    return [Path(place) for place in (*named, event.directory) if place.startswith("/")] + [working]


def session_of(
    event: HookEvent, flag: str, environment: Mapping[str, str], places: Places, directories: Sequence[Path]
) -> str:
    """Return the session that an event is about.

    It is the configured one; else the agent's own where the MCP server has used that too; else the one that the MCP
    server of the directory acts for; else the agent's own; else the directory's.

    Raises:
        NotASession: the configured one is none.
    """
    if named := configured(flag, environment):
        return named
    own = session_of_name(event.session) if event.session else ""
    if own and places.knows(own):
        return own
    for directory in directories:
        if linked := places.linked(directory):
            return linked
    return own or session_of_directory(directories[0])


def record(event: HookEvent, directory: Path, at: float, read_only: Sequence[str] = ()) -> None:
    """Write down that a tool was used.

    Args:
        event: what the agent's program told.
        directory: that of the session's files.
        at: when, in seconds since the epoch.
        read_only: patterns of further tools that only look.
    """
    own = own_tool(event.tool)
    if own == CONCLUDE and event.agent:
        conclusions.attribute(directory, event.arguments, event.agent)
    if own:
        return
    mutated = not only_looks(event.tool, read_only)
    toollog.append(directory, ToolUse(event.tool, mutated, event.ok, event.agent, at))


def own_tool(tool: str) -> str:
    """Return which of the turn tools a tool is; nothing for all others."""
    return next((own for own in OWN_TOOLS if tool == own or tool.endswith(tuple(b + own for b in _BEFORE_NAME))), "")


def only_looks(tool: str, read_only: Sequence[str] = ()) -> bool:
    """Say whether a tool changes nothing."""
    return tool in READ_ONLY or any(fnmatchcase(tool, pattern) for pattern in read_only)
