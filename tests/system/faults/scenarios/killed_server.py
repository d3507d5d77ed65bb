"""The server is killed with SIGKILL five times under load."""

import asyncio

from tests.system.faults.findings import Findings
from tests.system.faults.rig import Rig, Scale
from tests.waiting import wait_until


async def run(rig: Rig, seed: int, scale: Scale) -> Findings:
    """Kill it again and again, and play on."""
    await rig.start(count=2)
    await rig.start("deadletter")
    async with await rig.load(seed, runners=4, in_flight=48) as load:
        for _ in range(scale.of(2, 5)):
            await load.goes_on(scale.of(50, 150))
            await asyncio.to_thread(rig.server.kill)
            await wait_until(lambda: not rig.observer.connection.is_connected, why="clients notice it")
            await asyncio.to_thread(rig.server.start)
            await rig.observer.assert_sequences_rise()
        await load.reached(scale.of(200, 2_000))
    return await rig.settle(load.ledger)
