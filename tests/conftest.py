"""Real servers and fresh names for every suite."""

import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
from hypothesis import HealthCheck, settings

from tests.running import System, forget, keep_folder, running
from turngate.jetstream.embedded import EmbeddedServer

# How long an example takes depends on what else the machine does: no test here fails for that.
settings.register_profile("turngate", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("turngate")


@pytest.fixture(scope="session")
def nats_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedServer]:
    """One server for all tests that leave it running; with relaxed sync, because no test here cuts the power."""
    server = EmbeddedServer(tmp_path_factory.mktemp("nats"), sync_always=False)
    server.start()
    try:
        keep_folder(server.url)
        yield server
    finally:
        server.kill()  # nothing in it is wanted any more, and an orderly end of so many streams takes seconds


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[EmbeddedServer]:
    """A server of the test's own, to restart and kill."""
    with EmbeddedServer(tmp_path / "own-server", sync_always=False) as server:
        yield server


@pytest.fixture
def namespace(nats_server: EmbeddedServer) -> Iterator[str]:
    """A namespace that no other test has: short, lower-case, letters and digits; its streams go with the test."""
    name = f"t{uuid.uuid4().hex[:8]}"
    yield name
    forget(nats_server.url, name)


@pytest_asyncio.fixture
async def system(nats_server: EmbeddedServer, namespace: str) -> AsyncIterator[System]:
    """A running system in a namespace of its own."""
    async with running(nats_server.url, namespace) as made:
        yield made
