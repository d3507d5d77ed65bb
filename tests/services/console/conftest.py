"""Consoles for tests."""

import contextlib
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.running import System
from tests.services.console.serving import Console, Page, serving, started
from turngate.console.tokens import TokenFile
from turngate.jetstream.embedded import EmbeddedServer


@pytest_asyncio.fixture
async def console(nats_server: EmbeddedServer, namespace: str, tmp_path: Path) -> AsyncIterator[Console]:
    """A console on loopback, with the validation service behind it."""
    async with serving(nats_server.url, namespace, tmp_path) as made:
        yield made


@pytest_asyncio.fixture
async def page(console: Console) -> AsyncIterator[Page]:
    """A browser at that console."""
    async with console.browser() as made:
        yield made


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_system(nats_server: EmbeddedServer, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[System]:
    """A system with every service, for all tests of a module: each uses sessions of its own."""
    directory = tmp_path_factory.mktemp("shared")
    name = f"t{uuid.uuid4().hex[:8]}"
    async with serving(nats_server.url, name, directory, whole=True) as made:
        yield made.system


@pytest_asyncio.fixture(loop_scope="module")
async def shared(shared_system: System, tmp_path: Path) -> AsyncIterator[Console]:
    """A console of the test's own before that system: its tokens are nobody else's."""
    async with contextlib.AsyncExitStack() as stack:
        service = await started(shared_system, stack, state_dir=str(tmp_path))
        yield Console(shared_system, service, TokenFile(tmp_path / "console-tokens.json"))


@pytest_asyncio.fixture(loop_scope="module")
async def visitor(shared: Console) -> AsyncIterator[Page]:
    """A browser at the console before the shared system."""
    async with shared.browser() as made:
        yield made
