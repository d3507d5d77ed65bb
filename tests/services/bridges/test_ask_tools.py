"""`ask_user` and `ask_user_text`: asked once, waited for through everything, answered in the client or elsewhere."""

import asyncio
import json
import shutil
from typing import Any

import pytest
from mcp_types import ElicitRequestFormParams, ElicitResult

from tests.services.bridges.agent import GOOD, QUESTION, agent, question_of, running_call, text_of
from tests.waiting import wait_until
from turngate.bridges.mcp import waiting
from turngate.bridges.mcp.options import Options
from turngate.runner import TurnClient
from turngate_contracts.errors import ErrorCode, Refusal
from turngate_protocol.question.model import Answer

GO: dict[str, Any] = {"question": "Shall I go on?"}
REDIS = (Answer(("Redis",)),)

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture
def options(own_session: Options) -> Options:
    """Each test has a session of its own in one system."""
    return own_session


@pytest.fixture
def person(shared_person: TurnClient) -> TurnClient:
    """Who answers in that system."""
    return shared_person


async def test_a_call_waits_for_the_person_and_returns_the_answer(options, person):
    async with agent(options) as one, running_call(one, "ask_user", QUESTION) as call:
        await person.questions.resolve(options.session, await question_of(person, options.session), answers=REDIS)
        result = await call

    assert not result.is_error
    assert text_of(result) == '{"answers":[{"selections":["Redis"]}]}'
    assert result.structured_content == {"answers": [{"selections": ["Redis"]}]}


async def test_a_cancelled_call_leaves_its_question_and_the_same_call_goes_on_with_it(options, person):
    async with agent(options) as one:
        async with running_call(one, "ask_user_text", GO):
            first = await question_of(person, options.session)
        async with running_call(one, "ask_user_text", GO) as again:
            await wait_until(lambda: not again.done())
            second = await question_of(person, options.session)
            await person.questions.resolve(options.session, second, chat="yes")
            result = await again

    assert first == second
    assert text_of(result) == '{"chat":"yes"}'


async def test_an_answer_that_came_while_nobody_waited_is_the_result_of_the_same_call(options, person):
    async with agent(options) as one, running_call(one, "ask_user_text", GO):
        asked = await question_of(person, options.session)
    await person.questions.resolve(options.session, asked, chat="yes")

    async with agent(options) as other:
        result = await other.call("ask_user_text", GO)

    assert text_of(result) == '{"chat":"yes"}'


async def test_an_answer_that_was_told_is_told_again_to_another_connection_in_the_same_turn(options, person):
    async with agent(options) as one, running_call(one, "ask_user_text", GO) as call:
        await person.questions.resolve(options.session, await question_of(person, options.session), chat="yes")
        await call

    async with agent(options) as other:
        result = await other.call("ask_user_text", GO)

    assert text_of(result) == '{"chat":"yes"}'


async def test_who_was_told_asks_anew_with_the_same_words(options, person):
    async with agent(options) as one:
        async with running_call(one, "ask_user_text", GO) as call:
            first = await question_of(person, options.session)
            await person.questions.resolve(options.session, first, chat="yes")
            await call
        async with running_call(one, "ask_user_text", GO) as again:
            second = await question_of(person, options.session)
            await person.questions.resolve(options.session, second, chat="no")
            result = await again

    assert first.id != second.id
    assert text_of(result) == '{"chat":"no"}'


async def test_a_later_turn_asks_anew_with_the_same_words(options, person):
    async with agent(options) as one:
        async with running_call(one, "ask_user_text", GO) as call:
            first = await question_of(person, options.session)
            await person.questions.resolve(options.session, first, chat="yes")
            await call
        await one.report(GOOD)
    async with agent(options) as other, running_call(other, "ask_user_text", GO):
        second = await question_of(person, options.session)

    assert first.id != second.id


async def test_a_question_outlives_the_loss_of_the_session_s_files(options, person):
    async with agent(options) as one, running_call(one, "ask_user", QUESTION):
        asked = await question_of(person, options.session)
        await one.report(GOOD)  # the turn is another one now, and with it the id of a new question
    shutil.rmtree(options.agents)

    async def waits_for_other() -> bool:
        pending = (await person.questions.get(options.session)).pending
        return pending is not None and pending.runner == "mcp-other"

    async with agent(options, identity="mcp-other") as other, running_call(other, "ask_user", QUESTION) as again:
        await wait_until(waits_for_other, why="the other server waits")
        await person.questions.resolve(options.session, asked, answers=REDIS)
        result = await again

    assert text_of(result) == '{"answers":[{"selections":["Redis"]}]}'


async def test_two_clients_that_ask_the_same_get_the_same_answer(options, person):
    async with (
        agent(options) as one,
        agent(options) as other,
        running_call(one, "ask_user_text", GO) as first,
        running_call(other, "ask_user_text", GO) as second,
    ):
        await person.questions.resolve(options.session, await question_of(person, options.session), chat="yes")
        results = await asyncio.gather(first, second)

    assert [text_of(result) for result in results] == ['{"chat":"yes"}'] * 2


async def test_another_question_is_denied_while_one_waits(options, person):
    async with agent(options) as one, running_call(one, "ask_user", QUESTION):
        await question_of(person, options.session)
        result = await one.call("ask_user_text", GO)

    assert result.is_error
    assert "still waits for its answer" in text_of(result)


@pytest.mark.parametrize(("tool", "arguments"), [("ask_user", QUESTION), ("ask_user_text", GO)])
async def test_a_model_that_lost_its_words_is_told_how_to_go_on_with_its_question(options, person, tool, arguments):
    async with agent(options) as one, running_call(one, tool, arguments):
        asked = await question_of(person, options.session)
    async with agent(options) as other:
        denied = text_of(await other.call("ask_user_text", {"question": "What was it that I wanted to know?"}))
        told = json.loads(denied.split(f"call {tool} with exactly these arguments: ")[1].removesuffix("."))
        async with running_call(other, tool, told) as again:
            await person.questions.resolve(options.session, asked, chat="the second one")
            result = await again

    assert text_of(result) == '{"chat":"the second one"}'


async def test_a_cancelled_question_is_a_tool_error(options, person):
    async with agent(options) as one, running_call(one, "ask_user_text", GO) as call:
        await person.questions.reject(options.session, await question_of(person, options.session))
        result = await call

    assert result.is_error
    assert text_of(result) == "The user dismissed this question without an answer."


async def test_a_client_that_wants_to_know_is_told_of_progress(options, person, monkeypatch):
    monkeypatch.setattr(waiting, "PROGRESS_S", 0.02)
    told: list[str | None] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        told.append(message)

    async with agent(options) as one:
        call = asyncio.create_task(one.client.call_tool("ask_user_text", GO, progress_callback=on_progress))
        asked = await question_of(person, options.session)
        await wait_until(lambda: len(told) > 2, why="progress is told")
        await person.questions.resolve(options.session, asked, chat="yes")
        await call

    assert set(told) == {"waiting for the person's answer"}


@pytest.mark.parametrize("arguments", [{"questions": 5}, {"nope": 1}, {"questions": []}, {}], ids=str)
async def test_a_malformed_ask_user_is_denied_with_the_reason_and_the_simpler_tool(options, arguments):
    async with agent(options) as one:
        result = await one.call("ask_user", arguments)

    assert result.is_error
    assert text_of(result).startswith("ask_user asked nothing.")
    assert "ask_user_text" in text_of(result)


async def test_a_malformed_ask_user_text_asks_in_general(options, person):
    async with agent(options) as one, running_call(one, "ask_user_text", {"question": 7}) as call:
        asked = await question_of(person, options.session)
        await person.questions.resolve(options.session, asked, chat="use the second one")
        result = await call

    assert "could not be read" in asked.prompt
    assert text_of(result) == '{"chat":"use the second one"}'


async def test_a_question_of_a_mebibyte_is_denied(options):
    async with agent(options) as one:
        result = await one.call("ask_user", {"questions": "x" * 1024 * 1024})

    assert result.is_error
    assert "ask_user asked nothing" in text_of(result)


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_a_question_is_answered_in_the_client_itself(options, person, mode):
    forms: list[dict[str, Any]] = []

    async def fill_in(context: Any, params: Any) -> ElicitResult:
        assert isinstance(params, ElicitRequestFormParams)
        forms.append(params.requested_schema)
        return ElicitResult(action="accept", content={"q1": "Postgres"})

    async with agent(options, mode=mode, elicitation=fill_in) as one:
        result = await one.call("ask_user", QUESTION)
    outcome = (await person.questions.get(options.session)).outcome

    assert text_of(result) == '{"answers":[{"selections":["Postgres"]}]}'
    assert forms[0]["properties"]["q1"]["enum"] == ["Redis", "Postgres"]
    assert outcome is not None
    assert outcome.by == "mcp-test"


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_a_form_without_an_answer_is_shown_again_with_what_is_missing(options, mode):
    messages: list[str] = []

    async def fill_in(context: Any, params: Any) -> ElicitResult:
        messages.append(params.message)
        return ElicitResult(action="accept", content={} if len(messages) == 1 else {"q1_own": "SQLite will do"})

    async with agent(options, mode=mode, elicitation=fill_in) as one:
        result = await one.call("ask_user", QUESTION)

    assert text_of(result) == '{"answers":[{"custom":"SQLite will do"}]}'
    assert messages[1].startswith("Please answer 'Store' too.")


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_who_declines_in_the_client_leaves_the_question_to_others(options, person, mode):
    async def decline(context: Any, params: Any) -> ElicitResult:
        return ElicitResult(action="decline")

    async with agent(options, mode=mode, elicitation=decline) as one, running_call(one, "ask_user", QUESTION) as call:
        await person.questions.resolve(options.session, await question_of(person, options.session), answers=REDIS)
        result = await call

    assert text_of(result) == '{"answers":[{"selections":["Redis"]}]}'


async def test_an_answer_from_elsewhere_takes_the_form_in_the_client_back(options, person):
    shown, taken_back = asyncio.Event(), asyncio.Event()

    async def think(context: Any, params: Any) -> ElicitResult:
        shown.set()
        try:
            await asyncio.Event().wait()
        finally:
            taken_back.set()
        raise AssertionError("unreachable")

    async with agent(options, elicitation=think) as one, running_call(one, "ask_user", QUESTION) as call:
        await shown.wait()
        await person.questions.resolve(options.session, await question_of(person, options.session), answers=REDIS)
        result = await call
        await asyncio.wait_for(taken_back.wait(), 10)

    assert text_of(result) == '{"answers":[{"selections":["Redis"]}]}'


async def test_the_second_of_two_answers_loses_wherever_it_is_given(options, person):
    async def fill_in(context: Any, params: Any) -> ElicitResult:
        return ElicitResult(action="accept", content={"q1": "Postgres"})

    async with agent(options, elicitation=fill_in) as one, running_call(one, "ask_user", QUESTION) as call:
        result = await call
    outcome = (await person.questions.get(options.session)).outcome
    assert outcome is not None
    assert outcome.request is not None

    with pytest.raises(Refusal) as late:
        await person.questions.resolve(options.session, outcome.request, answers=REDIS)

    assert late.value.code is ErrorCode.ALREADY_RESOLVED
    assert text_of(result) == '{"answers":[{"selections":["Postgres"]}]}'


async def test_a_server_that_may_not_ask_in_the_client_does_not(options, person):
    async def never(context: Any, params: Any) -> ElicitResult:
        raise AssertionError("it was asked in the client")

    async with (
        agent(options, elicitation=never, elicit=False) as one,
        running_call(one, "ask_user", QUESTION) as call,
    ):
        await person.questions.resolve(options.session, await question_of(person, options.session), answers=REDIS)
        result = await call

    assert not result.is_error
