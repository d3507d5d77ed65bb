"""The fleet page: what nobody could handle is decided there."""

from collections.abc import AsyncIterator

import pytest_asyncio
from playwright.async_api import expect

from tests.browser.stage import PATIENCE_MS, Stage
from tests.waiting import wait_until
from turngate.registry import factory
from turngate_contracts.dead import DeadEntry, DeadPage, ListDead


@pytest_asyncio.fixture(loop_scope="session")
async def letters(stage: Stage, session: str) -> AsyncIterator[str]:
    """A session with a message that nobody can handle, and a service that minds it."""
    system = stage.system
    deadletter = factory("deadletter")(system.connection, system.requester, system.settings)
    await deadletter.start()
    await system.requester.publish(system.subjects.turn_report("pool-1", "runner-1", session), b"no message")
    yield session
    await deadletter.stop()


async def test_a_dead_letter_is_retried_comes_again_and_is_dropped(stage: Stage, letters: str):
    async with stage.visit("/fleet") as ann:
        row = ann.page.locator("[aria-labelledby=dead] .row", has_text=letters)
        for button, why in (("Retry it as it was", "fixed by now"), ("Drop its content", "a test")):
            await row.locator("summary").click()
            await row.get_by_label("Why").fill(why)
            await row.get_by_role("button", name=button).click()
            await ann.until("#outcome", "The dead letter is")
            if button.startswith("Retry"):
                # Nobody could handle it this time either.
                await expect(row).to_contain_text("it was retried before", timeout=PATIENCE_MS)
        await expect(row).to_have_count(0, timeout=PATIENCE_MS)

    client = await stage.client("ann")

    async def decided() -> list[DeadEntry]:
        found = (await client.call("dead.list", ListDead(session=letters), DeadPage)).entries
        return sorted(found, key=lambda each: each.at) if all(each.decided for each in found) else []

    first, second = await wait_until(decided)
    assert first.decided is not None
    assert second.decided is not None
    assert (first.status, first.decided.by, first.decided.why) == ("retried", "ann", "fixed by now")
    assert (second.status, second.decided.by, second.decided.why) == ("dropped", "ann", "a test")
