"""The server is away for a minute, and every client goes on when it is back."""

import asyncio

from tests.system.faults.findings import Findings
from tests.system.faults.rig import Rig, Scale

SHORT_S = 5
FULL_S = 60


async def run(rig: Rig, seed: int, scale: Scale) -> Findings:
    """End it in the middle of the load, wait, and start it again."""
    await rig.start(count=2)
    async with await rig.load(seed) as load:
        await load.goes_on(scale.of(30, 150))
        await asyncio.to_thread(rig.server.kill)
        await asyncio.sleep(scale.of(SHORT_S, FULL_S))
        await asyncio.to_thread(rig.server.start)
        await load.goes_on(scale.of(30, 300))
    return await rig.settle(load.ledger)
