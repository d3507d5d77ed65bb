"""Options for a server of the running system, and a person who answers."""

from pathlib import Path

import pytest
import pytest_asyncio

from tests.running import System
from tests.services.bridges.agent import options_for
from turngate.bridges.mcp.options import Options
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
