"""7. A delegated agent says "success" and cites files; nobody believes it before they were looked for on its host.

A session delegates a task to another agent, perhaps on another machine. When that agent ends, its runner tells Turngate
with the agent's output, whose closing block is the conclusion. Turngate asks the same runner which of the cited files
exist, and then tells the parent session once.
"""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from tests.running import System, running
from turngate.jetstream.embedded import EmbeddedServer
from turngate_protocol.conclusion import Task, brief_instruction

OUTPUT = """\
I added the retry policy and its tests.

<pando:conclusion>
status: success
summary: Failed uploads are tried again, three times at most
artifacts:
  - retry.py
  - test_retry.py
confidence: 0.8
</pando:conclusion>
"""


@pytest_asyncio.fixture
async def system(nats_server: EmbeddedServer, namespace: str) -> AsyncIterator[System]:
    """A running system with the conclusion service."""
    async with running(nats_server.url, namespace, conclusion=True, stat_timeout_ms=15_000) as made:
        yield made


async def test_a_conclusion_whose_evidence_exists_is_believed(system: System, tmp_path: Path):
    runner = await system.client("runner-1", pool="web")
    await runner.serve_stat([tmp_path])
    (tmp_path / "retry.py").touch()
    (tmp_path / "test_retry.py").touch()

    await runner.finish_task("session-1", Task("task-1", "completed", work_dir=str(tmp_path), output=OUTPUT))

    found = await runner.conclusion("session-1", "task-1", wait_ms=20_000)
    assert found.state.conclusion is not None
    assert found.state.conclusion.status == "success"


async def test_a_success_that_cites_what_does_not_exist_is_partial(system: System, tmp_path: Path):
    runner = await system.client("runner-1", pool="web")
    await runner.serve_stat([tmp_path])
    (tmp_path / "retry.py").touch()

    await runner.finish_task("session-1", Task("task-1", "completed", work_dir=str(tmp_path), output=OUTPUT))

    found = await runner.conclusion("session-1", "task-1", wait_ms=20_000)
    assert found.state.conclusion is not None
    assert found.state.conclusion.status == "partial"
    assert found.state.gate is not None
    assert found.state.gate.missing_artifacts == ("test_retry.py",)


async def test_the_parent_is_told_in_its_own_session(system: System, tmp_path: Path):
    runner = await system.client("runner-1", pool="web")
    await runner.serve_stat([tmp_path])

    await runner.finish_task("session-1", Task("task-1", "completed", work_dir=str(tmp_path), output=OUTPUT))

    async with contextlib.aclosing(runner.prompts()) as prompts:
        incoming = await anext(prompts)
        await incoming.take()
    assert incoming.prompt.session == "session-1"
    header, summary, *_ = incoming.prompt.text.split("\n")
    assert header.startswith("[delegated-result task=task-1 ")
    assert "status=partial" in header
    assert summary == "summary: Failed uploads are tried again, three times at most"
    assert "  - retry.py (missing)" in incoming.prompt.text


def test_a_delegated_agent_is_asked_for_the_block():
    assert "<pando:conclusion>" in brief_instruction()
