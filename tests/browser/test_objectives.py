"""An objective in a browser: created, paused, guided, resumed, with its history drawn as it grows."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Final

from playwright.async_api import expect

from tests.browser.stage import Stage, listed, question
from tests.browser.story import STORE
from tests.esm_answers import GOES_ON

BEAT_S: Final = 0.2


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


async def test_what_an_agent_says_appears_as_it_says_it(stage: Stage, session: str):
    person = await stage.supervised.person("ann")
    await person.create(session, "Describe every setting")
    async with (
        at_work(stage, session, "reads settings.py") as agent,
        stage.visit(f"/objectives/{session}") as ann,
        stage.visit("/objectives") as bob,
    ):
        await ann.until(".said-line", "reads settings.py")
        await bob.until(f"[data-said='{session}']", "reads settings.py")
        agent.line = "<b>writes</b> settings.md"

        await ann.until(".said-line", "<b>writes</b> settings.md")
        await bob.until(f"[data-said='{session}']", "<b>writes</b> settings.md")
        await person.pause(session)
        await expect(ann.page.locator(".said")).to_have_count(0)


async def test_a_question_in_the_inbox_says_what_its_agent_does(stage: Stage, session: str):
    runner = await stage.client()
    await runner.ask(question(STORE), session)
    await listed(runner, session, "question")
    await (await stage.supervised.person("ann")).create(session, "Choose a store")
    async with stage.visit("/") as ann:
        await ann.live()
        async with at_work(stage, session, "waits for an answer"):
            await ann.until(f"[data-said='{session}']", "waits for an answer")


async def test_the_inbox_says_which_runner_to_start_until_there_is_one(stage: Stage, session: str):
    await (await stage.supervised.person("ann")).create(session, "Train it", pool="gpu")
    async with stage.visit("/") as ann:
        await ann.live()
        await ann.until("[aria-labelledby=unattended]", "turngate runner --pool gpu -- COMMAND")
        host = await stage.supervised.host({"default": [GOES_ON]}, f"host-{session}", pools=("gpu",))

        await expect(ann.page.locator("[aria-labelledby=unattended]", has_text=session)).to_have_count(0)
        await host.stop()


class Agent:
    """An agent at work, and the line that it says."""

    def __init__(self, line: str) -> None:
        self.line = line


@contextlib.asynccontextmanager
async def at_work(stage: Stage, session: str, line: str) -> AsyncIterator[Agent]:
    """Claim what a session wants and stay alive; at most one line a second is told."""
    hand, agent = await stage.supervised.runner(f"hand-{session}"), Agent(line)
    request = await hand.claim(session)

    async def beat() -> None:
        while True:
            await hand.beat(request, progress=agent.line)
            await asyncio.sleep(BEAT_S)

    task = asyncio.create_task(beat())
    try:
        yield agent
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await (await stage.supervised.person("ann")).clear(session)
