"""A system with the conclusion service, and a runner with files."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from tests.running import System, running
from turngate.jetstream.embedded import EmbeddedServer


@pytest_asyncio.fixture
async def system(nats_server: EmbeddedServer, namespace: str) -> AsyncIterator[System]:
    """Validation and conclusion in a namespace of their own; runners have a second to say which files exist."""
    async with running(nats_server.url, namespace, conclusion=True, stat_timeout_ms=1_000) as made:
        yield made


@pytest_asyncio.fixture
async def root(tmp_path: Path) -> Path:
    """A directory with one file, `made.txt`."""
    root = tmp_path / "host"
    root.mkdir()
    (root / "made.txt").write_text("made by the task")
    return root
