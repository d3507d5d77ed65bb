"""The scripted adapter: it plays what the scenario says of a run, whoever plays it, and refuses what is no scenario."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.waiting import wait_until
from turngate.runner.adapters.scripted import ScriptedAdapter
from turngate.runner.role_run import Context
from turngate_contracts.errors import InvalidMessage
from turngate_protocol.esm.classify import FailureKind
from turngate_protocol.esm.evidence import Evidence
from turngate_protocol.esm.objective import Objective, Role
from turngate_protocol.esm.roles import RoleRequest

YAML = """
default:
  - worker: {response: {status: continue}, tools: [bash, {name: edit, error: true}], tokens: 7}
  - worker: {response: plain text, tools: 3, progress: [reading, writing], duration_ms: 90}
    critic: {failure: incomplete, tokens: 2}
    audit: {failure: {kind: usage_limit, message: no more}}
night-*:
  - worker: {hangs: true}
"""


def asked(session: str = "s-1", base: str = "e1-1", role: Role = Role.WORKER) -> RoleRequest:
    objective = Objective(session, "e1", "Do all of it")
    return RoleRequest(session, f"{base}-{role.value}", base, 2, "c-1", role, "Go", objective)


@pytest.fixture
def context(tmp_path: Path) -> Context:
    return Context(tmp_path)


async def test_a_role_answers_and_uses_tools_as_its_run_says(context: Context):
    result = await ScriptedAdapter.from_yaml(YAML).run(asked(), context)

    assert (result.response, result.tokens, result.failure) == ('{"status":"continue"}', 7, None)
    assert context.evidence() == Evidence(2, {"bash": 1, "edit": 1}, 1)


@pytest.mark.parametrize("base", ["e1-2", "e1-3", "e1-400"])
async def test_the_last_run_repeats(context: Context, base: str):
    result = await ScriptedAdapter.from_yaml(YAML).run(asked(base=base), context)

    assert (result.response, result.duration_ms) == ("plain text", 90)
    assert context.evidence().tool_calls == 3
    assert context.last_progress == "writing"


@pytest.mark.parametrize("base", ["named", "e1-0", "e1-x"])
async def test_a_run_without_a_number_is_the_first(context: Context, base: str):
    result = await ScriptedAdapter.from_yaml(YAML).run(asked(base=base), context)

    assert result.tokens == 7


@pytest.mark.parametrize(
    ("role", "kind", "message"),
    [
        (Role.CRITIC, FailureKind.INCOMPLETE, "the scenario says so"),
        (Role.AUDIT, FailureKind.USAGE_LIMIT, "no more"),
        (Role.RECOVERY, FailureKind.ERROR, "the scenario of s-1 says nothing of a recovery in this run"),
    ],
)
async def test_a_role_fails_as_its_run_says(context: Context, role: Role, kind: FailureKind, message: str):
    result = await ScriptedAdapter.from_yaml(YAML).run(asked(base="e1-2", role=role), context)

    assert (result.failure, result.message) == (kind, message)


async def test_a_scenario_may_be_for_sessions_that_begin_alike_and_hangs_until_it_is_stopped(context: Context):
    agent = asyncio.create_task(ScriptedAdapter.from_yaml(YAML).run(asked("night-3"), context))
    done, _ = await asyncio.wait({agent}, timeout=0.05)
    assert not done

    context.cancelled.set()

    assert (await agent).failure is FailureKind.CANCELLED


async def test_one_that_hangs_says_its_lines_first(context: Context):
    adapter = ScriptedAdapter({"default": [{"worker": {"hangs": True, "progress": ["reading", "stuck"]}}]})
    agent = asyncio.create_task(adapter.run(asked(), context))

    await wait_until(lambda: context.last_progress == "stuck")

    assert not agent.done()
    context.cancelled.set()
    assert (await agent).failure is FailureKind.CANCELLED


async def test_a_delay_ends_when_the_agent_is_stopped(context: Context):
    adapter = ScriptedAdapter({"default": [{"worker": {"delay_ms": 60_000, "progress": ["a", "b"]}}]})
    agent = asyncio.create_task(adapter.run(asked(), context))

    context.cancelled.set()

    assert (await asyncio.wait_for(agent, 10)).failure is FailureKind.CANCELLED


@pytest.mark.parametrize(
    "scenarios",
    [
        {"default": {}},
        {"default": [{"painter": {}}]},
        {"default": [{"worker": {"respond": "x"}}]},
        {"default": [{"worker": {"failure": "boredom"}}]},
        {"default": [{"worker": {"tools": [{"tool": "x"}]}}]},
        {"default": [{"worker": {"tools": 10**9}}]},
        {"default": [{"worker": {"response": {(1, 2): "no name of JSON"}}}]},
        {"default": [{"worker": {"response": "half a pair: \ud800"}}]},
        {"default": 7},
    ],
    ids=str,
)
def test_what_is_no_scenario_is_refused_with_its_place(scenarios: dict[str, Any]):
    with pytest.raises(InvalidMessage, match="can't be played"):
        ScriptedAdapter(scenarios)


NOT_READABLE = ["a: !!bool x", "a: !!int ''", "a: 2026-13-45", "a: !!float x", "a: !!timestamp x", "a: &x [*x]", "\0"]


@pytest.mark.parametrize("text", ["", "- a", "7", "a: [", "default: [1]", *NOT_READABLE])
def test_a_text_that_is_no_scenario_is_refused(text: str):
    with pytest.raises(InvalidMessage) as refused:
        ScriptedAdapter.from_yaml(text)

    assert refused.value.message.isprintable()


def test_a_file_that_is_not_utf_8_is_refused(tmp_path: Path):
    file = tmp_path / "scenario.yaml"
    file.write_bytes(b"a: \xff")

    with pytest.raises(InvalidMessage, match="not UTF-8"):
        ScriptedAdapter.from_file(file)
