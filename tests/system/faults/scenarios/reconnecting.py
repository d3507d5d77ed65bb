"""Two hundred clients lose their server and come back at once; each then has its turn judged."""

import asyncio

from tests.fundamentals.reports import CARD, UNCHECKED
from tests.system.faults.findings import Findings
from tests.system.faults.rig import Rig, Scale
from tests.system.ledger import Ledger
from turngate_contracts import codec


async def run(rig: Rig, seed: int, scale: Scale) -> Findings:
    """One turn before, one across, and one after the loss of the server."""
    await rig.start(count=2)
    ledger = Ledger()
    count = scale.of(60, 200)
    clients = [await rig.runners.one(f"runner-{number}", "pool-1") for number in range(count)]

    async def turn(number: int, client: int) -> None:
        session = f"s-{client}"
        await ledger.report(clients[client], session, number, 1, codec.encode(UNCHECKED))
        await ledger.report(clients[client], session, number, 2, codec.encode(CARD))

    await asyncio.gather(*(turn(1, client) for client in range(count)))
    across = [asyncio.create_task(turn(2, client)) for client in range(count)]
    await asyncio.to_thread(rig.server.kill)
    await asyncio.to_thread(rig.server.start)
    await asyncio.gather(*across)
    await asyncio.gather(*(turn(3, client) for client in range(count)))
    lost = [client.identity for client in clients if not client.connection.is_connected]
    found = await rig.settle(ledger)
    return Findings.sum([found, Findings(problems=tuple(f"{each} did not come back" for each in lost))])
