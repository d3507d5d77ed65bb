"""The consumers of pools: made by whoever joins first, shared by all, and bounded in number."""

import asyncio

import pytest

from turngate.jetstream.pools import TooManyPools, ensure_pool
from turngate.jetstream.provision import TopologyMissing, ensure_stream
from turngate.jetstream.request import Requester
from turngate_contracts.subjects import Subjects
from turngate_contracts.topology import Topology

ROLES = ("worker", "critic")


@pytest.fixture
async def topology(requester: Requester, namespace: str) -> Topology:
    made = Topology(Subjects(namespace))
    (work,) = (config for config in made.streams() if config["name"] == made.subjects.stream("work"))
    await ensure_stream(requester, work)
    return made


async def _consumers(requester: Requester, topology: Topology) -> set[str]:
    found = await requester.api(f"CONSUMER.NAMES.{topology.subjects.stream('work')}")
    return set(found["consumers"])


async def test_runners_that_join_a_pool_together_share_its_consumers(requester: Requester, topology: Topology):
    await asyncio.gather(*(ensure_pool(requester, topology, "web", ROLES) for _ in range(5)))

    assert await _consumers(requester, topology) == {"prompts-web", "roles-worker-web", "roles-critic-web"}


async def test_a_pool_too_many_is_refused_and_those_that_exist_go_on(requester: Requester, topology: Topology):
    await ensure_pool(requester, topology, "web", ROLES, limit=3)

    with pytest.raises(TooManyPools, match=r"pool other can't be made: \w+_WORK has 3 consumers, which is the most"):
        await ensure_pool(requester, topology, "other", (), limit=3)
    await ensure_pool(requester, topology, "web", ROLES, limit=3)

    assert await _consumers(requester, topology) == {"prompts-web", "roles-worker-web", "roles-critic-web"}


async def test_a_pool_of_a_system_that_was_not_made_says_so(requester: Requester, namespace: str):
    with pytest.raises(TopologyMissing, match="turngate up"):
        await ensure_pool(requester, Topology(Subjects(namespace)), "web", ())
