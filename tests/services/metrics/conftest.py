"""A process's services in this process, with everything that it serves over HTTP."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from msgspec import Struct
from prometheus_client.parser import text_string_to_metric_families

from turngate.process import running
from turngate.runner import TurnClient
from turngate.settings import Settings
from turngate_contracts.topology import Durability


class Answer(Struct, frozen=True):
    """What came over HTTP."""

    status: int
    head: str
    body: str


class Served:
    """A process's endpoint, as Prometheus and an orchestrator see it."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    async def ask(self, request: bytes) -> Answer:
        """Send bytes and return the answer to them."""
        reader, writer = await asyncio.open_connection(self.settings.metrics_host, self.settings.metrics_port)
        try:
            writer.write(request)
            async with asyncio.timeout(10):
                answer = (await reader.read()).decode()
        finally:
            writer.close()
        head, _, body = answer.partition("\r\n\r\n")
        return Answer(int(head.split(" ")[1]), head, body)

    async def get(self, path: str) -> Answer:
        return await self.ask(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())

    async def values(self) -> "Values":
        """Every sample of `/metrics`."""
        found = Values()
        answer = await self.get("/metrics")
        assert answer.status == 200, answer
        for family in text_string_to_metric_families(answer.body):
            for sample in family.samples:
                found[sample.name, tuple(sorted(sample.labels.items()))] = sample.value
        return found

    async def client(self, identity: str = "runner-1") -> TurnClient:
        settings = self.settings
        return await TurnClient.connect(
            identity, pool=settings.pool, url=settings.nats_url, namespace=settings.namespace
        )


class Values(dict[tuple[str, tuple[tuple[str, str], ...]], float]):
    """Samples by name and labels."""

    def of(self, name: str, **labels: str) -> float:
        """The sum of the samples of a name that have these labels."""
        wanted = labels.items()
        return sum(value for (found, given), value in self.items() if found == name and wanted <= dict(given).items())

    @property
    def names(self) -> set[str]:
        return {name for name, _ in self}


def free_port() -> int:
    """A port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


Serving = Callable[..., contextlib.AbstractAsyncContextManager[Served]]


@pytest.fixture
def serving(nats_server, namespace) -> Serving:
    """Run services in this process, with an endpoint."""

    @contextlib.asynccontextmanager
    async def serve(*names: str, **changed: Any) -> AsyncIterator[Served]:
        given = {"nats_url": nats_server.url, "metrics_port": free_port(), **changed}
        settings = Settings(namespace=namespace, durability=Durability.RELAXED, **given)
        async with running(settings, names or ("validation",)):
            yield Served(settings)

    return serve
