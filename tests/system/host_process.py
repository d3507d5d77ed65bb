"""A runner host as a process of its own: `python -m tests.system.host_process URL NAMESPACE IDENTITY SCENARIOS`."""

import asyncio
import logging
import os
import signal
import sys
from pathlib import Path

from tests.system.esm_fleet import POOL, loaded
from turngate.process import run
from turngate.runner.adapters.scripted import ScriptedAdapter
from turngate.runner.host import RunnerHost


async def main(url: str, namespace: str, identity: str, scenarios: str) -> None:
    """Take roles until SIGTERM, or until whoever started this has gone."""
    host = RunnerHost(
        identity,
        ScriptedAdapter(loaded(Path(scenarios))),
        pools=(POOL,),
        slots=6,
        url=url,
        namespace=namespace,
        beat_s=0.4,
        drain_ms=1_000,
    )
    ending = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ending.set)
    await host.start()
    sys.stderr.write("ready\n")
    sys.stderr.flush()
    parent = os.getppid()
    while not ending.is_set() and os.getppid() == parent:
        try:
            async with asyncio.timeout(0.5):
                await ending.wait()
        except TimeoutError:
            continue
    await host.stop()


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    run(main(*sys.argv[1:5]))
