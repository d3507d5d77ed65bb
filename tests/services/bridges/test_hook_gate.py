"""`turngate hook` as agents run it: evidence after tools, a reminder where a report is owed, and never a trap."""

import asyncio
import json
from typing import Any

import pytest

from tests.running import running
from tests.services.bridges.agent import GOOD, VERIFIED, agent
from tests.services.bridges.events import claude, cursor
from tests.services.cli.shell import Outcome, inside
from turngate.bridges import conclusions
from turngate.bridges.mcp.options import Options
from turngate.bridges.places import Places
from turngate.runner import TurnClient

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture
def options(own_session: Options) -> Options:
    """Each test has a session of its own in one system."""
    return own_session


@pytest.fixture
def person(shared_person: TurnClient) -> TurnClient:
    """Who looks at it."""
    return shared_person


class Hook:
    """The hook of one session."""

    def __init__(self, options: Options) -> None:
        self.env = {
            "TURNGATE_NATS_URL": options.url,
            "TURNGATE_NAMESPACE": options.namespace,
            "TURNGATE_POOL": options.pool,
            "TURNGATE_AGENTS_DIR": str(options.agents),
            "TURNGATE_SESSION": options.session,
        }

    async def __call__(self, event: bytes, *flags: str, **env: str) -> Outcome:
        """Run it with an event."""
        return await asyncio.to_thread(inside, "hook", *flags, env=self.env | env, stdin=event)


@pytest.fixture
def hook(options: Options) -> Hook:
    """The hook of the session that the agent of these tests has."""
    return Hook(options)


@pytest.fixture
def lone_hook(alone: Options) -> Hook:
    """A hook that has no services to ask."""
    return Hook(alone)


def edited(**fields: Any) -> bytes:
    """A tool that changed something."""
    return claude("PostToolUse", tool_name="Edit", tool_input={}, **fields)


async def test_an_agent_that_changed_something_and_stops_is_told_to_report(hook):
    await hook(edited())

    stopped = await hook(claude("Stop"))

    assert stopped.code == 2
    assert stopped.out == ""
    assert "end it by calling the Report tool" in stopped.err


async def test_cursor_is_told_by_its_own_json(hook):
    await hook(cursor("afterFileEdit", file_path="/srv/web/a.py", edits=[]))

    stopped = await hook(cursor("stop", status="completed", loop_count=0))

    assert stopped.code == 0
    assert "end it by calling the Report tool" in json.loads(stopped.out)["followup_message"]


async def test_an_agent_that_only_looked_may_stop(hook):
    await hook(claude("PostToolUse", tool_name="Read"))

    assert await hook(claude("Stop")) == Outcome(0, "", "")


async def test_an_agent_that_reported_may_stop_and_owes_nothing_for_the_next_turn(hook, options, person):
    await hook(edited())
    async with agent(options) as one:
        await one.report(VERIFIED)
    await hook(claude("PostToolUse", tool_name="mcp__turngate__Report"))

    reported = await hook(claude("Stop"))
    asked_again = await hook(claude("Stop"))

    assert (reported.code, asked_again.code) == (0, 0)
    state = (await person.get(options.session)).state
    assert [(turn.turn, turn.phase.value) for turn in (*state.history, state.current)] == [
        (1, "accepted"),
        (2, "ended"),
    ]


async def test_looking_on_after_the_report_keeps_its_card(hook, options, person):
    await hook(edited())
    async with agent(options) as one:
        await one.report(VERIFIED)
    await hook(claude("PostToolUse", tool_name="Read"))

    assert (await hook(claude("Stop"))).code == 0
    assert (await person.get(options.session)).state.current.turn == 1


async def test_what_is_changed_after_the_report_owes_another_one(hook, options):
    await hook(edited())
    async with agent(options) as one:
        await one.report(VERIFIED)
        await hook(edited())
        stopped = await hook(claude("Stop"))
        verdict = await one.report(VERIFIED | {"headline": "Fixed the rest"})

    assert stopped.code == 2
    assert (verdict["outcome"], verdict["turn"]) == ("accepted", 2)


async def test_an_agent_that_will_not_report_is_reminded_twice_and_then_let_go(hook, person, options):
    await hook(edited())

    stops = [await hook(claude("Stop", stop_hook_active=number > 0)) for number in range(3)]

    assert [stopped.code for stopped in stops] == [2, 2, 0]
    assert "This is the last reminder" in stops[1].err
    assert "ended without the report that it owes" in stops[2].err
    assert (await person.get(options.session)).state.current.phase.value == "unreported"


async def test_an_interrupted_agent_is_not_sent_on(lone_hook):
    await lone_hook(cursor("afterFileEdit", file_path="/srv/web/a.py", edits=[]))

    assert await lone_hook(cursor("stop", status="aborted", loop_count=0)) == Outcome(0, "", "")


async def test_a_report_of_an_exhausted_turn_is_refused_until_the_agent_stopped(hook, options):
    await hook(edited())
    async with agent(options) as one:
        await hook(claude("Stop"))
        verdicts = [await one.report(GOOD | {"headline": f"Attempt {number}"}) for number in range(4)]
        refused = await one.call("Report", VERIFIED)
        stopped = await hook(claude("Stop"))
        next_turn = await one.report(VERIFIED)

    assert [verdict["outcome"] for verdict in verdicts] == ["rejected"] * 3 + ["exhausted"]
    assert refused.is_error
    assert stopped.code == 0
    assert (next_turn["outcome"], next_turn["turn"]) == ("accepted", 2)


async def test_a_subagent_s_conclusion_ends_its_task(nats_server, namespace, options, tmp_path):
    (tmp_path / "found.md").write_text("here")
    arguments = {"status": "success", "summary": "Looked", "artifacts": ["found.md", "lost.md"]}
    async with running(nats_server.url, f"{namespace}c", conclusion=True) as system:
        hook = Hook(options)
        hook.env["TURNGATE_NAMESPACE"] = system.settings.namespace
        conclusions.record(Places(options.agents).of_session(options.session), arguments)
        tool = {"tool_name": "mcp__turngate__conclude", "tool_input": arguments, "agent_id": "sub-1"}
        await hook(claude("PostToolUse", **tool))
        await hook(claude("PostToolUse", tool_name="Grep", agent_id="sub-1"))

        stopped = await hook(claude("SubagentStop", agent_id="sub-1", cwd=str(tmp_path)))
        state = (await (await system.client("alice")).conclusion(options.session, "sub-1")).state

    assert stopped.code == 0
    assert "recorded as partial" in stopped.err
    assert "lost.md" in stopped.err
    assert state.gate is not None
    assert state.gate.tool_calls == 1
    assert conclusions.of_agent(Places(options.agents).of_session(options.session), "sub-1") is None


async def test_a_subagent_without_a_conclusion_may_stop_without_any_server(lone_hook):
    stopped = await lone_hook(claude("SubagentStop", agent_id="sub-1"))

    assert stopped == Outcome(0, "", "")


async def test_services_that_are_away_let_the_agent_stop_and_say_so(lone_hook):
    away = {"TURNGATE_CONNECT_TIMEOUT_MS": "200"}
    await lone_hook(edited())

    allowed = await lone_hook(claude("Stop"), **away)
    blocked = await lone_hook(claude("Stop"), "--if-away", "block", **away)
    once = await lone_hook(claude("Stop", stop_hook_active=True), "--if-away", "block", **away)

    assert allowed.code == 1
    assert "the agent may stop: no NATS server at nats://127.0.0.1:9" in allowed.err
    assert (blocked.code, once.code) == (2, 1)


@pytest.mark.parametrize("flags", [("--bogus",), ("--if-away", "maybe"), ("more",)], ids=str)
async def test_a_mistake_in_the_command_line_never_keeps_an_agent_from_stopping(lone_hook, flags):
    outcome = await lone_hook(claude("Stop"), *flags)

    assert outcome.code == 1
    assert "usage: turngate hook" in outcome.err


async def test_a_mistake_in_the_settings_never_keeps_an_agent_from_stopping(lone_hook):
    outcome = await lone_hook(claude("Stop"), TURNGATE_NATS_URL="http://nowhere")

    assert outcome.code == 1
    assert "http://nowhere" in outcome.err


@pytest.mark.parametrize("data", [b"", b"not json", b"{}", b'{"hook_event_name": 1}'], ids=str)
async def test_what_is_no_event_never_keeps_an_agent_from_stopping(lone_hook, data):
    outcome = await lone_hook(data)

    assert outcome.code == 1
    assert outcome.err.startswith("turngate hook: ")
