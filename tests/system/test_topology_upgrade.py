"""A topology of the version before is brought up to date in place, under load, and nothing is lost."""

import asyncio
import random
from typing import Any

import pytest

from tests.system.load import Load
from tests.system.nothing_lost import assert_nothing_lost
from tests.system.observer import Observer
from tests.system.processes import Fleet
from tests.system.runners import Runners
from turngate.jetstream.provision import TopologyNewer, provision, stream_version
from turngate_contracts import topology as contract
from turngate_contracts.topology import VERSION_KEY, Durability, Topology

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

VERSION = contract.TOPOLOGY_VERSION


class Next(Topology, frozen=True):
    """What a version after this one might want: longer histories, and room for more in the queues."""

    def streams(self) -> list[dict[str, Any]]:
        found = []
        for config in super().streams():
            changed = config | {"metadata": {VERSION_KEY: str(VERSION + 1)}}
            if config.get("max_msgs_per_subject", 0) > 1:
                changed["max_msgs_per_subject"] = config["max_msgs_per_subject"] * 2
            found.append(changed)
        return found


async def test_an_upgrade_of_the_topology_under_load_loses_nothing(
    fleet: Fleet, observer: Observer, runners: Runners, monkeypatch
):
    """Processes of this version go on while the next one's provisioning changes their streams."""
    old, new = (kind(observer.subjects, Durability.RELAXED) for kind in (Topology, Next))
    await fleet.start(1)
    await fleet.start(1, "deadletter")

    async with Load(await runners.several(2), await runners.person(), random.randrange(10**6), in_flight=8) as load:
        await load.reached(40)
        monkeypatch.setattr("turngate.jetstream.provision.TOPOLOGY_VERSION", VERSION + 1)
        made = await asyncio.gather(*(provision(observer.requester, new) for _ in range(3)))
        await load.goes_on(40)

    assert not [name for each in made for name in each.created]
    assert {name for each in made for name in each.updated} == {config["name"] for config in old.streams()}
    assert await stream_version(observer.requester, observer.turns.stream) == VERSION + 1
    await assert_nothing_lost(observer, load.ledger)
    fleet.assert_no_crash_was_logged()

    monkeypatch.setattr("turngate.jetstream.provision.TOPOLOGY_VERSION", VERSION)
    with pytest.raises(TopologyNewer, match=f"has topology version {VERSION + 1}, this Turngate knows {VERSION}"):
        await provision(observer.requester, old)
