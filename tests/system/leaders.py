"""A cluster that loses the leaders of its streams under load."""

import asyncio
import contextlib
from pathlib import Path

from tests.system.cluster import Cluster
from tests.system.ledger import Ledger
from tests.system.load import Load
from tests.system.nothing_lost import assert_nothing_lost
from tests.system.observer import Observer
from tests.system.processes import Fleet
from tests.system.runners import Runners


async def lose_leaders(cluster: Cluster, namespace: str, directory: Path, kills: int, seed: int) -> Ledger:
    """Kill the leader of the intake or of the states under load, again and again, and settle the accounts.

    Returns what clients sent and were told.
    """
    fleet = Fleet(cluster.url, namespace, directory)
    observer = await Observer.connect(cluster.url, namespace)
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(observer.close)
        stack.callback(fleet.end)
        runners = Runners(cluster.url, namespace, stack)
        await fleet.start(2, TURNGATE_REPLICAS="3")
        await fleet.start(1, "deadletter", TURNGATE_REPLICAS="3")

        async with Load(await runners.several(2), await runners.person(), seed, in_flight=8) as load:
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
        return load.ledger
