"""A validation process is killed with SIGKILL three times under load."""

import signal

from tests.system.faults.findings import Findings
from tests.system.faults.rig import Rig, Scale


async def run(rig: Rig, seed: int, scale: Scale) -> Findings:
    """Kill one of two."""
    await rig.start()
    async with await rig.load(seed, runners=4, in_flight=48) as load:
        for _ in range(scale.of(1, 5)):
            (killed,) = await rig.start()
            await load.goes_on(scale.of(50, 150))
            killed.signal(signal.SIGKILL)
            await killed.ended()
            await load.goes_on(50)
            await rig.observer.assert_sequences_rise()
        await load.reached(scale.of(150, 2_000))
    return await rig.settle(load.ledger)
