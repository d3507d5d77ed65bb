"""The tools of objectives, listed where there is one, and `conclude`, for a delegated task and for subagents."""

import asyncio
from collections.abc import AsyncIterator

import pytest_asyncio
from msgspec.structs import replace

from tests.running import System, running
from tests.services.bridges.agent import SESSION, agent, options_for, text_of
from tests.supervised import Supervised, supervising
from tests.waiting import wait_until
from turngate.bridges import conclusions
from turngate.bridges.mcp.options import ShowObjective
from turngate.bridges.places import Places
from turngate.jetstream.embedded import EmbeddedServer
from turngate.settings import Settings

OBJECTIVE = "Make every test of the parser pass"


@pytest_asyncio.fixture
async def supervised(nats_server: EmbeddedServer, namespace: str) -> AsyncIterator[Supervised]:
    """A supervisor without any runner: objectives wait."""
    async with supervising(nats_server.url, namespace) as made:
        yield made


@pytest_asyncio.fixture
async def concluding(nats_server: EmbeddedServer, namespace: str) -> AsyncIterator[System]:
    """A system with the conclusion service."""
    async with running(nats_server.url, namespace, conclusion=True) as made:
        yield made


async def test_the_objective_s_tools_are_listed_once_there_is_one(supervised, tmp_path):
    async with agent(options_for(supervised.system.settings, tmp_path, objective=ShowObjective.AUTO)) as one:
        await one.call("get_esm")
        before = await one.tools()
        await (await supervised.person()).create(SESSION, OBJECTIVE)
        after = await one.tools()

    assert "get_esm" not in before
    assert {"get_esm", "update_esm"} < set(after)


async def test_a_client_is_told_when_the_list_grew_after_it_was_read(supervised, tmp_path):
    await (await supervised.person()).create(SESSION, OBJECTIVE)

    async with agent(options_for(supervised.system.settings, tmp_path, objective=ShowObjective.AUTO)) as one:
        first = await one.tools()
        await wait_until(lambda: "notifications/tools/list_changed" in one.notified, why="it is told of the list")
        second = await one.tools()

    assert "get_esm" not in first
    assert "get_esm" in second


async def test_they_are_always_or_never_listed_where_that_is_chosen(alone):
    async with agent(alone, objective=ShowObjective.ON) as one:
        always = await one.tools()
    async with agent(alone, objective=ShowObjective.OFF) as other:
        await other.call("conclude", {})
        never = await other.tools()

    assert always == ["Report", "ask_user", "ask_user_text", "get_esm", "update_esm", "conclude"]
    assert never == ["Report", "ask_user", "ask_user_text", "conclude"]


async def test_a_model_reads_its_objective_and_claims_that_it_is_complete(supervised, tmp_path):
    await (await supervised.person()).create(SESSION, OBJECTIVE)

    async with agent(options_for(supervised.system.settings, tmp_path, objective=ShowObjective.AUTO)) as one:
        read = await one.call("get_esm")
        claimed = await one.call("update_esm", {"status": "complete", "reason": "all 41 tests pass"})
        again = await one.call("update_esm", {"status": "complete", "reason": "all 41 tests pass"})

    assert OBJECTIVE in text_of(read)
    assert not claimed.is_error
    assert text_of(claimed).startswith("Recorded.")
    assert not again.is_error, "the same claim in the same turn is no second one"
    state = await supervised.state(SESSION)
    assert state.objective is not None
    assert state.objective.completion_reason == "all 41 tests pass"


async def test_arguments_of_wrong_types_are_told_by_field(supervised, tmp_path):
    async with agent(options_for(supervised.system.settings, tmp_path, objective=ShowObjective.AUTO)) as one:
        result = await one.call("update_esm", {"status": "done", "reason": 5})

    assert result.is_error
    assert "status" in text_of(result)


async def test_a_delegated_agent_s_conclusion_ends_its_task_and_tells_what_is_missing(concluding, tmp_path):
    (tmp_path / "made.txt").write_text("here")
    options = options_for(concluding.settings, tmp_path, task="task-7", parent="boss")

    async with agent(options) as one:
        result = await one.call(
            "conclude", {"status": "success", "summary": "Made it", "artifacts": ["made.txt", "forgotten.txt"]}
        )

    assert not result.is_error
    assert text_of(result).startswith(
        "Your conclusion is recorded as partial. Not found or unchanged: 'forgotten.txt'."
    )
    person = await concluding.client("alice")
    state = (await person.conclusion("boss", "task-7")).state
    assert state.conclusion is not None
    assert (state.conclusion.status, state.conclusion.summary) == ("partial", "Made it")


async def test_a_conclusion_that_is_told_again_is_one_and_another_one_changes_nothing(concluding, tmp_path):
    options = options_for(concluding.settings, tmp_path, task="task-7", parent="boss")
    first = {"status": "success", "summary": "Made it"}

    async with agent(options) as one:
        await one.call("conclude", first)
        again = await one.call("conclude", first)
        other = await one.call("conclude", {"status": "failed", "summary": "Did not"})

    assert text_of(again).startswith("Your conclusion is recorded as success. Stop here")
    assert "was concluded before with other content" in text_of(other)


async def test_without_a_task_a_conclusion_waits_for_the_hook_of_its_subagent(alone):
    arguments = {"status": "success", "summary": "Read it all"}

    async with agent(alone) as one:
        result = await one.call("conclude", arguments)

    waiting = conclusions.of_agent(Places(alone.agents).of_session(SESSION), "sub-1")
    assert "is noted" in text_of(result)
    assert waiting is not None
    assert waiting["arguments"] == arguments


async def test_a_conclusion_that_breaks_the_schema_names_every_field(alone):
    async with agent(alone) as one:
        result = await one.call(
            "conclude", {"status": "done", "summary": "", "artifacts": "x", "confidence": 7, "more": 1}
        )

    text = text_of(result)
    assert result.is_error
    assert all(field in text for field in ("'more'", "status", "summary", "artifacts", "confidence"))


async def test_services_that_are_away_are_a_tool_error_that_says_so_and_the_next_call_is_answered(
    own_server, namespace, tmp_path
):
    url = own_server.url
    own_server.stop()
    options = replace(
        options_for(Settings(nats_url=url, namespace=namespace), tmp_path),
        connect_timeout_ms=300,
    )
    async with agent(options) as one:
        tools = await one.tools()
        away = await one.call("Report", {"task_status": "failed"})
        await asyncio.to_thread(own_server.start)
        async with running(own_server.url, namespace):
            there = await one.call("Report", {"task_status": "failed"})

    assert "Report" in tools
    assert away.is_error
    assert text_of(away).startswith("unavailable: no NATS server at nats://127.0.0.1:")
    assert "Nothing was lost: make the very same call of Report again" in text_of(away)
    assert there.structured_content is not None
    assert there.structured_content["attempt"] == 1
