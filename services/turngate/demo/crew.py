"""One runner process of the demo that takes roles of objectives; its agents do what the plots say."""

import argparse
import asyncio
import sys

from turngate.demo.hosting import host, say
from turngate.demo.plots import scenarios
from turngate.runner.adapters.scripted import ScriptedAdapter
from turngate.runner.host import RunnerHost

BEAT_S = 0.5
"""More often than a real runner, so that its loss is seen within the demo's minute."""


async def _main(args: argparse.Namespace, ended: "asyncio.Future[None]") -> None:
    adapter = ScriptedAdapter(scenarios(args.pace))
    runner = RunnerHost(
        args.identity,
        adapter,
        pools=(args.pool,),
        slots=8,
        url=args.url,
        namespace=args.namespace,
        beat_s=BEAT_S,
        drain_ms=1_000,
    )
    async with runner:
        say(kind="joined", runner=args.identity)
        await ended


if __name__ == "__main__":
    sys.exit(host("crew", _main))
