"""From the publish of a turn to its verdict with one turn in flight: what a runner waits for, beside a no-op.

Under each durability the no-op and the real service take turns in blocks. The ratio is that of the medians of two
neighbouring blocks; the 99th percentile is taken over all blocks.
"""

import statistics
from collections.abc import Sequence
from typing import Final

from bench.load import Load
from bench.options import Options
from bench.rig import Rig, requests, rig, until_quiet
from bench.rows import Row, Target, median_row, paired
from turngate.process import run as run_loop
from turngate_contracts.topology import Durability

NAME: Final = "latency"

_TARGETS: Final = {Durability.RELAXED: Target(2.5), Durability.STRICT: Target(3.5)}
_MIXES: Final = {"new sessions": 1, "10 turns a session": 10}
_WARM_UP_TURNS: Final = 20

Blocks = Sequence[Sequence[float]]
"""Latencies in ms, by block."""


def run(options: Options) -> list[Row]:
    """Measure both durabilities and both mixes."""
    rows = []
    for durability, target in _TARGETS.items():
        for mix, turns_a_session in _MIXES.items():
            with rig("noop", durability) as noop, rig("validation", durability) as real:
                blocks = run_loop(_alternate(noop, real, turns_a_session, options))
            rows += _rows(f"{durability.value}, {mix}", *blocks, target)
    return rows


async def _alternate(noop: Rig, real: Rig, turns_a_session: int, options: Options) -> tuple[Blocks, Blocks]:
    noops, reals = [], []
    for _ in range(options.latency_rounds):
        noops.append(await _block(noop, turns_a_session, options.latency_turns))
        reals.append(await _block(real, turns_a_session, options.latency_turns))
    return noops, reals


async def _block(on: Rig, turns_a_session: int, turns: int) -> Sequence[float]:
    async with requests(on) as requester:
        load = await Load.start(requester, on.topology.subjects, turns_a_session)
        await load.for_turns(1, _WARM_UP_TURNS)
        span = await load.for_turns(1, turns)
        await until_quiet(requester, on.topology)
        return span.latencies_ms


def _rows(name: str, noops: Blocks, reals: Blocks, target: Target) -> list[Row]:
    fast, slow = [statistics.median(block) for block in noops], [statistics.median(block) for block in reals]
    return [
        median_row(NAME, f"{name}: no-op", fast, "ms", note=f"p99 {_p99(noops):.2f} ms"),
        median_row(NAME, f"{name}: validation", slow, "ms", note=f"p99 {_p99(reals):.2f} ms", ceiling=f"{name}: no-op"),
        median_row(NAME, f"{name}: validation / no-op", paired(slow, fast), "", target),
    ]


def _p99(blocks: Blocks) -> float:
    return statistics.quantiles((latency for block in blocks for latency in block), n=100)[98]
