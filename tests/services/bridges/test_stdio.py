"""`turngate mcp` as a process, spoken to line by line: what comes out of order or broken, and who goes away."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.running import running
from tests.services.bridges.agent import BAD, VERIFIED, agent, options_for, question_of, running_call, text_of
from tests.services.bridges.events import claude
from tests.services.cli.shell import COMMAND, environment, inside
from tests.waiting import wait_until
from turngate.bridges.mcp.options import Options
from turngate.bridges.names import session_of_directory, session_of_name
from turngate.bridges.places import Places
from turngate.cli.commands import OK, READER_GONE
from turngate.jetstream.embedded import EmbeddedServer

LINE_S = 60
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}


class Spoken:
    """A server process, spoken to by lines."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self._requests = 0

    async def send(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")
        await self.process.stdin.drain()

    async def request(self, method: str, params: Any = None) -> int:
        """Send a request and return its id."""
        self._requests += 1
        message = {"jsonrpc": "2.0", "id": self._requests, "method": method, "params": params or {}}
        await self.send(json.dumps(message).encode())
        return self._requests

    async def reply(self, request: int) -> dict[str, Any]:
        """Wait for the answer to a request; what else is said is passed over."""
        assert self.process.stdout is not None
        while True:
            line = await asyncio.wait_for(self.process.stdout.readline(), LINE_S)
            assert line, "the server ended"
            said: dict[str, Any] = json.loads(line)
            if said.get("id") == request:
                return said

    async def ask(self, method: str, params: Any = None) -> dict[str, Any]:
        return await self.reply(await self.request(method, params))

    def stop_reading(self) -> None:
        """Close the end of its standard output that is here, as a client that was killed does."""
        transport = self.process._transport  # type: ignore[attr-defined]
        transport.get_pipe_transport(1).close()

    async def hello(self) -> None:
        await self.ask("initialize", HELLO)
        await self.send(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}')


@contextlib.asynccontextmanager
async def speaking(options: Options, cwd: Path) -> AsyncIterator[Spoken]:
    """A server process in a directory, which has ended when the block has."""
    process = await asyncio.create_subprocess_exec(
        *COMMAND,
        "mcp",
        cwd=cwd,
        env=environment(variables(options)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=4 * 1024 * 1024,
    )
    try:
        yield Spoken(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


def variables(options: Options) -> dict[str, str]:
    return {
        "TURNGATE_NATS_URL": options.url,
        "TURNGATE_NAMESPACE": options.namespace,
        "TURNGATE_POOL": options.pool,
        "TURNGATE_AGENTS_DIR": str(options.agents),
        **({"TURNGATE_SESSION": options.session} if options.session else {}),
    }


def nested(levels: int) -> list[Any]:
    """A list in a list, so many times."""
    inner: list[Any] = []
    for _ in range(levels):
        inner = [inner]
    return inner


async def test_it_survives_what_comes_out_of_order_or_broken(options, tmp_path):
    async with speaking(options, tmp_path) as server:
        early = await server.ask("tools/call", {"name": "Report", "arguments": BAD})
        await server.send(b"this is no JSON")
        await server.send(b'{"jsonrpc": "2.0", "id": {"odd": 1}, "method": "tools/list"}')
        await server.send(b'{"jsonrpc": "2.0", "id": true, "method": 3, "params": {"half of an emoji": "\\ud83d"}}')
        await server.hello()
        no_name = await server.ask("tools/call", {"arguments": {}})
        no_object = await server.ask("tools/call", {"name": "Report", "arguments": "text"})
        half_emoji = await server.ask("tools/call", {"name": "Report", "arguments": BAD | {"headline": "\ud83d"}})
        too_deep = await server.ask("tools/call", {"name": "Report", "arguments": {"blocks": nested(300)}})
        unknown = await server.ask("tools/call", {"name": "rm", "arguments": {}})
        huge = await server.ask("tools/call", {"name": "conclude", "arguments": {"summary": "x" * 1024 * 1024}})
        listed = await server.ask("tools/list")

    assert early["error"]["code"] == -32602
    assert no_name["error"]["code"] == no_object["error"]["code"] == -32602
    assert half_emoji["result"]["structuredContent"]["outcome"] == "rejected"
    assert "the request can't be read" in too_deep["error"]["message"]
    assert unknown["error"]["message"].startswith("there is no tool 'rm'; there are Report")
    assert huge["result"]["isError"]
    assert "summary has 1048576 bytes" in huge["result"]["content"][0]["text"]
    assert len(listed["result"]["tools"]) == 4


async def test_a_client_that_dies_while_it_waits_leaves_the_question_and_no_process(options, person, tmp_path):
    async with speaking(options, tmp_path) as server:
        await server.hello()
        await server.request("tools/call", {"name": "ask_user_text", "arguments": {"question": "Go on?"}})
        asked = await question_of(person)
        assert server.process.stdin is not None
        server.process.stdin.close()
        code = await asyncio.wait_for(server.process.wait(), LINE_S)
    await person.questions.resolve(options.session, asked, chat="yes")

    async with agent(options) as another:
        result = await another.call("ask_user_text", {"question": "Go on?"})

    assert code == 0
    assert text_of(result) == '{"chat":"yes"}'


async def test_a_client_that_is_killed_ends_the_server_without_a_complaint(options, person, tmp_path):
    async with speaking(options, tmp_path) as server:
        await server.hello()
        await server.request("tools/call", {"name": "ask_user_text", "arguments": {"question": "Go on?"}})
        await question_of(person)
        server.stop_reading()
        for _ in range(20):  # the first answer breaks the pipe
            await server.request("ping")
        assert server.process.stdin is not None
        assert server.process.stderr is not None
        server.process.stdin.close()
        said = (await asyncio.wait_for(server.process.stderr.read(), LINE_S)).decode()
        code = await asyncio.wait_for(server.process.wait(), LINE_S)

    assert said == ""
    assert code in (OK, READER_GONE)


async def test_without_a_configured_session_server_and_hook_agree_on_the_project_s(system, tmp_path):
    options = options_for(system.settings, tmp_path, session="")
    project = tmp_path / "web shop"
    below = project / "src"
    below.mkdir(parents=True)
    env = variables(options)

    async with speaking(options, project) as server:
        await server.hello()
        await server.ask("tools/list")
        edited = claude("PostToolUse", tool_name="Edit", cwd=str(below))
        await asyncio.to_thread(inside, "hook", env=env, stdin=edited)
        owed = await asyncio.to_thread(inside, "hook", env=env, stdin=claude("Stop", cwd=str(below)))
        reported = await server.ask("tools/call", {"name": "Report", "arguments": VERIFIED})
        settled = await asyncio.to_thread(inside, "hook", env=env, stdin=claude("Stop", cwd=str(below)))

    session = session_of_directory(project)
    assert session.startswith("web-shop-")
    assert (owed.code, reported["result"]["isError"], settled.code) == (2, False, 0)
    assert (await (await system.client("alice")).get(session)).state.current.phase.value == "accepted"


@pytest.mark.parametrize(("program", "key"), [("codex-mcp-client", "threadId"), ("opencode", "ai.opencode/sessionID")])
async def test_agents_that_name_their_conversation_in_each_call_get_its_session(system, tmp_path, program, key):
    options = options_for(system.settings, tmp_path, session="")

    async with agent(options, program=program) as one:
        await one.tools()
        meta: Any = {key: "thread/7"}
        result = await one.client.call_tool("Report", VERIFIED, meta=meta)

    assert not result.is_error
    sessions = [path.name for path in (options.agents / "sessions").iterdir()]
    assert sessions == [session_of_name("thread/7")]
    assert Places(options.agents).linked(options.directory) == "", "its hooks name it too"


async def test_services_that_go_away_in_the_middle_lose_no_question_and_no_report(own_server, namespace, tmp_path):
    server: EmbeddedServer = own_server
    async with running(server.url, namespace) as system:
        person = await system.client("alice")
        async with agent(options_for(system.settings, tmp_path)) as one:
            async with running_call(one, "ask_user_text", {"question": "Go on?"}) as call:
                asked = await question_of(person, "agent-1")
                await asyncio.to_thread(server.kill)
                away = await one.call("Report", VERIFIED)
                await asyncio.to_thread(server.start)
                await wait_until(lambda: person.connection.is_connected, why="the person is back")
                await person.questions.resolve("agent-1", asked, chat="yes")
                answered = await call
            reported = await one.report(VERIFIED)

    assert away.is_error
    assert text_of(away).startswith("unavailable: ")
    assert "make the very same call of Report again" in text_of(away)
    assert text_of(answered) == '{"chat":"yes"}'
    assert (reported["outcome"], reported["turn"], reported["attempt"]) == ("accepted", 1, 1)
