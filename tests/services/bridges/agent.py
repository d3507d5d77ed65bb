"""An agent as these tests play it: the SDK's own client, connected to a server in this process, and what it sends."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from mcp import Client
from mcp.client.session import ElicitationFnT
from mcp_types import CallToolResult, Implementation
from msgspec.structs import replace

from tests.waiting import wait_until
from turngate.bridges.mcp.options import Options, ShowObjective
from turngate.bridges.mcp.server import TurngateServer
from turngate.runner import TurnClient
from turngate.settings import Settings
from turngate_contracts.errors import ErrorCode, Refusal
from turngate_protocol.question.model import Request

SESSION = "agent-1"

FINDING = {
    "type": "finding",
    "id": "cause",
    "summary": "The retry hides the first error.",
    "impact": "Operators see the second error only.",
    "importance": "high",
    "blocks_current_task": False,
}
GOOD: dict[str, Any] = {"task_status": "completed", "headline": "Found why it fails", "blocks": [FINDING]}
BAD: dict[str, Any] = {"task_status": "completed", "headline": "", "blocks": []}
VERIFIED: dict[str, Any] = {
    "task_status": "completed",
    "headline": "Fixed the retry",
    "blocks": [
        {"type": "change", "id": "retry", "summary": "The first error is kept."},
        {
            "type": "verification",
            "id": "tests",
            "summary": "All tests pass.",
            "status": "passed",
            "evidence": "12 passed",
        },
    ],
}
QUESTION: dict[str, Any] = {
    "questions": [
        {
            "header": "Store",
            "question": "Where should sessions be kept?",
            "options": [
                {"label": "Redis", "description": "Fast, one more service."},
                {"label": "Postgres", "description": "Slower, already there."},
            ],
        }
    ]
}


class Agent:
    """An agent with the turn tools of one session."""

    def __init__(self, client: Client, notified: list[str]) -> None:
        self.client = client
        self.notified = notified

    async def call(self, tool: str, arguments: dict[str, Any] | None = None) -> CallToolResult:
        """Call a tool and return what came back."""
        return await self.client.call_tool(tool, arguments)

    async def report(self, report: dict[str, Any]) -> dict[str, Any]:
        """Report, and return the verdict as data."""
        result = await self.call("Report", report)
        verdict: dict[str, Any] | None = result.structured_content
        assert verdict is not None, text_of(result)
        return verdict

    async def tools(self) -> list[str]:
        """List the tools by name."""
        return [tool.name for tool in (await self.client.list_tools()).tools]


def text_of(result: CallToolResult) -> str:
    """Return the text that a model reads."""
    assert len(result.content) == 1
    content = result.content[0]
    assert content.type == "text"
    return content.text


@contextlib.asynccontextmanager
async def agent(
    options: Options,
    *,
    mode: str = "legacy",
    elicitation: ElicitationFnT | None = None,
    program: str = "tests",
    **changed: Any,
) -> AsyncIterator[Agent]:
    """An agent that is connected for as long as the block lasts, to a server of its own."""
    server = TurngateServer(replace(options, **changed))
    notified: list[str] = []

    async def note(message: Any) -> None:
        notified.append(getattr(message, "method", ""))

    connecting = Client(
        server.mcp,
        mode=mode,
        elicitation_callback=elicitation,
        message_handler=note,
        client_info=Implementation(name=program, version="1"),
    )
    async with connecting as client:
        yield Agent(client, notified)


def options_for(settings: Settings, directory: Path, **changed: Any) -> Options:
    """Options for a server of a system with these settings, with its files below `directory`.

    Nothing asks for objectives unless a test wants that: where no supervisor runs, each listing would wait for one.
    """
    return replace(
        Options(
            url=settings.nats_url,
            identity="mcp-test",
            agents=directory / "agents",
            directory=directory,
            namespace=settings.namespace,
            pool="pool-1",
            session=SESSION,
            objective=ShowObjective.OFF,
        ),
        **changed,
    )


async def question_of(person: TurnClient, session: str = SESSION) -> Request:
    """Wait until a session waits for a person, and return its question."""

    asked: list[Request] = []

    async def pending() -> bool:
        try:
            found = await person.questions.get(session)
        except Refusal as error:
            if error.code is not ErrorCode.NOT_FOUND:
                raise
            return False
        if found.pending is not None:
            asked.append(found.pending.request)
        return bool(asked)

    # Behind it a process may have to start first, on a machine that does much else.
    await wait_until(pending, 60, f"{session} asks")
    return asked[0]


@contextlib.asynccontextmanager
async def running_call(
    agent: Agent, tool: str, arguments: dict[str, Any]
) -> AsyncIterator[asyncio.Task[CallToolResult]]:
    """A call that goes on beside the test, and has ended when the block has."""
    call = asyncio.create_task(agent.call(tool, arguments))
    try:
        yield call
    finally:
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
