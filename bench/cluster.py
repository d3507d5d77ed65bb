"""A cluster of three on this machine, each stream in three copies: what a turn and an objective's step cost in it.

All three servers, the worker and the load share this machine's cores, so the rates say little about a cluster of three
machines and the CPU times much: what one machine spends here, three share there. No network is between them, so the
latencies are those of the copying alone.
"""

import statistics
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from bench.load import Load, Span
from bench.options import Options
from bench.pipeline import Round, measure
from bench.rig import Cpu, Rig, requests, rig, until_quiet
from bench.roles import Roles
from bench.rows import Row, median_row
from bench.supervisor import SESSIONS, STEPS
from turngate.process import run as run_loop
from turngate_contracts.topology import Durability

NAME: Final = "cluster"
SERVERS: Final = 3

_WARM_UP_TURNS: Final = 20


class _Steps(Struct, frozen=True):
    span: Span
    cpu: Cpu


def run(options: Options) -> list[Row]:
    """Measure both durabilities: turns of new sessions, and steps."""
    rows: list[Row] = []
    for durability in Durability:
        with rig("noop", durability, servers=SERVERS) as noop, rig("validation", durability, servers=SERVERS) as real:
            rows += _turns(durability.value, *run_loop(_alternate(noop, real, options)))
        with rig("supervisor", durability, servers=SERVERS) as real:
            rows += _steps(durability.value, run_loop(_continue(real, options)))
    return rows


async def _alternate(noop: Rig, real: Rig, options: Options) -> tuple[list[Round], list[Round], list[float]]:
    noops, reals, latencies = [], [], []
    for _ in range(options.rounds):
        noops.append(await measure(noop, options, 1))
        reals.append(await measure(real, options, 1))
        latencies.append(await _latency(real, options))
    return noops, reals, latencies


async def _latency(on: Rig, options: Options) -> float:
    async with requests(on) as requester:
        load = await Load.start(requester, on.topology.subjects)
        await load.for_turns(1, _WARM_UP_TURNS)
        span = await load.for_turns(1, options.latency_turns)
        await until_quiet(requester, on.topology)
        return statistics.median(span.latencies_ms)


async def _continue(on: Rig, options: Options) -> list[_Steps]:
    found = []
    async with requests(on) as requester:
        roles = await Roles.start(requester, on.topology, SESSIONS, real=True)
        for _ in range(options.rounds):
            before, done = on.cpu(), roles.done
            span = await roles.for_seconds(options.warm_up_s, options.seconds)
            await until_quiet(requester, on.topology)
            found.append(_Steps(span, on.cpu().per_turn_us(before, (roles.done - done) * STEPS)))
    return found


def _turns(name: str, noops: Sequence[Round], reals: Sequence[Round], latencies: Sequence[float]) -> list[Row]:
    ceiling, cpu = f"{name}: no-op", f"{name}: no-op CPU, all servers"
    return [
        median_row(NAME, ceiling, [r.span.per_second for r in noops], "turns/s"),
        median_row(NAME, f"{name}: validation", [r.span.per_second for r in reals], "turns/s", ceiling=ceiling),
        median_row(NAME, f"{name}: one turn to its verdict", latencies, "ms"),
        median_row(NAME, cpu, [r.cpu.server for r in noops], "µs/turn"),
        median_row(NAME, f"{name}: CPU, all servers", [r.cpu.server for r in reals], "µs/turn", ceiling=cpu),
        median_row(NAME, f"{name}: CPU, validation", [r.cpu.worker for r in reals], "µs/turn"),
    ]


def _steps(name: str, rounds: Sequence[_Steps]) -> list[Row]:
    return [
        median_row(NAME, f"{name}: steps", [r.span.per_second * STEPS for r in rounds], "steps/s"),
        median_row(NAME, f"{name}: step CPU, all servers", [r.cpu.server for r in rounds], "µs/step"),
        median_row(NAME, f"{name}: step CPU, supervisor", [r.cpu.worker for r in rounds], "µs/step"),
    ]
