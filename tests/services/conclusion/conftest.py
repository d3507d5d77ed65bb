"""A system with the conclusion service, and a host with a file."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
import pytest_asyncio

from tests.running import System, running
from turngate.jetstream.embedded import EmbeddedServer

Start = Callable[..., AbstractAsyncContextManager[System]]


@pytest.fixture
def start(nats_server: EmbeddedServer, namespace: str) -> Start:
    """Starts validation and conclusion in a namespace of their own, with the settings that are given."""
    return lambda **settings: running(nats_server.url, namespace, conclusion=True, **settings)


@pytest_asyncio.fixture
async def system(start: Start) -> AsyncIterator[System]:
    """A system whose runners have plenty of time to say which files exist."""
    async with start(stat_timeout_ms=15_000) as made:
        yield made


@pytest_asyncio.fixture
async def impatient(start: Start) -> AsyncIterator[System]:
    """A system for runners that do not answer anyway."""
    async with start(stat_timeout_ms=400) as made:
        yield made


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A directory with one file, `made.txt`."""
    root = tmp_path / "host"
    root.mkdir()
    (root / "made.txt").write_text("made by the task")
    return root
