"""Every turn published three times at once, again after a restart of everything, and again an hour later."""

import asyncio

from tests.system.faults.findings import Findings
from tests.system.faults.rig import Rig, Scale
from tests.system.nothing_lost import last_revision
from tests.system.patience import each
from tests.system.repeater import DECIDED_S, Repeater, publish_turns
from tests.waiting import wait_until

HOUR_MS = 3_600_000


async def run(rig: Rig, seed: int, scale: Scale) -> Findings:
    """One verdict for each, always in the same words, and no revision for a repeat."""
    services = await rig.start(count=2)
    (client,) = await rig.runners.several(1)
    runner = await Repeater.start(client, rig.observer)
    await publish_turns(runner, scale.of(200, 2_000), seed)
    decided = await last_revision(rig.observer)
    problems = []

    def is_back() -> bool:
        return client.connection.is_connected and rig.observer.connection.is_connected

    for when, offset in (("after a restart", 0), ("an hour later", HOUR_MS)):
        for process in services:
            await rig.end(process)
        await asyncio.to_thread(rig.server.kill)
        await asyncio.to_thread(rig.server.start)
        services = await rig.start(count=2, TURNGATE_CLOCK_OFFSET_MS=str(offset))
        runner.told.clear()
        await wait_until(is_back, why="the runner and who publishes for it are back")
        await each(runner.sent, runner.publish_three_times)
        await wait_until(lambda: runner.words >= 3 * len(runner.sent), DECIDED_S, f"every repeat is answered {when}")
        odd = [number for number in runner.sent if len(set(runner.told[number])) != 1]
        problems += [f"{when} {number} is told in different words" for number in odd[:3]]
        after = await last_revision(rig.observer)
        if after != decided:
            problems.append(f"{when} repeats saved {after - decided} revisions")
    # Asking again is what the repeats were.
    found = await rig.settle(runner.ledger, ask_again=False)
    return Findings.sum([found, Findings(problems=tuple(problems))])
