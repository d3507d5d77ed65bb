"""Connections and requesters on real servers, closed after each test."""

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from tests.services.jetstream.queues import Queue, Worker
from tests.services.jetstream.raw import Proxy, RawClient
from tests.services.jetstream.readers import Bucket, make_events
from tests.services.jetstream.works import Count, make_lanes
from tests.waiting import wait_until
from turngate.jetstream import consume
from turngate.jetstream.connect import Connection, connect
from turngate.jetstream.embedded import EmbeddedServer
from turngate.jetstream.events import EventReader
from turngate.jetstream.keyed import Lanes
from turngate.jetstream.request import Requester
from turngate.jetstream.store import Store
from turngate_contracts.subjects import Subjects
from turngate_contracts.topology import Topology

Connecting = Callable[..., Awaitable[Connection]]
Requesting = Callable[[Connection], Awaitable[Requester]]
Starting = Callable[..., Awaitable[Worker]]

QUICKLY_S = 0.05
"""How long a test's connection waits before it tries to come back; processes spread over seconds."""


async def came_back(connection: Connection, times: int = 1) -> None:
    """Wait until a connection has reconnected as often as that."""
    await wait_until(
        lambda: connection.stats["reconnects"] >= times and connection.is_connected, why="it did not come back"
    )


@pytest.fixture
async def connecting() -> AsyncIterator[Connecting]:
    """Open connections to a URL; they come back quickly, and are closed with the test."""
    async with contextlib.AsyncExitStack() as stack:

        async def open_one(url: str, **options: Any) -> Connection:
            made = await connect(url, **options)
            made.options["reconnect_time_wait"] = QUICKLY_S
            stack.push_async_callback(made.close)
            return made

        yield open_one


@pytest.fixture
async def requesting() -> AsyncIterator[Requesting]:
    """Start requesters on connections; they are stopped with the test."""
    async with contextlib.AsyncExitStack() as stack:

        async def start_one(connection: Connection) -> Requester:
            made = await Requester.start(connection)
            stack.push_async_callback(made.stop)
            return made

        yield start_one


@pytest.fixture
async def connection(connecting: Connecting, nats_server: EmbeddedServer) -> Connection:
    """A connection to the server that all tests share."""
    return await connecting(nats_server.url)


@pytest.fixture
async def requester(connection: Connection, requesting: Requesting) -> Requester:
    """The requests of `connection`."""
    return await requesting(connection)


@pytest.fixture
async def own_connection(connecting: Connecting, own_server: EmbeddedServer) -> Connection:
    """A connection to the server that this test may kill."""
    return await connecting(own_server.url)


@pytest.fixture
async def own_requester(own_connection: Connection, requesting: Requesting) -> Requester:
    """The requests of `own_connection`."""
    return await requesting(own_connection)


@pytest.fixture
def subjects(namespace: str) -> Subjects:
    """The names of this test's namespace."""
    return Subjects(namespace)


@pytest.fixture
async def raw(nats_server: EmbeddedServer) -> AsyncIterator[RawClient]:
    """A client of the shared server that sends bytes as they are."""
    client = await RawClient.open(nats_server.port)
    yield client
    await client.close()


@pytest.fixture
async def proxy(nats_server: EmbeddedServer) -> AsyncIterator[Proxy]:
    """A way to the shared server that can be cut, stalled and listened to."""
    async with Proxy.to(nats_server.port) as made:
        yield made


async def make_bucket(requester: Requester, subjects: Subjects, name: str = "turns") -> Store:
    """Make one bucket as provisioning does, and return it as a store."""
    wanted = next(each for each in Topology(subjects).streams() if each["name"] == subjects.bucket_stream(name))
    await requester.api(f"STREAM.CREATE.{wanted['name']}", wanted)
    return Store(requester, subjects, name, "count.v1")


@pytest.fixture
async def store(requester: Requester, subjects: Subjects) -> Store:
    """A bucket on the shared server."""
    return await make_bucket(requester, subjects)


@pytest.fixture
async def queue(requester: Requester, namespace: str) -> Queue:
    """A work queue and its consumer on the shared server."""
    return await Queue.make(requester, namespace)


@pytest.fixture
async def starting() -> AsyncIterator[Starting]:
    """Start workers; their loops are stopped with the test."""
    workers: list[Worker] = []

    async def start_one(connection: Connection, queue: Queue, *, window: int = 8, hold: bool = False) -> Worker:
        worker = Worker(hold=hold)
        workers.append(worker)
        await worker.start(connection, queue, window=window)
        return worker

    yield start_one
    for worker in workers:
        worker.hold = False
        worker.release()
        if worker.loop is not None:
            await worker.loop.stop(1_000)


@pytest.fixture
def quick_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look after consume loops more often than once a second."""
    monkeypatch.setattr(consume, "CHECK_MS", 50)


@pytest.fixture
def lanes(store: Store) -> Lanes[Count]:
    """The lanes of `store`."""
    return make_lanes(store)


@pytest.fixture
async def other(
    connecting: Connecting, requesting: Requesting, nats_server: EmbeddedServer, subjects: Subjects
) -> Store:
    """The bucket of `store` as another process sees it."""
    requester = await requesting(await connecting(nats_server.url))
    return Store(requester, subjects, "turns", "count.v1")


@pytest.fixture
async def provisioned(requester: Requester, subjects: Subjects) -> Subjects:
    """The names of a namespace that has its events stream and the buckets behind it."""
    await make_events(requester, subjects)
    return subjects


@pytest.fixture
def turns(requester: Requester, provisioned: Subjects) -> Bucket:
    """A bucket whose revisions are events."""
    return Bucket(requester, provisioned)


@pytest.fixture
def reader(connection: Connection, requester: Requester, provisioned: Subjects) -> EventReader:
    """A reader of the events of `provisioned`."""
    return EventReader(connection, requester, provisioned)
