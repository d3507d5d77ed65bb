"""An objective in a browser: created, paused, guided, resumed, with its history drawn as it grows."""

from playwright.async_api import expect

from tests.browser.stage import Stage
from tests.esm_answers import GOES_ON


async def test_an_objective_is_created_paused_guided_and_resumed(stage: Stage, session: str):
    async with stage.visit("/objectives") as ann:
        # Open already where there is no objective yet.
        await ann.page.locator("details.create").evaluate("each => each.open = true")
        await ann.page.get_by_label("Session").fill(session)
        await ann.page.get_by_label("What is to be achieved").fill("Make the tests of the importer pass")
        await ann.page.get_by_role("button", name="Create it").click()
        await ann.until(".objective-text", "Make the tests of the importer pass")
        await ann.live()

        await ann.press("p")
        await ann.until(".lead .chip", "paused")
        await ann.press("g")
        await ann.page.keyboard.type("Begin with the dates")
        await ann.press("Tab", "Enter")
        await ann.until(".prompts", "Begin with the dates")
        await ann.press("Escape", "p")
        await ann.until(".lead .chip", "active")

    state = await stage.supervised.state(session)
    assert [each.text for each in state.guidance] == ["Begin with the dates"]
    assert state.objective is not None
    assert state.objective.status == "active"


async def test_a_session_without_an_objective_is_given_one_on_its_page(stage: Stage, session: str):
    async with stage.visit(f"/objectives/{session}") as ann:
        await ann.until(".empty", "This session has no objective.")
        await ann.live()
        await ann.page.get_by_label("What is to be achieved").fill("It works")
        await ann.page.get_by_role("button", name="Create it").click()

        await ann.until(".objective-text", "It works")
        await ann.until(".history-table tbody", "created")


async def test_a_run_appears_in_the_drawing_and_in_the_table(stage: Stage, session: str):
    person = await stage.supervised.person("ann")
    await person.create(session, "Describe every setting")
    async with stage.visit(f"/objectives/{session}") as ann:
        await ann.live()
        host = await stage.supervised.host({"default": [GOES_ON]}, f"host-{session}")
        await stage.supervised.until(session, lambda state: state.runs > 1)
        await person.pause(session)
        await host.stop()

        await ann.until(".lead .chip", "paused")
        await expect(ann.page.locator(".drawing .bar-good").first).to_be_attached()
        await ann.until(".history-table tbody", "continue")
