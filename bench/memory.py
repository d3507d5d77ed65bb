"""Memory of the validation process over many turns of new sessions: it must not grow with the past.

The process remembers states up to a limit in bytes, which takes some ten thousand sessions to fill; from there on it
must be flat. So the growth over the second half of the turns is what counts.
"""

from typing import Final

from bench.load import Load
from bench.loop import run as run_loop
from bench.machine import rss_mib
from bench.options import Options
from bench.rig import Cpu, Rig, requests, rig, until_quiet
from bench.rows import Row, Target
from turngate_contracts.topology import Durability

NAME: Final = "memory"
FILLED_TURNS: Final = 50_000
"""From how many turns on the process's memory of states is surely full."""

_PARTS: Final = 10
_IN_FLIGHT: Final = 256
_GROWTH: Final = Target(5.0)


def run(options: Options) -> list[Row]:
    """Measure one worker over all turns."""
    with rig("validation", Durability.RELAXED) as real:
        readings, cpu, server = run_loop(_measure(real, options.memory_turns))
    half = len(readings) // 2
    growth = (readings[-1] / readings[half] - 1) * 100
    filled = options.memory_turns // 2 >= FILLED_TURNS
    name = f"{options.memory_turns:,} turns of new sessions"
    return [
        Row(NAME, f"{name}: validation at start", readings[0], "MiB RSS"),
        Row(NAME, f"{name}: validation half-way", readings[half], "MiB RSS"),
        Row(NAME, f"{name}: validation at end", readings[-1], "MiB RSS"),
        Row(
            NAME,
            f"{name}: growth in the second half",
            growth,
            "%",
            target=_GROWTH if filled else None,
            note="" if filled else "too few turns to fill the cache of states",
        ),
        Row(NAME, f"{name}: nats-server at end", server, "MiB RSS"),
        Row(NAME, f"{name}: validation CPU, worker", cpu.worker, "µs/turn"),
        Row(NAME, f"{name}: validation CPU, all", cpu.total, "µs/turn"),
    ]


async def _measure(on: Rig, turns: int) -> tuple[list[float], Cpu, float]:
    async with requests(on) as requester:
        load = await Load.start(requester, on.topology.subjects)
        readings = [rss_mib(on.worker_pid)]
        before = on.cpu()
        for _ in range(_PARTS):
            await load.for_turns(_IN_FLIGHT, turns // _PARTS)
            readings.append(rss_mib(on.worker_pid))
        await until_quiet(requester, on.topology)
        return readings, on.cpu().per_turn_us(before, load.done), rss_mib(on.server_pid)
