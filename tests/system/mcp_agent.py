"""A scripted agent as a process of its own: it has `turngate mcp` for tools and runs `turngate hook` where agents do.

    python -m tests.system.mcp_agent DIRECTORY

It says what it does in lines of JSON, writes the process id of its MCP server into DIRECTORY/server.pid, and starts
another server when that one is gone, as agents' command lines do.
"""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from mcp import Client, MCPError, StdioServerParameters, stdio_client
from mcp_types import CallToolResult

from tests.services.bridges.agent import BAD, QUESTION, VERIFIED, text_of
from tests.services.bridges.events import claude

COMMAND: Final = [sys.executable, "-m", "turngate.cli.main"]


def say(step: str, **facts: Any) -> None:
    """Tell the test what came of a step."""
    sys.stdout.write(json.dumps({"step": step, **facts}) + "\n")
    sys.stdout.flush()


async def hook(name: str, **fields: Any) -> "subprocess.CompletedProcess[bytes]":
    """Run the hook as the agent's program does."""
    event = claude(name, **fields)
    return await asyncio.to_thread(subprocess.run, [*COMMAND, "hook"], input=event, capture_output=True, timeout=60)


def server(directory: Path) -> Client:
    """Start an MCP server, and note its process id."""
    script = 'echo $$ > "$1"; shift; exec "$@"'
    started = ["-c", script, "sh", str(directory / "server.pid"), *COMMAND, "mcp"]
    return Client(stdio_client(StdioServerParameters(command="sh", args=started, env=dict(os.environ))), mode="legacy")


async def stop(step: str) -> None:
    """Stop, as an agent that has nothing more to do."""
    stopped = await hook("Stop", stop_hook_active=False)
    say(step, code=stopped.returncode, told=stopped.stderr.decode())


async def work(directory: Path) -> None:
    """Play the script up to the question that its server does not survive."""
    async with server(directory) as tools:
        await hook("PostToolUse", tool_name="Edit", tool_input={"file_path": "a.py"})
        say("reported", text=text_of(await tools.call_tool("Report", BAD)))
        say("repaired", text=text_of(await tools.call_tool("Report", VERIFIED)))
        await hook("PostToolUse", tool_name="mcp__turngate__Report", tool_input=VERIFIED)
        await stop("stopped")

        await hook("PostToolUse", tool_name="Write", tool_input={"file_path": "b.py"})
        await stop("stopped without a report")
        second = VERIFIED | {"headline": "Wrote the second part"}
        say("reminded", text=text_of(await tools.call_tool("Report", second)))
        await stop("stopped with a report")

        say("answered", text=text_of(await tools.call_tool("ask_user_text", {"question": "Shall I go on?"})))
        await ask_until_answered(tools, directory)


async def ask_until_answered(tools: Client, directory: Path) -> None:
    """Ask, and when the server dies start another one and make the same call."""
    try:
        result: CallToolResult = await tools.call_tool("ask_user", QUESTION)
    except MCPError as error:
        say("its server is gone", error=str(error))
        await asyncio.to_thread(sys.stdin.readline)
        async with server(directory) as others:
            result = await others.call_tool("ask_user", QUESTION)
    say("answered by another server", text=text_of(result))


if __name__ == "__main__":
    asyncio.run(work(Path(sys.argv[1])))
