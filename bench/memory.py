"""Memory of the validation process and of a console over many turns of new sessions: it must not grow with the past.

The process remembers states up to a limit in bytes, which takes some ten thousand sessions to fill; from there on it
must be flat. So the growth over the second half of the turns is what counts. The console hears of every event
meanwhile. The full size is a million turns (`--full-size`); a run says how many it had.
"""

from typing import Final

from msgspec import Struct

from bench.console import serving
from bench.load import Load
from bench.machine import rss_mib
from bench.options import Options
from bench.rig import Cpu, Rig, requests, rig, until_quiet
from bench.rows import Row, Target
from turngate.process import run as run_loop
from turngate_contracts.topology import Durability

NAME: Final = "memory"
FILLED_TURNS: Final = 50_000
"""From how many turns on the process's memory of states is surely full."""

_PARTS: Final = 10
_IN_FLIGHT: Final = 256
_GROWTH: Final = Target(5.0)


class _Reading(Struct, frozen=True):
    """Resident memory in MiB."""

    validation: float
    console: float
    server: float


def run(options: Options) -> list[Row]:
    """Measure one process of each over all turns."""
    with rig("validation", Durability.RELAXED) as real, serving(real) as (_, console_pid):
        readings, cpu = run_loop(_measure(real, console_pid, options.memory_turns))
    start, half, end = readings[0], readings[len(readings) // 2], readings[-1]
    name = f"{options.memory_turns:,} turns of new sessions"
    filled = options.memory_turns // 2 >= FILLED_TURNS
    target = _GROWTH if filled else None
    few = "" if filled else "too few turns to fill the cache of states"
    rows = []
    for who, grown in (("validation", target), ("console", target)):
        begin, middle, last = (getattr(reading, who) for reading in (start, half, end))
        growth = (last / middle - 1) * 100
        first = f"{name}: {who} at start"
        rows += [
            Row(NAME, first, begin, "MiB RSS"),
            Row(NAME, f"{name}: {who} half-way", middle, "MiB RSS", ceiling=first),
            Row(NAME, f"{name}: {who} at end", last, "MiB RSS", ceiling=first),
            Row(NAME, f"{name}: {who}'s growth in the second half", growth, "%", target=grown, note=few),
        ]
    return [
        *rows,
        Row(NAME, f"{name}: nats-server at start", start.server, "MiB RSS"),
        Row(NAME, f"{name}: nats-server half-way", half.server, "MiB RSS"),
        Row(NAME, f"{name}: nats-server at end", end.server, "MiB RSS"),
        Row(NAME, f"{name}: validation CPU, worker", cpu.worker, "µs/turn"),
        Row(NAME, f"{name}: validation CPU, all", cpu.total, "µs/turn"),
    ]


async def _measure(on: Rig, console_pid: int, turns: int) -> tuple[list[_Reading], Cpu]:
    def read() -> _Reading:
        return _Reading(rss_mib(on.worker_pid), rss_mib(console_pid), rss_mib(on.server_pid))

    async with requests(on) as requester:
        load = await Load.start(requester, on.topology.subjects)
        readings = [read()]
        before = on.cpu()
        for _ in range(_PARTS):
            await load.for_turns(_IN_FLIGHT, turns // _PARTS)
            readings.append(read())
        await until_quiet(requester, on.topology)
        return readings, on.cpu().per_turn_us(before, load.done)
