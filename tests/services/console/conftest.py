"""Consoles for tests."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from tests.services.console.serving import Console, Page, serving
from turngate.jetstream.embedded import EmbeddedServer


@pytest_asyncio.fixture
async def console(nats_server: EmbeddedServer, namespace: str, tmp_path: Path) -> AsyncIterator[Console]:
    """A console on loopback, with the validation service behind it."""
    async with serving(nats_server.url, namespace, tmp_path) as made:
        yield made


@pytest_asyncio.fixture
async def whole(nats_server: EmbeddedServer, namespace: str, tmp_path: Path) -> AsyncIterator[Console]:
    """A console with every service behind it."""
    async with serving(nats_server.url, namespace, tmp_path, objectives=True, tasks=True) as made:
        yield made


@pytest_asyncio.fixture
async def page(console: Console) -> AsyncIterator[Page]:
    """A browser at that console."""
    async with console.browser() as made:
        yield made
