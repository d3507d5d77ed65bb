"""What happens appears by itself: after a restart of the console, after one of the server, in every tab."""

import statistics
import time
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio
from playwright.async_api import Browser, expect

from tests.browser.stage import PATIENCE_MS, Stage, deal, listed, staging
from tests.fundamentals.reports import CARD
from turngate.jetstream.embedded import EmbeddedServer

WRITES = 9
SECONDS = 1.0
"""What the median may take where other tests use the machine too; alone it is some tens of milliseconds."""

SEEN = "text => document.querySelector('h2').textContent === text && performance.timeOrigin + performance.now()"


@pytest_asyncio.fixture(loop_scope="session")
async def own(own_server: EmbeddedServer, browser: Browser, tmp_path: Path) -> AsyncIterator[Stage]:
    """A stage whose server and console a test may take away."""
    async with staging(own_server.url, f"b{uuid.uuid4().hex[:8]}", browser, tmp_path) as made:
        yield made


async def test_the_inbox_and_its_count_in_the_title_grow_by_themselves(own: Stage):
    runner = await own.client()
    async with own.visit("/") as ann:
        await ann.live()
        await ann.until(".empty", "All clear")
        await deal(runner, "first")
        await deal(runner, "second")
        await ann.until(".rows", "second")

        await expect(ann.page).to_have_title("(2) Inbox · Turngate", timeout=PATIENCE_MS)
        await ann.press("j", "j")
        await expect(ann.page.locator("[data-item]").nth(1)).to_be_focused()
        await runner.dismiss("first", 1)
        await expect(ann.page).to_have_title("(1) Inbox · Turngate", timeout=PATIENCE_MS)
        await ann.press("Enter")
        await ann.until("h1", "second")


async def test_a_page_goes_on_after_the_console_was_restarted(own: Stage):
    runner = await own.client()
    async with own.visit("/") as ann:
        await ann.live()
        await own.served.stop()
        await ann.until("#banner", "The console can't be reached")
        await deal(runner, "meanwhile")
        await listed(runner, "meanwhile")
        await own.served.start()

        await ann.until(".rows", "meanwhile")
        await expect(ann.page.locator("#banner")).to_be_hidden(timeout=PATIENCE_MS)
        await deal(runner, "afterwards")
        await ann.until(".rows", "afterwards")


async def test_a_page_says_that_the_server_is_away_and_recovers(own: Stage, own_server: EmbeddedServer):
    runner = await own.client()
    await deal(runner, "s1")
    async with own.visit("/sessions/s1") as ann:
        await ann.live()
        own_server.stop()
        await ann.until("#banner", "The NATS server is away")
        await ann.press("1")
        await ann.until("#outcome", "Trying again is safe")
        own_server.start()
        await expect(ann.page.locator("#banner")).to_be_hidden(timeout=PATIENCE_MS)
        assert (await runner.get("s1")).state.waiting

        await ann.page.get_by_role("button", name="Try again").click()
        await ann.until(".note", "answered by ann")


async def test_a_page_that_was_opened_while_the_server_was_away_comes_by_itself(own: Stage, own_server: EmbeddedServer):
    await deal(await own.client(), "s1")
    own_server.stop()
    async with own.visit("/sessions/s1") as ann:
        await ann.until("main", "503")
        own_server.start()

        await ann.until("h2", CARD["headline"])
        await ann.live()


async def test_tabs_of_one_browser_share_a_stream_and_each_is_live(stage: Stage, session: str):
    runner = await stage.client()
    await deal(runner, session)
    async with stage.visit(f"/sessions/{session}") as first:
        await first.live()
        second = await first.context.new_page()
        await second.goto(f"{stage.url}/sessions/{session}")
        await expect(second.locator("#live")).to_have_attribute("data-state", "on", timeout=PATIENCE_MS)
        await expect(first.page.locator("#live")).to_have_attribute("data-state", "on")
        await runner.answer(session, 1, number=3)

        for page in (first.page, second):
            await expect(page.locator(".note")).to_contain_text("answered by runner-1", timeout=PATIENCE_MS)
        await second.close()
        await runner.submit_report(session, 2, {**CARD, "headline": "The next one"})
        await first.until("h2", "The next one")


async def test_a_page_that_the_browser_had_put_away_is_live_again(stage: Stage, session: str):
    runner = await stage.client()
    await deal(runner, session)
    async with stage.visit(f"/sessions/{session}") as ann:
        await ann.live()
        # What a browser does that keeps a page which one leaves, and shows it again when one goes back.
        await ann.page.evaluate("dispatchEvent(new PageTransitionEvent('pagehide', {persisted: true}))")
        await runner.answer(session, 1, number=3)
        await ann.page.evaluate("dispatchEvent(new PageTransitionEvent('pageshow', {persisted: true}))")

        await ann.until(".note", "answered by runner-1")
        await runner.submit_report(session, 2, {**CARD, "headline": "Afterwards"})
        await ann.until("h2", "Afterwards")


async def test_what_is_written_appears_in_an_open_page_at_once(stage: Stage, session: str):
    runner = await stage.client()
    took = []
    await deal(runner, session, 1, {**CARD, "headline": "Number 1"})
    async with stage.visit(f"/sessions/{session}") as ann:
        await ann.live()
        for turn in range(2, WRITES + 2):
            seen = ann.page.wait_for_function(SEEN, arg=f"Number {turn}", polling="raf")
            began = time.time() * 1000
            await runner.submit_report(session, turn, {**CARD, "headline": f"Number {turn}"})
            took.append(await (await seen).json_value() - began)
    print(f"from a write to its appearance: median {statistics.median(took):.0f} ms, {[round(each) for each in took]}")
    assert statistics.median(took) < SECONDS * 1000, took
