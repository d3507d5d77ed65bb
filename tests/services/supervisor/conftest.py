"""A supervised system for every test here."""

from collections.abc import AsyncIterator

import pytest_asyncio

from tests.supervised import Supervised, supervising
from turngate.jetstream.embedded import EmbeddedServer


@pytest_asyncio.fixture
async def supervised(nats_server: EmbeddedServer, namespace: str) -> AsyncIterator[Supervised]:
    """Validation and one impatient supervisor in a namespace of their own."""
    async with supervising(nats_server.url, namespace) as made:
        yield made
