"""Questions by keyboard alone: chosen, several chosen, answered in own words, replied to, given up."""

import json
from typing import Any

from playwright.async_api import expect

from tests.browser.stage import Stage, question
from tests.browser.story import EVENTS, STORE
from turngate.runner import TurnClient
from turngate_protocol.question import Answer, Outcome, OutcomeKind, ToolCall


async def test_the_first_question_of_a_session_appears_in_its_open_page(stage: Stage, session: str):
    async with stage.visit(f"/questions/{session}") as ann:
        await ann.until(".empty", "No question waits in this session.")
        await ann.live()
        await _ask(stage, session, STORE)

        await ann.until("legend", "Where shall the sessions be kept?")


async def test_a_digit_chooses_and_enter_sends(stage: Stage, session: str):
    runner, request = await _ask(stage, session, STORE)
    async with stage.visit(f"/questions/{session}") as ann:
        await expect(ann.page.locator(".preview")).to_contain_text("CREATE TABLE sessions")
        await ann.press("2", "Enter")

        await ann.until(".note", "answered by ann")
    outcome = await _outcome(runner, session, request)
    assert (outcome.by, _answers(outcome)) == ("ann", (Answer(("Redis",)),))


async def test_several_questions_are_answered_one_after_the_other(stage: Stage, session: str):
    runner, request = await _ask(stage, session, STORE, EVENTS)
    async with stage.visit(f"/questions/{session}") as ann:
        await ann.press("1", "j", "1", "3", "Enter")

        await ann.until(".note", "answered by ann")
    picked = (Answer(("Postgres",)), Answer(("Log-ins", "Password changes")))
    assert _answers(await _outcome(runner, session, request)) == picked


async def test_space_takes_a_choice_and_takes_it_back(stage: Stage, session: str):
    runner, request = await _ask(stage, session, EVENTS)
    async with stage.visit(f"/questions/{session}") as ann:
        await ann.press("1", "Space", "Tab", "Space", "Enter")

        await ann.until(".note", "answered by ann")
    assert _answers(await _outcome(runner, session, request)) == (Answer(("Failed log-ins",)),)


async def test_an_answer_of_one_s_own_takes_the_place_of_a_choice(stage: Stage, session: str):
    runner, request = await _ask(stage, session, STORE)
    async with stage.visit(f"/questions/{session}") as ann:
        await ann.press("1", "o")
        await ann.page.keyboard.type("In 2 places")
        await ann.press("Escape", "Enter")

        await ann.until(".note", "In 2 places")
    assert _answers(await _outcome(runner, session, request)) == (Answer(custom="In 2 places"),)


async def test_a_chat_reply_is_no_answer(stage: Stage, session: str):
    runner, request = await _ask(stage, session, STORE)
    async with stage.visit(f"/questions/{session}") as ann:
        await ann.press("c")
        await ann.page.keyboard.type("What would you do?")
        await ann.press("Tab", "Enter")

        await ann.until(".note", "What would you do?")
    assert (await _outcome(runner, session, request)).kind is OutcomeKind.CHAT


async def test_a_question_for_one_text_is_answered_with_it(stage: Stage, session: str):
    runner = await stage.client()
    asked = await runner.ask(ToolCall("ask_user_text", "call-1", json.dumps({"question": "What now?"})), session)
    assert asked.pending is not None
    async with stage.visit(f"/questions/{session}") as ann:
        await ann.press("c")
        await ann.page.keyboard.type("Go on")
        await ann.press("Escape", "Enter")

        await ann.until(".note", "Go on")
    outcome = await _outcome(runner, session, asked.pending.request)
    assert outcome.resolution is not None
    assert outcome.resolution.chat == "Go on"


async def test_escape_cancels_after_a_question(stage: Stage, session: str):
    runner, request = await _ask(stage, session, STORE)
    async with stage.visit(f"/questions/{session}") as ann:
        await ann.press("Escape", "Enter")

        await ann.until(".note", "cancelled by ann")
    assert (await _outcome(runner, session, request)).kind is OutcomeKind.CANCELLED


async def test_an_answer_that_misses_a_part_says_so_and_keeps_the_rest(stage: Stage, session: str):
    await _ask(stage, session, STORE, EVENTS)
    async with stage.visit(f"/questions/{session}") as ann:
        await ann.press("2", "Enter")

        await ann.until(".form-error", "the answer to question 2 is empty")
        await expect(ann.page.locator("input[value=Redis]")).to_be_checked()


async def _ask(stage: Stage, session: str, *questions: dict[str, Any]) -> tuple[TurnClient, Any]:
    runner = await stage.client()
    asked = await runner.ask(question(*questions), session)
    assert asked.pending is not None
    return runner, asked.pending.request


async def _outcome(runner: TurnClient, session: str, request: Any) -> Outcome:
    return await runner.wait(request, session, timeout_ms=20_000)


def _answers(outcome: Outcome) -> tuple[Answer, ...]:
    assert outcome.resolution is not None
    return outcome.resolution.answers
