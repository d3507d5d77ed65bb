"""One browser for all of these tests, and one stage that they share: each works in sessions of its own."""

import uuid
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser

from tests.browser.chromium import browsing
from tests.browser.stage import Stage, staging
from turngate.jetstream.embedded import EmbeddedServer


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the tests of this directory in the loop that the browser lives in."""
    for item in items:
        if item.path.is_relative_to(__file__.rpartition("/")[0]):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    """Chromium."""
    async with browsing() as made:
        yield made


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def stage(
    nats_server: EmbeddedServer, browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Stage]:
    """The stage that all tests share that harm nobody else."""
    name = f"b{uuid.uuid4().hex[:8]}"
    async with staging(nats_server.url, name, browser, tmp_path_factory.mktemp("console")) as made:
        yield made


@pytest.fixture
def session() -> str:
    """A session that no other test has."""
    return f"s-{uuid.uuid4().hex[:8]}"
