"""A Chromium of this machine: never one that a test downloads."""

import contextlib
import os
import shutil
from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Browser, async_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
ARGUMENTS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
HOW = (
    "no Chromium here: `apt-get install chromium` on Debian and Ubuntu, or set CHROMIUM to the path of a Chromium or "
    "Chrome that is there"
)


def path() -> str:
    """Where Chromium is. Without one a newcomer's run goes on and says what it left out; a CI run fails."""
    given = os.environ.get("CHROMIUM", "")
    found = shutil.which(given) if given else next(filter(None, map(shutil.which, NAMES)), None)
    if not found and not os.environ.get("CI"):
        pytest.skip(HOW)
    assert found, HOW
    return found


@contextlib.asynccontextmanager
async def browsing() -> AsyncIterator[Browser]:
    """A browser, closed at the end."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path(), args=ARGUMENTS)
        try:
            yield browser
        finally:
            await browser.close()
