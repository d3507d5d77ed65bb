"""A scripted agent in a real process, with the MCP server and the hook as processes, answered in the console."""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.services.bridges.agent import SESSION, question_of
from tests.services.cli.shell import environment
from tests.services.console.serving import serving
from turngate.jetstream.embedded import EmbeddedServer
from turngate_protocol.question.model import Request

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
STEP_S = 60


class Played:
    """The agent's process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def next(self, step: str) -> dict[str, Any]:
        """Wait for the next step, which must be this one."""
        assert self._process.stdout is not None
        line = await asyncio.wait_for(self._process.stdout.readline(), STEP_S)
        said: dict[str, Any] = json.loads(line or b'{"step": "its end"}')
        assert said.pop("step") == step, said
        return said

    async def go_on(self) -> None:
        """Let it go on after its server was killed."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"\n")
        await self._process.stdin.drain()

    async def ended(self) -> int:
        return await asyncio.wait_for(self._process.wait(), STEP_S)


@contextlib.asynccontextmanager
async def playing(directory: Path, **variables: str) -> AsyncIterator[Played]:
    """The agent, which has ended when the block has."""
    log = (directory / "agent.log").open("wb")
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.system.mcp_agent",
        str(directory),
        cwd=ROOT,
        env=environment({"TURNGATE_SESSION": SESSION, "TURNGATE_AGENTS_DIR": str(directory / "agents"), **variables}),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=log,
    )
    try:
        yield Played(process)
    finally:
        log.close()
        if process.returncode is None:
            process.kill()
            await process.wait()


async def test_it_reports_is_reminded_and_gets_its_answers_though_its_server_is_killed(
    nats_server: EmbeddedServer, namespace: str, tmp_path: Path
):
    async with (
        serving(nats_server.url, namespace, tmp_path) as console,
        console.browser() as page,
        playing(
            tmp_path, TURNGATE_NATS_URL=nats_server.url, TURNGATE_NAMESPACE=namespace, TURNGATE_POOL="pool-1"
        ) as agent,
    ):
        person = await console.system.client("reader")
        await page.log_in(console.add_token("alice"))

        async def answer(request: Request, text: str) -> None:
            await page.get("/questions")
            done = await page.post(
                f"/questions/{SESSION}/chat", id=request.id, digest=request.schema_digest, text=text, op=f"op-{text}"
            )
            assert done.status_code == 200, done.text

        assert "REPORT_REJECTED" in (await agent.next("reported"))["text"]
        assert "is accepted" in (await agent.next("repaired"))["text"]
        assert (await agent.next("stopped"))["code"] == 0

        reminded = await agent.next("stopped without a report")
        assert (reminded["code"], "end it by calling the Report tool" in reminded["told"]) == (2, True)
        assert "is accepted" in (await agent.next("reminded"))["text"]
        assert (await agent.next("stopped with a report"))["code"] == 0

        await answer(await question_of(person), "yes")
        assert (await agent.next("answered"))["text"] == '{"chat":"yes"}'

        waiting = await question_of(person)
        os.kill(int((tmp_path / "server.pid").read_text()), signal.SIGKILL)
        await agent.next("its server is gone")
        await answer(waiting, "redis")
        await agent.go_on()
        assert (await agent.next("answered by another server"))["text"] == '{"chat":"redis"}'
        assert await agent.ended() == 0

        state = (await person.get(SESSION)).state
        outcome = (await person.questions.get(SESSION)).outcome

    assert [(turn.turn, turn.phase.value) for turn in state.history] == [(1, "accepted")]
    assert (state.current.turn, state.current.phase.value) == (2, "accepted")
    assert outcome is not None
    assert outcome.by == "alice"
