"""Continuations of objectives with a runner that reports at once: how many a second, what they cost, how fast the next.

A continuation is one role run here: it is claimed, reported, and the next one offered, which moves the state twice. The
supervisor and a no-op that offers the next role run without a state take turns round by round.

The time to the next dispatch is from the publish of a result until the next offer is stored, by the server's clock,
with one objective under way whose agent works for a moment. It is compared with a round trip of the same server in the
same moment: a message of a result's size, published and confirmed while the agent works.
"""

import statistics
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from bench.load import Span
from bench.options import Options
from bench.rig import Cpu, Rig, requests, rig, until_quiet
from bench.roles import Roles
from bench.rows import Row, Target, median_row, paired
from turngate.process import run as run_loop
from turngate_contracts.topology import Durability

NAME: Final = "supervisor"
SESSIONS: Final = 64
STEPS: Final = 2
"""How often one continuation moves the state: by its claim and by its result."""

AGENT_S: Final = 0.01
"""How long an agent works, where the next dispatch is timed."""

_STEP_MS: Final = Target(2.0)
_ROUND_TRIPS: Final = Target(6.0)
_WARM_UP: Final = 20


class _Round(Struct, frozen=True):
    span: Span
    cpu: Cpu


class _Block(Struct, frozen=True):
    """Medians of one short stretch with one objective, in ms."""

    dispatched: float
    had: float
    trip: float


def run(options: Options) -> list[Row]:
    """Measure both durabilities."""
    rows = []
    for durability in Durability:
        with rig("noop-supervisor", durability) as noop, rig("supervisor", durability) as real:
            rows += _rates(durability.value, *run_loop(_alternate(noop, real, options)))
            rows += _latencies(durability.value, *run_loop(_one_by_one(noop, real, options)))
    return rows


async def _alternate(noop: Rig, real: Rig, options: Options) -> tuple[list[_Round], list[_Round]]:
    rounds: dict[str, list[_Round]] = {noop.kind: [], real.kind: []}
    for _ in range(options.rounds):
        for on in (noop, real):
            async with requests(on) as requester:
                roles = await Roles.start(requester, on.topology, SESSIONS, real=on is real)
                before, done = on.cpu(), roles.done
                span = await roles.for_seconds(options.warm_up_s, options.seconds)
                await until_quiet(requester, on.topology)
                rounds[on.kind].append(_Round(span, on.cpu().per_turn_us(before, roles.done - done)))
    return rounds[noop.kind], rounds[real.kind]


async def _one_by_one(noop: Rig, real: Rig, options: Options) -> tuple[list[_Block], list[_Block]]:
    blocks: dict[str, list[_Block]] = {noop.kind: [], real.kind: []}
    for _ in range(options.latency_rounds):
        for on in (noop, real):
            async with requests(on) as requester:
                roles = await Roles.start(requester, on.topology, 1, real=on is real)
                await roles.for_continuations(_WARM_UP)
                span = await roles.for_continuations(options.latency_turns, AGENT_S)
                times = (roles.dispatched_ms, span.latencies_ms, roles.trips_ms)
                blocks[on.kind].append(_Block(*map(statistics.median, times)))
                await until_quiet(requester, on.topology)
    return blocks[noop.kind], blocks[real.kind]


def _rates(name: str, noops: Sequence[_Round], reals: Sequence[_Round]) -> list[Row]:
    slow, fast = [r.span.per_second for r in reals], [r.span.per_second for r in noops]
    cpu = f"{name}: supervisor CPU,"
    step = [r.cpu.total / 1000 / STEPS for r in reals]
    note = f"{SESSIONS} objectives"
    return [
        median_row(NAME, f"{name}: no-op", fast, "continuations/s", note=note),
        median_row(NAME, f"{name}: supervisor", slow, "continuations/s", note=note, ceiling=f"{name}: no-op"),
        median_row(NAME, f"{name}: supervisor / no-op", paired(slow, fast)),
        median_row(NAME, f"{name}: no-op CPU, all", [r.cpu.total for r in noops], "µs/continuation"),
        median_row(NAME, f"{cpu} worker", [r.cpu.worker for r in reals], "µs/continuation"),
        median_row(NAME, f"{cpu} nats-server", [r.cpu.server for r in reals], "µs/continuation"),
        median_row(NAME, f"{cpu} runner", [r.cpu.client for r in reals], "µs/continuation"),
        median_row(NAME, f"{cpu} all, by step", step, "ms/step", _STEP_MS),
    ]


def _latencies(name: str, noops: Sequence[_Block], reals: Sequence[_Block]) -> list[Row]:
    what, had = f"{name}: result to next dispatch", f"{name}: result to the runner has the next"
    in_trips = [paired([b.dispatched for b in blocks], [b.trip for b in blocks]) for blocks in (noops, reals)]
    return [
        median_row(NAME, f"{name}: round trip of the server", [b.trip for b in reals], "ms"),
        median_row(NAME, f"{had}, no-op", [b.had for b in noops], "ms"),
        median_row(NAME, f"{had}, supervisor", [b.had for b in reals], "ms", ceiling=f"{had}, no-op"),
        median_row(NAME, f"{what}, no-op", [b.dispatched for b in noops], "ms"),
        median_row(NAME, f"{what}, supervisor", [b.dispatched for b in reals], "ms", ceiling=f"{what}, no-op"),
        median_row(NAME, f"{what} in round trips, no-op", in_trips[0], "round trips"),
        median_row(NAME, f"{what} in round trips, supervisor", in_trips[1], "round trips", _ROUND_TRIPS),
    ]
