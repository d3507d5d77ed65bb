"""A server of the test's own, and validation processes on it."""

import contextlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.system.observer import Observer
from tests.system.processes import Fleet
from tests.system.runners import Runners
from turngate.jetstream.embedded import EmbeddedServer


@pytest.fixture
def fleet(own_server: EmbeddedServer, namespace: str, tmp_path: Path) -> Iterator[Fleet]:
    """Validation processes in a namespace of their own; all have ended when the test has."""
    made = Fleet(own_server.url, namespace, tmp_path)
    try:
        yield made
    finally:
        made.end()


@pytest_asyncio.fixture
async def observer(own_server: EmbeddedServer, namespace: str) -> AsyncIterator[Observer]:
    """Reads what the server holds of the test's namespace."""
    made = await Observer.connect(own_server.url, namespace)
    try:
        yield made
    finally:
        await made.close()


@pytest_asyncio.fixture
async def runners(own_server: EmbeddedServer, namespace: str) -> AsyncIterator[Runners]:
    """Makes clients, which are closed when the test has ended."""
    async with contextlib.AsyncExitStack() as stack:
        yield Runners(own_server.url, namespace, stack)
