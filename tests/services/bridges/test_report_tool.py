"""`Report`: repaired by the problems' text, told apart from its repeats, and counted for agents that count nothing."""

import asyncio
import shutil

import pytest
from mcp.shared.exceptions import MCPError
from msgspec.structs import replace

from tests.services.bridges.agent import BAD, GOOD, VERIFIED, agent, text_of
from turngate.bridges import toollog
from turngate.bridges.mcp.options import Options
from turngate.bridges.places import Places
from turngate.bridges.toollog import ToolUse
from turngate.runner import TurnClient

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture
def options(own_session: Options) -> Options:
    """Each test has a session of its own in one system."""
    return own_session


@pytest.fixture
def person(shared_person: TurnClient) -> TurnClient:
    """Who answers in that system."""
    return shared_person


async def test_a_rejected_report_comes_back_as_text_and_its_repair_is_accepted(options):
    async with agent(options) as one:
        rejected = await one.call("Report", BAD)
        accepted = await one.call("Report", GOOD)

    assert rejected.is_error
    assert text_of(rejected).startswith("REPORT_REJECTED: 2 problems\n- /headline: ")
    assert "may be repaired 3 more times" in text_of(rejected)
    assert not accepted.is_error
    assert "Your turn is over" in text_of(accepted)
    assert accepted.structured_content == {
        "outcome": "accepted",
        "turn": 1,
        "attempt": 2,
        "attempts_left": 0,
        "problems": [],
    }


async def test_the_accepted_report_is_the_session_s_card(options, person):
    async with agent(options) as one:
        await one.report(GOOD)

    found = await person.get(options.session)

    assert (found.state.current.turn, found.state.current.phase.value) == (1, "accepted")
    assert b"Found why it fails" in bytes(found.state.current.report)


async def test_the_next_report_begins_the_next_turn(options):
    async with agent(options) as one:
        first = await one.report(GOOD)
        second = await one.report(GOOD | {"headline": "Found the other cause"})

    assert (first["turn"], second["turn"]) == (1, 2)
    assert second["attempt"] == 1


async def test_an_accepted_report_that_is_sent_again_is_no_second_turn(options):
    async with agent(options) as one:
        first = await one.report(GOOD)
        again = await one.report(GOOD)
    async with agent(options) as other:
        after_disconnect = await other.report(GOOD)

    assert first == again == after_disconnect


async def test_a_rejected_report_that_is_sent_again_over_another_connection_gets_the_same_verdict(options):
    async with agent(options) as one:
        first = await one.report(BAD)
    async with agent(options) as other:
        again = await other.report(BAD)

    assert first == again
    assert again["attempts_left"] == 3


async def test_a_rejected_report_that_is_sent_again_by_who_was_told_is_the_next_attempt(options):
    async with agent(options) as one:
        first = await one.report(BAD)
        again = await one.report(BAD)

    assert (first["attempt"], again["attempt"]) == (1, 2)
    assert again["attempts_left"] == 2


async def test_a_call_that_was_cancelled_before_its_verdict_is_the_same_attempt_when_made_again(options):
    async with agent(options) as one:
        await one.report(BAD)
        cut_off = asyncio.create_task(one.call("Report", GOOD))
        await asyncio.sleep(0)
        cut_off.cancel()
        await asyncio.gather(cut_off, return_exceptions=True)
        verdict = await one.report(GOOD)

    assert (verdict["outcome"], verdict["turn"], verdict["attempt"]) == ("accepted", 1, 2)


async def test_the_fourth_rejection_exhausts_the_turn(options):
    async with agent(options) as one:
        for _ in range(3):
            await one.report(BAD)
        exhausted = await one.call("Report", BAD)

    assert exhausted.structured_content is not None
    assert exhausted.structured_content["outcome"] == "exhausted"
    assert "stop repairing" in text_of(exhausted)


async def test_what_the_hooks_saw_makes_a_report_owe_its_verification(options):
    places = Places(options.agents)
    toollog.append(places.of_session(options.session), ToolUse("Edit", mutated=True))

    async with agent(options) as one:
        without = await one.report(GOOD)
        verified = await one.report(VERIFIED)

    assert [problem["code"] for problem in without["problems"]] == ["status_needs_verification"]
    assert verified["outcome"] == "accepted"


async def test_lost_files_neither_repeat_a_number_nor_lose_a_turn(options, person):
    async with agent(options) as one:
        await one.report(GOOD)
        await one.report(BAD)
    shutil.rmtree(options.agents)

    async with agent(options) as other:
        verdict = await other.report(GOOD | {"headline": "Found it after all"})

    assert (verdict["outcome"], verdict["turn"], verdict["attempt"]) == ("accepted", 2, 2)
    assert [turn.turn for turn in (await person.get(options.session)).state.history] == [1]


async def test_clients_on_one_session_that_report_all_at_once_from_two_hosts_never_share_a_number(options, tmp_path):
    elsewhere = replace(options, agents=tmp_path / "elsewhere")

    async def report_often(name: str, where) -> list[tuple[int, int]]:
        async with agent(where) as one:
            verdicts = await asyncio.gather(
                *(one.report(GOOD | {"headline": f"{name} found cause {n}"}) for n in range(6))
            )
        assert {verdict["outcome"] for verdict in verdicts} == {"accepted"}
        return [(verdict["turn"], verdict["attempt"]) for verdict in verdicts]

    numbers = await asyncio.gather(report_often("one", options), report_often("other", elsewhere))

    turns = [turn for side in numbers for turn, _ in side]
    assert sorted(turns) == list(range(1, 13))


async def test_arguments_of_wrong_types_are_rejected_with_every_problem(options):
    async with agent(options) as one:
        result = await one.call("Report", {"task_status": 5, "headline": ["x"], "blocks": "none"})

    assert result.is_error
    assert result.structured_content is not None
    assert {problem["path"] for problem in result.structured_content["problems"]} == {
        "/task_status",
        "/headline",
        "/blocks",
    }


async def test_a_report_of_a_mebibyte_is_rejected_for_its_size(options):
    async with agent(options) as one:
        result = await one.call("Report", GOOD | {"headline": "x" * 1024 * 1024})

    assert result.is_error
    assert result.structured_content is not None
    assert [problem["code"] for problem in result.structured_content["problems"]] == ["report_too_large"]


async def test_an_unknown_tool_is_an_error_that_names_those_that_there_are(options):
    async with agent(options) as one:
        with pytest.raises(MCPError, match=r"there is no tool 'report'; there are Report, ask_user"):
            await one.call("report", GOOD)


async def test_a_session_of_another_pool_is_refused_as_such(options):
    async with agent(options) as one:
        await one.report(GOOD)
    async with agent(options, pool="pool-2") as stranger:
        result = await stranger.call("Report", VERIFIED)

    assert result.is_error
    assert text_of(result).startswith("pool_mismatch: ")
