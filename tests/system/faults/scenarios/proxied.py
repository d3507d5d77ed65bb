"""Runners and a service reach the server through a proxy that drops, half-opens and delays their connections."""

import asyncio
import contextlib
import random

from tests.system.faults.findings import Findings
from tests.system.faults.rig import NAMESPACE, Rig, Scale
from tests.system.load import Load
from tests.system.proxy import proxying
from tests.system.runners import Runners

HALF_OPEN_S = 12
"""Longer than it takes to notice a server that says nothing: two pings of 5 s."""


async def run(rig: Rig, seed: int, scale: Scale) -> Findings:
    """Do something to the proxy again and again, drawn from the seed, while the load runs."""
    chance = random.Random(seed)
    async with proxying(rig.server.port) as proxy, contextlib.AsyncExitStack() as stack:
        await rig.start()
        await rig.start(TURNGATE_NATS_URL=proxy.url)
        runners = Runners(proxy.url, NAMESPACE, stack)
        async with Load(await runners.several(2), await rig.runners.person(), seed, in_flight=16) as load:
            kinds = ["drop", "delay", "refuse"] * scale.of(1, 3) + ["half-open"] * scale.of(0, 2)
            chance.shuffle(kinds)
            for kind in kinds:
                await load.goes_on(scale.of(10, 60))
                match kind:
                    case "drop":
                        proxy.drop()
                    case "delay":
                        proxy.delay_s = chance.uniform(0.02, 0.2)
                        await load.goes_on(scale.of(10, 60))
                        proxy.delay_s = 0
                    case "refuse":
                        proxy.refuse(True)
                        proxy.drop()
                        await asyncio.sleep(chance.uniform(0.2, scale.of(1, 2)))
                        proxy.refuse(False)
                    case "half-open":
                        proxy.half_open()
                        await asyncio.sleep(HALF_OPEN_S)
                        proxy.heal()
            await load.goes_on(scale.of(10, 60))
        found = await rig.settle(load.ledger)
        return Findings.sum([found, Findings(notes=(f"{proxy.connections} connections through the proxy",))])
