"""What a model reads of the tools: names, what each is for and when, and the schemas, which come from the protocol."""

from typing import Any, Final

from mcp_types import Tool, ToolAnnotations

from turngate_protocol.conclusion.tools import CONCLUDE
from turngate_protocol.esm.tools import GET_ESM, UPDATE_ESM
from turngate_protocol.question.tools import tool_declarations
from turngate_protocol.report.schema import json_schema

REPORT: Final = "Report"
"""The tool that a turn ends with."""

INSTRUCTIONS: Final = """\
A person follows your work through Turngate. End every turn in which you changed anything by calling Report, once, as \
your last action, instead of a summary in prose: it becomes the card that the person reads and answers with one key. \
If it is rejected, repair what the text names and call it again. When you can't go on without the person, ask with \
ask_user (options to choose from) or ask_user_text and wait; never end a turn with a question in prose."""

_REPORT: Final = """\
End your turn with this report instead of a summary in prose. Call it once, alone, as the last thing you do.

- Say what is so, not what you meant to do. completed needs a verification block for what was changed: what you ran \
and what it printed; what you did not check is not_run, with why.
- Whatever needs the user's choice, an answer or a go-ahead is a block with options (decision, question, next_step, \
blocked) and task_status needs_action or blocked. The user answers with one key, so make each option complete in itself.
- If the result is an error that begins with REPORT_REJECTED, nothing was shown to anybody: repair every problem that \
it lists, keep the rest, and call Report again. You may repair three times.
- When it is accepted, the turn is over: stop, and write nothing more."""

_AGAIN: Final = (
    "It may take hours: keep waiting. If the call is cut off, make the very same call again: the user is not asked "
    "twice, and an answer that came meanwhile is its result."
)


def every_tool(max_blocks: int) -> dict[str, Tool]:
    """Return all tools by name, as they are listed; `max_blocks` is the most that a report may have."""
    asking = [
        _tool(declared.name, f"{declared.description} {_AGAIN}", declared.parameters, read_only=True)
        for declared in tool_declarations()
    ]
    tools = (
        _tool(REPORT, _REPORT, json_schema(max_blocks)),
        *asking,
        _declared(GET_ESM, read_only=True),
        _declared(UPDATE_ESM),
        _declared(CONCLUDE),
    )
    return {tool.name: tool for tool in tools}


OBJECTIVE_TOOLS: Final = (GET_ESM["name"], UPDATE_ESM["name"])
"""The tools that make sense only where there is an objective."""


def _declared(tool: dict[str, Any], *, read_only: bool = False) -> Tool:
    return _tool(tool["name"], tool["description"], tool["input_schema"], read_only=read_only)


def _tool(name: str, description: str, schema: dict[str, Any], *, read_only: bool = False) -> Tool:
    return Tool(
        name=name,
        description=description,
        input_schema=schema,
        annotations=ToolAnnotations(read_only_hint=read_only, destructive_hint=False, open_world_hint=False),
    )
