"""A runner, a real process, stands still with role runs in hand for longer than anybody waits, then goes on."""

import asyncio
import os
import random
import subprocess
import sys
from typing import Any, Final

from tests import esm_answers as answers
from tests.system.esm_serial import problems as wrong_in
from tests.system.faults.findings import Findings
from tests.system.faults.rig import NAMESPACE, Rig, Scale, pause, resume
from tests.system.patience import patiently
from tests.waiting import wait_until
from turngate.runner import TurnClient
from turngate_contracts import codec

POOL = "fleet"
QUICK: Final[dict[str, Any]] = {
    "TURNGATE_PRESENCE_MS": "2000",
    "TURNGATE_WATCHDOG_MS": "400",
    "TURNGATE_FIRST_DELAY_MS": "20",
    "TURNGATE_LONGEST_DELAY_MS": "200",
    "TURNGATE_POOL": POOL,
}
_SLOW = {"delay_ms": 300}
SCENARIO = {
    "default": [
        {"worker": answers.WORKS | _SLOW, "critic": answers.PASSES, "audit": answers.PASSES},
        {
            "worker": answers.CLAIMS | _SLOW,
            "critic": answers.PASSES | _SLOW,
            "audit": answers.PASSES | _SLOW,
            "recovery": answers.RESUMES,
        },
    ]
}


async def run(rig: Rig, seed: int, scale: Scale) -> Findings:
    """Stop one of two runners and a supervisor again and again; each objective still ends, and once."""
    chance = random.Random(seed)
    await rig.start("validation", **QUICK)
    supervisors = [*await rig.start("supervisor", **QUICK), *await rig.start("supervisor", **QUICK)]
    script = rig.directory / "scenario.json"
    script.write_bytes(codec.encode(SCENARIO))
    hosts = [_host(rig, f"host-{number}", str(script)) for number in (1, 2)]
    try:
        person = await rig.runners.one("ann", POOL)
        sessions = [f"o-{number}" for number in range(scale.of(6, 30))]
        await asyncio.gather(*(person.objectives.create(s, f"Objective {s}", pool=POOL, op=s) for s in sessions))
        for _ in range(scale.of(1, 5)):
            pid = chance.choice([hosts[0].pid, hosts[1].pid, supervisors[0].pid])
            pause(pid)
            try:
                await asyncio.sleep(scale.of(3, 8))
            finally:
                resume(pid)
            await asyncio.sleep(chance.uniform(0, 1))
        problems = [problem for s in sessions for problem in await _ends(person, s)]
    finally:
        for host in hosts:
            host.kill()
            await asyncio.to_thread(host.wait, 30)
    return Findings(len(sessions), problems=(*problems[:3], *rig.crashes()))


def _host(rig: Rig, identity: str, script: str) -> "subprocess.Popen[bytes]":
    command = (sys.executable, "-m", "tests.system.host_process", rig.url, NAMESPACE, identity, script)
    with (rig.directory / f"{identity}.log").open("wb") as log:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=dict(os.environ))


async def _ends(person: TurnClient, session: str) -> list[str]:
    async def complete() -> bool:
        found = await patiently(lambda: person.objectives.get(session))
        return found.state.objective is not None and found.state.objective.status == "complete"

    await wait_until(complete, 90, f"{session} is complete")
    found = await person.objectives.get(session)
    history = [cause async for cause in person.objectives.history(session)]
    return [f"{session}: {wrong}" for wrong in wrong_in(found.state, history)]
