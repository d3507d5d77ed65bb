"""Without a script pages can be read and forms work; without the right to act there is nothing to press."""

from pathlib import Path

from playwright.async_api import expect

from tests.browser.stage import Stage, deal, question
from tests.browser.story import STORE
from turngate.console.tokens import Role, TokenFile


async def test_pages_can_be_read_and_a_card_answered_without_a_script(stage: Stage, session: str):
    runner = await stage.client()
    await deal(runner, session)
    async with stage.visit("/", java_script_enabled=False) as ann:
        await ann.page.locator(f"a[href='/sessions/{session}']").click()
        await ann.page.get_by_label("Say something beside the option").fill("with care")
        await ann.page.get_by_role("button", name="Run it now").click()

        await ann.until(".flash", "Run it now")
        await ann.until(".note", "with care")
        await expect(ann.page.locator("#live")).to_contain_text("not live")


async def test_a_question_is_answered_without_a_script(stage: Stage, session: str):
    runner = await stage.client()
    await runner.ask(question(STORE), session)
    async with stage.visit(f"/questions/{session}", java_script_enabled=False) as ann:
        await ann.page.get_by_label("Redis").check()
        await ann.page.get_by_role("button", name="Send the answer").click()

        await ann.until(".note", "Redis")


async def test_a_session_is_found_without_a_script_and_with_one_key(stage: Stage, session: str):
    await deal(await stage.client(), session)
    other = f"{session}-other"
    await (await stage.client()).end_turn(other, 1)
    for live in (True, False):
        async with stage.visit("/sessions", java_script_enabled=live) as ann:
            await ann.until("table", other)
            if live:
                await ann.press("/")
            else:
                await ann.page.get_by_label("Session or headline").focus()
            await ann.page.keyboard.type(other[2:].upper())
            await ann.press("Enter")

            await ann.until("h1 + .lead", other[2:].upper())
            await expect(ann.page.locator("[data-item]")).to_have_text([other])


async def test_a_viewer_looks_and_has_nothing_to_press(stage: Stage, session: str, tmp_path: Path):
    runner = await stage.client()
    await deal(runner, session)
    await runner.ask(question(STORE), session)
    tokens = TokenFile(tmp_path / "console-tokens.json")
    text = tokens.add("vic", Role.VIEWER, 1_700_000_000_000)
    async with (
        stage.another(state_dir=str(tmp_path)) as guarded,
        stage.visit(f"/sessions/{session}", at=guarded) as vic,
    ):
        await vic.page.get_by_label("Token").fill(text)
        await vic.press("Enter")
        await vic.until(".card-foot", "It waits for an operator")
        await vic.press("1")
        await expect(vic.page.locator("main button, main form")).to_have_count(0)
        await vic.go(f"/questions/{session}")
        await vic.until(".card-foot", "It waits for an operator")
        await expect(vic.page.locator("main button, main form, main input")).to_have_count(0)

    assert (await runner.get(session)).state.waiting
