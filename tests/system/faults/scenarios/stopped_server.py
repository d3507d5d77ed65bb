"""The server, then a service, stand still beyond the acknowledgement wait, and go on where they were."""

import asyncio

from tests.system.faults.findings import Findings
from tests.system.faults.rig import Rig, Scale, pause, resume
from turngate_contracts.topology import ACK_WAIT_MS

BEYOND_S = ACK_WAIT_MS // 1000 + 5
SHORT_S = 3
"""Beyond the wait that `hasten` sets."""


async def run(rig: Rig, seed: int, scale: Scale) -> Findings:
    """Stop each of them for a while, under load."""
    services = await rig.start(count=2)
    if scale is Scale.SHORT:
        await rig.observer.hasten()
    async with await rig.load(seed) as load:
        for pid in (rig.server.pid, services[0].pid)[: scale.of(1, 2)]:
            await load.goes_on(scale.of(20, 150))
            pause(pid)
            try:
                await asyncio.sleep(scale.of(SHORT_S, BEYOND_S))
            finally:
                resume(pid)
        await load.goes_on(scale.of(20, 150))
    return await rig.settle(load.ledger)
