"""Three servers with three copies of each stream: leaders are killed under load, and nothing acknowledged is lost."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.system.cluster import Cluster, running_cluster
from tests.system.load import Load
from tests.system.nothing_lost import assert_nothing_lost
from tests.system.observer import Observer
from tests.system.processes import Fleet
from tests.system.runners import Runners
from turngate.jetstream.provision import provision
from turngate.jetstream.store import Event, Store
from turngate_contracts.topology import Durability, Topology

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

KILLS = 2
"""How many leaders are killed here; `lose_leaders` takes more of them where there is time."""


@pytest_asyncio.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    """A cluster of the test's own; without syncing each write, because no test here cuts the power."""
    async with running_cluster(tmp_path, {"sync_interval: always": ""}) as made:
        yield made


async def test_a_cluster_that_loses_its_leader_under_load_loses_nothing(
    cluster: Cluster, namespace: str, tmp_path: Path
):
    await lose_leaders(cluster, namespace, tmp_path, KILLS)


async def lose_leaders(cluster: Cluster, namespace: str, directory: Path, kills: int) -> None:
    """Kill the leader of the intake or of the states under load, again and again, and settle the accounts."""
    fleet = Fleet(cluster.url, namespace, directory)
    observer = await Observer.connect(cluster.url, namespace)
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(observer.close)
        stack.callback(fleet.end)
        runners = Runners(cluster.url, namespace, stack)
        await fleet.start(2, TURNGATE_REPLICAS="3")
        await fleet.start(1, "deadletter", TURNGATE_REPLICAS="3")

        async with Load(await runners.several(2), await runners.person(), random.randrange(10**6), in_flight=8) as load:
            await load.reached(50)
            for number in range(kills):
                stream = (observer.turns.stream, observer.subjects.stream("turns"))[number % 2]
                node = await cluster.leader(observer.requester, stream)
                await asyncio.to_thread(node.kill)
                # Two of three go on.
                await load.goes_on(20)
                node.start()
                await cluster.formed()
                print(f"kill {number + 1}: {node.name} led {stream}")
            await load.goes_on(20)

        await assert_nothing_lost(observer, load.ledger)
        fleet.assert_no_crash_was_logged()


async def test_a_key_is_read_from_the_leader_where_a_replica_is_behind(cluster: Cluster, namespace: str):
    async with contextlib.AsyncExitStack() as stack:
        anyone = await Observer.connect(cluster.url, namespace)
        stack.push_async_callback(anyone.close)
        await provision(anyone.requester, Topology(anyone.subjects, Durability.RELAXED, 3))
        leading = await cluster.leader(anyone.requester, anyone.turns.stream)
        observer = await Observer.connect(leading.url, namespace)
        stack.push_async_callback(observer.close)
        store = Store(observer.requester, observer.subjects, "turns", "count.v1")
        behind = next(node for node in cluster.nodes if node is not leading)
        stack.callback(behind.resume)

        revision = 0
        for round_ in range(5):
            behind.pause()
            for number in range(50):
                revision = await store.save("k", b"%d" % number, revision, Event("x", 1))
            behind.resume()
            # Some of these would be answered by the replica that slept, with what was before.
            entries = await asyncio.gather(*(store.load("k") for _ in range(200)))
            assert {entry.revision for entry in entries} == {revision}, f"round {round_}"
        assert entries[0].value == b"49"
        assert entries[0].stored_at() > 0
        assert (await store.load("nobody")).value is None
