"""Every page, as it looks and as it can be read: no serious violation in light and dark, nothing wider than a phone.

`make screenshots` has the pictures written to build/screenshots, for a person to look at.
"""

import os
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from axe_playwright_python.async_playwright import Axe  # type: ignore[import-untyped]
from playwright.async_api import Browser, Page, expect

from tests.browser.stage import DESKTOP, PHONE, Stage, Visit, staging
from tests.browser.story import tell
from turngate.console.tokens import Role, TokenFile
from turngate.jetstream.embedded import EmbeddedServer

AXE = Axe().axe_script
PICTURES = os.environ.get("SCREENSHOTS", "")
PAGES = {
    "inbox": "/",
    "sessions": "/sessions",
    "sessions-searched": "/sessions?q=importer",
    "sessions-not-found": "/sessions?q=nothing",
    "session": "/sessions/orders-4812",
    "session-without-turn": "/sessions/release-31",
    "session-answered": "/sessions/docs-5",
    "questions": "/questions",
    "question": "/questions/auth-90",
    "question-text": "/questions/release-31",
    "question-answered": "/questions/store-8",
    "objectives": "/objectives",
    "objective": "/objectives/archive-3",
    "objective-older": "/objectives/archive-3?before=9",
    "objective-blocked": "/objectives/pricing-12",
    "objective-complete": "/objectives/search-2",
    "tasks": "/tasks",
    "tasks-of-session": "/tasks?session=orders-4812",
    "tasks-of-none": "/tasks?session=docs-5",
    "task": "/tasks/orders-4812/t-311",
    "fleet": "/fleet",
    "error": "/nowhere",
}
EMPTY = {
    "inbox": "/",
    "sessions": "/sessions",
    "questions": "/questions",
    "objectives": "/objectives",
    "tasks": "/tasks",
}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def day(
    nats_server: EmbeddedServer, browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Visit]:
    """A person who looks at a busy afternoon."""
    name, root = f"b{uuid.uuid4().hex[:8]}", tmp_path_factory.mktemp("day")
    async with staging(nats_server.url, name, browser, root, stat_timeout_ms=10_000) as made:
        await tell(made, root)
        async with made.visit() as visit:
            yield visit


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def night(
    nats_server: EmbeddedServer, browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Visit]:
    """A person who looks where nothing has happened yet."""
    name = f"b{uuid.uuid4().hex[:8]}"
    async with staging(nats_server.url, name, browser, tmp_path_factory.mktemp("night")) as made, made.visit() as visit:
        yield visit


@pytest.mark.parametrize("name", PAGES)
async def test_a_page_has_no_serious_violation_in_light_or_dark_and_fits_a_phone(day: Visit, name: str):
    await _look_at(day, PAGES[name], name)


@pytest.mark.parametrize("name", EMPTY)
async def test_an_empty_page_says_what_to_do(night: Visit, name: str):
    await _look_at(night, EMPTY[name], f"empty-{name}")

    await expect(night.page.locator(".empty .command")).to_contain_text("turngate ")


async def test_the_page_that_asks_for_a_token_can_be_read_too(stage: Stage, tmp_path: Path):
    TokenFile(tmp_path / "console-tokens.json").add("ann", Role.OPERATOR, 1_700_000_000_000)
    async with stage.another(state_dir=str(tmp_path)) as guarded, stage.visit("/", at=guarded) as visit:
        await visit.page.get_by_label("Token").fill("tgc_wrong")
        await visit.press("Enter")
        await visit.until("[role=alert]", "that is no token of this console")
        await _look(visit, "login")


async def _look_at(visit: Visit, path: str, name: str) -> None:
    await visit.page.set_viewport_size(DESKTOP)
    await visit.go(path)
    await _look(visit, name)


async def _look(visit: Visit, name: str) -> None:
    page = visit.page
    await page.emulate_media(color_scheme="light")
    await _picture(page, f"{name}-light")
    await page.evaluate(AXE)
    found = await _violations(page)
    await page.emulate_media(color_scheme="dark")
    await _picture(page, f"{name}-dark")
    # Nothing else is another one in the dark.
    found += [f"in the dark: {each}" for each in await _violations(page, "color-contrast")]
    await page.set_viewport_size(PHONE)
    await page.emulate_media(color_scheme="light")
    await _picture(page, f"{name}-phone")
    wide = await page.evaluate("document.documentElement.scrollWidth - innerWidth")
    found += [f"{wide} pixels wider than a phone"] if wide > 0 else []
    assert not found, "\n".join(found)
    visit.check()


async def _picture(page: Page, name: str) -> None:
    if PICTURES:
        await page.screenshot(path=Path(PICTURES) / f"{name}.png", full_page=True)


async def _violations(page: Page, *rules: str) -> list[str]:
    options: dict[str, Any] = {"resultTypes": ["violations"], **({"runOnly": rules} if rules else {})}
    violations = await page.evaluate("options => axe.run(document, options).then(found => found.violations)", options)
    return [
        f"{each['id']} ({each['impact']}): {', '.join(node['html'][:160] for node in each['nodes'][:3])}"
        for each in violations
        if each["impact"] in ("serious", "critical")
    ]
