"""Three servers with three copies of each stream: leaders are killed under load, and nothing acknowledged is lost."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.system.cluster import Cluster, running_cluster
from tests.system.leaders import lose_leaders
from tests.system.observer import Observer
from turngate.jetstream.batch import LEAST
from turngate.jetstream.provision import provision
from turngate.jetstream.store import Event, Store
from turngate_contracts.topology import Durability, Topology

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

KILLS = 2
"""How many leaders are killed here; `make faults` kills five."""


@pytest_asyncio.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    """A cluster of the test's own; without syncing each write, because no test here cuts the power."""
    async with running_cluster(tmp_path, {"sync_interval: always": ""}) as made:
        yield made


async def test_a_cluster_that_loses_its_leader_under_load_loses_nothing(
    cluster: Cluster, namespace: str, tmp_path: Path
):
    await lose_leaders(cluster, namespace, tmp_path, KILLS, random.randrange(10**6))


async def test_of_saves_over_all_servers_one_is_stored_whatever_they_want(cluster: Cluster, namespace: str):
    """Between replicas a save is on its way for a while: one on the key's other subject must not slip past it."""
    async with contextlib.AsyncExitStack() as stack:
        stores = []
        for number, node in enumerate((*cluster.nodes, *cluster.nodes)):
            observer = await Observer.connect(node.url, namespace)
            stack.push_async_callback(observer.close)
            grouped = number >= len(cluster.nodes)
            stores.append(Store(observer.requester, observer.subjects, "turns", "count.v1", grouped=grouped))
        await provision(observer.requester, Topology(observer.subjects, Durability.RELAXED, 3))
        keys = [f"k{number}" for number in range(LEAST)]
        events = [Event("x", 1, wants=wants) for wants in (True, False)]

        revisions = dict.fromkeys(keys, 0)
        for round_ in range(20):
            outcomes = await asyncio.gather(
                *(
                    store.save(key, b"%d" % number, revisions[key], events[(number + round_) % 2])
                    for number, store in enumerate(stores)
                    for key in keys
                ),
                return_exceptions=True,
            )
            for index, key in enumerate(keys):
                stored = [each for each in outcomes[index :: len(keys)] if not isinstance(each, BaseException)]
                assert len(stored) <= 1, f"round {round_}, {key}: {outcomes[index :: len(keys)]}"
                revisions[key] = (await stores[0].load(key)).revision
        for key, history in (await observer.history(observer.turns)).items():
            before = [0, *(each.sequence for each in history)]
            assert [each.fields["ce-id"] for each in history] == [f"{key}.{revision}" for revision in before[:-1]]
            assert len({each.subject for each in history}) == 2


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
