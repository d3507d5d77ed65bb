"""Options for a server of the running system, and a person who answers."""

import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.running import System, running
from tests.services.bridges.agent import options_for
from turngate.bridges.mcp.options import Options
from turngate.jetstream.embedded import EmbeddedServer
from turngate.runner import TurnClient
from turngate.settings import Settings

NOBODY_URL = "nats://127.0.0.1:9"


@pytest.fixture
def options(system: System, tmp_path: Path) -> Options:
    """What a server of the running system is started with."""
    return options_for(system.settings, tmp_path)


@pytest_asyncio.fixture
async def person(system: System) -> TurnClient:
    """Somebody who answers, as the console does."""
    return await system.client("alice")


@pytest.fixture
def alone(tmp_path: Path) -> Options:
    """What a server is started with in a test that needs no services: there are none."""
    return options_for(Settings(nats_url=NOBODY_URL), tmp_path)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(nats_server: EmbeddedServer) -> AsyncIterator[System]:
    """One system for a module whose tests have a session each."""
    async with running(nats_server.url, f"t{uuid.uuid4().hex[:8]}") as made:
        yield made


@pytest.fixture
def own_session(shared: System, tmp_path: Path) -> Options:
    """What a server of the module's system is started with, for a session that no other test has."""
    return options_for(shared.settings, tmp_path, session=f"agent-{uuid.uuid4().hex[:8]}")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_person(shared: System) -> TurnClient:
    """Somebody who answers in the module's system."""
    return await shared.client("alice")
