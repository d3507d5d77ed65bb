"""Cards in a browser: one key answers, and whoever comes second learns who was first."""

import asyncio
from typing import Any

from playwright.async_api import expect

from tests.browser.stage import Stage, deal, prompt_of
from tests.fundamentals.reports import CARD
from tests.waiting import wait_until

NEWER: dict[str, Any] = {**CARD, "headline": "Another card has come"}


async def test_a_digit_answers_a_card_and_its_prompt_arrives_at_a_runner(stage: Stage, session: str):
    runner = await stage.client()
    await deal(runner, session)
    async with stage.visit(f"/sessions/{session}") as ann:
        await ann.press("1")

        await ann.until(".note", "answered by ann")
        await ann.until("#outcome", "Run it now")
    assert await prompt_of(runner, session) == CARD["blocks"][1]["options"][0]["instruction"]


async def test_what_is_written_beside_the_option_goes_with_it(stage: Stage, session: str):
    runner = await stage.client()
    await deal(runner, session)
    async with stage.visit(f"/sessions/{session}") as ann:
        await ann.press("t")
        await ann.page.keyboard.type("and tell 1 person")
        await ann.press("Escape", "1")

        await ann.until(".note", "answered by ann")
    assert (await prompt_of(runner, session)).endswith("and tell 1 person")


async def test_collect_opens_an_editor_whose_text_goes_to_the_session(stage: Stage, session: str):
    runner = await stage.client()
    await deal(runner, session)
    async with stage.visit(f"/sessions/{session}") as ann:
        await ann.press("2")
        field = ann.page.locator(".collect textarea")
        await expect(field).to_be_focused()
        assert await field.input_value() == "Tell me what to say"
        await field.fill("Say that it is on Sunday.")
        await ann.page.get_by_role("button", name="Send this text").click()

        await ann.until(".note", "answered by ann")
    assert await prompt_of(runner, session) == "Say that it is on Sunday."


async def test_the_tenth_option_has_no_key_and_can_be_pressed(stage: Stage, session: str):
    runner = await stage.client()
    when = CARD["blocks"][1]
    blocks = [{**when, "id": f"b{number}"} for number in range(1, 5)]
    await deal(runner, session, report={**CARD, "blocks": blocks})
    async with stage.visit(f"/sessions/{session}") as ann:
        last = ann.page.locator(".block").last
        await expect(last.locator(".option-label").last).to_have_text("Leave it for the weekend")
        await last.locator(".pick").last.click()

        await ann.until(".note", "answered by ann")
    answer = await _answer(runner, session)
    assert (answer.block, answer.option, answer.number) == ("b4", "leave", 0)


async def test_resolve_closes_the_card(stage: Stage, session: str):
    runner = await stage.client()
    await deal(runner, session)
    async with stage.visit(f"/sessions/{session}") as ann:
        await ann.press("3")

        await ann.until(".note", "no turn starts")
        await expect(ann.page.locator(".option-chosen")).to_contain_text("Leave it for the weekend")


async def test_escape_dismisses_after_a_question(stage: Stage, session: str):
    runner = await stage.client()
    await deal(runner, session)
    async with stage.visit(f"/sessions/{session}") as ann:
        await ann.press("Escape")
        await ann.page.get_by_role("button", name="Keep it").click()
        assert (await runner.get(session)).state.waiting
        await ann.press("Escape", "Enter")

        await ann.until(".note", "dismissed by ann")


async def test_zero_unfolds_and_folds_the_details(stage: Stage, session: str):
    blocks = [{**CARD["blocks"][0], "details": "line one\nline two", "status": "not_run", "limitation": "no time"}]
    await deal(await stage.client(), session, report={**CARD, "blocks": [*blocks, CARD["blocks"][1]]})
    async with stage.visit(f"/sessions/{session}") as ann:
        details = ann.page.locator(".details")
        await expect(ann.page.locator(".not-run > summary")).to_have_text("1 check was not run")
        await expect(details).to_be_hidden()
        await ann.press("0")
        await expect(details).to_be_visible()
        await ann.press("0")
        await expect(details).to_be_hidden()


async def test_keys_rest_while_somebody_types_or_holds_a_modifier(stage: Stage, session: str):
    runner = await stage.client()
    await deal(runner, session)
    async with stage.visit(f"/sessions/{session}") as ann:
        await ann.press("Control+1", "Alt+2", "t")
        await ann.page.keyboard.type("123?")
        await ann.press("Escape", "?")
        await expect(ann.page.locator("#keys")).to_be_visible()
        await ann.press("1")

    assert (await runner.get(session)).state.waiting


async def test_the_second_of_two_browsers_sees_who_was_first(stage: Stage, session: str):
    await deal(await stage.client(), session)
    path = f"/sessions/{session}"
    async with (
        stage.another(console_actor="bea") as bea_s,
        stage.visit(path) as ann,
        stage.visit(path, at=bea_s, live=False) as bea,
    ):
        await ann.press("3")
        await ann.until(".note", "answered by ann")
        await bea.press("1")

        await bea.until("#outcome", "ann was first and chose “Leave it for the weekend”")
        await bea.until(".note", "answered by ann")


async def test_two_answers_at_once_record_one(stage: Stage, session: str):
    runner = await stage.client()
    await deal(runner, session)
    path = f"/sessions/{session}"
    # Neither page follows what happens: one that did could lose its card to the other's answer before its own press.
    async with (
        stage.another(console_actor="bea") as bea_s,
        stage.visit(path, live=False) as ann,
        stage.visit(path, at=bea_s, live=False) as bea,
    ):
        await asyncio.gather(ann.press("3"), bea.press("3"))

        answer = await wait_until(lambda: _answer(runner, session), why="one of them wins")
        for visit in (ann, bea):
            await visit.until(".note", f"answered by {answer.actor}")


async def test_a_card_that_a_newer_turn_replaced_takes_no_answer_and_loses_no_text(stage: Stage, session: str):
    runner = await stage.client()
    await deal(runner, session)
    async with stage.visit(f"/sessions/{session}", live=False) as ann:
        await ann.press("t")
        await ann.page.keyboard.type("only on Sunday")
        await deal(runner, session, 2, NEWER)
        await ann.press("Escape", "1")

        await ann.until("#outcome", "turn 1 was replaced by turn 2")
        await ann.until("h2", "Another card has come")
        assert await ann.page.locator("#drafts textarea").input_value() == "only on Sunday"
    assert (await runner.get(session)).state.waiting


PRESSED_AT_ONCE = """headline => new MutationObserver((_, observer) => {
  if (document.querySelector("h2").textContent !== headline) return;
  observer.disconnect();
  document.querySelector("[data-digit='3']").click();
}).observe(document.getElementById("main"), { subtree: true, childList: true, characterData: true })"""


async def test_a_key_that_was_meant_for_the_card_before_answers_no_newer_one(stage: Stage, session: str):
    runner = await stage.client()
    await deal(runner, session)
    async with stage.visit(f"/sessions/{session}") as ann:
        await ann.live()
        await ann.page.evaluate(PRESSED_AT_ONCE, NEWER["headline"])
        await deal(runner, session, 2, NEWER)

        await ann.until("#outcome", "Another card has just come")
        assert (await runner.get(session)).state.waiting

        async def pressed() -> Any:
            await ann.press("3")
            return await _answer(runner, session)

        await wait_until(pressed, why="it is answered once there was time to read it")
        await ann.until(".note", "answered by ann")


async def test_a_newer_card_is_not_dismissed_by_who_was_asked_about_the_one_before(stage: Stage, session: str):
    runner = await stage.client()
    await deal(runner, session)
    async with stage.visit(f"/sessions/{session}") as ann:
        await ann.live()
        await ann.press("Escape")
        await deal(runner, session, 2, NEWER)
        await ann.until("h2", NEWER["headline"])
        await ann.press("Enter")

        await ann.until("#outcome", "not there any more")
    assert (await runner.get(session)).state.waiting


async def test_the_page_changes_under_a_person_who_types_and_takes_nothing_away(stage: Stage, session: str):
    runner = await stage.client()
    await deal(runner, session)
    async with stage.visit(f"/sessions/{session}") as ann:
        await ann.live()
        await ann.press("t")
        await ann.page.keyboard.type("half a sen")
        await runner.send_prompt(session, f"{session}-p", "Task 7 has finished.")
        await ann.until(".prompts", "Task 7 has finished.")
        await ann.page.keyboard.type("tence")

        assert await ann.page.locator("#beside").input_value() == "half a sentence"


async def _answer(runner: Any, session: str) -> Any:
    return (await runner.get(session)).state.current.answer
