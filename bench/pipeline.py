"""Turns a second at 256 in flight: the validation service beside a no-op on the same client, and what a turn costs.

They take turns round by round, so that a busy minute of the machine falls on all; the ratio is the median over the
pairs. CPU is read when the queues are quiet again, so the reconciler's and the events' share is in it.

The no-op decides nothing, but loses nothing either: it stores an event for each turn, which the runner hears, and acks
the turn when that is stored. The bare one stores nothing, so a turn's outcome dies with its process; what it reaches is
shown beside it.

The mixes with a target have 4 KiB reports that ask nothing. Strict durability, and reports of 11 KiB that each leave a
card in the inbox, are shown beside them.
"""

import contextlib
import time
from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from bench.load import Envelope, Load, Span
from bench.options import Options
from bench.rig import Cpu, Rig, requests, rig, until_quiet
from bench.rows import Row, Target, median_row, paired
from turngate.process import run as run_loop
from turngate_contracts.topology import Durability

NAME: Final = "pipeline"
IN_FLIGHT: Final = 256
_KINDS: Final = ("bare", "noop", "validation")

_RATIO: Final = Target(0.3, at_least=True)
_NOOP_CPU: Final = 19
"""What the no-op's worker took, in µs a turn, on the machine on which the targets for CPU were set."""
_WORKER_CPU: Final = Target(130)
_TOTAL_CPU: Final = Target(300)


class _Mix(Struct, frozen=True):
    name: str
    durability: Durability
    turns_a_session: int
    report: str = "report_4k.json"
    has_targets: bool = False


class Round(Struct, frozen=True):
    """A round; `sustained` is turns a second until the last effect, which the reconciler may have left for later."""

    span: Span
    sustained: float
    cpu: Cpu


_MIXES: Final = (
    _Mix("relaxed, new sessions", Durability.RELAXED, 1, has_targets=True),
    _Mix("relaxed, 10 turns a session", Durability.RELAXED, 10, has_targets=True),
    _Mix("relaxed, new sessions with cards", Durability.RELAXED, 1, "report_11k.json"),
    _Mix("strict, new sessions", Durability.STRICT, 1),
)


def run(options: Options) -> list[Row]:
    """Measure each mix on fresh servers."""
    rows = []
    for mix in _MIXES:
        with contextlib.ExitStack() as stack:
            rigs = [stack.enter_context(rig(kind, mix.durability)) for kind in _KINDS]
            rounds = run_loop(alternate(rigs, options, mix.turns_a_session, mix.report))
        rows += _rows(mix, *rounds)
    return rows


async def alternate(
    rigs: Sequence[Rig], options: Options, turns_a_session: int, report: str = "report_4k.json"
) -> list[list[Round]]:
    """Measure on all rigs in turn, as often as there are rounds, and return each one's."""
    rounds: list[list[Round]] = [[] for _ in rigs]
    for _ in range(options.rounds):
        for on, kept in zip(rigs, rounds, strict=True):
            kept.append(await measure(on, options, turns_a_session, report))
    return rounds


async def measure(
    on: Rig, options: Options, turns_a_session: int, report: str = "report_4k.json", envelope: Envelope | None = None
) -> Round:
    """Measure one round on a rig.

    Args:
        on: the service and its server.
        options: how long.
        turns_a_session: how many turns each session has.
        report: the fixture that every turn reports.
        envelope: how the turns are published, where not as runners do.
    """
    async with requests(on) as requester:
        load = await Load.start(requester, on.topology.subjects, turns_a_session, report, envelope)
        before, began = on.cpu(), time.perf_counter()
        span = await load.for_seconds(IN_FLIGHT, options.warm_up_s, options.seconds)
        await until_quiet(requester, on.topology)
        sustained = load.done / (time.perf_counter() - began)
        return Round(span, sustained, on.cpu().per_turn_us(before, load.done))


def _rows(mix: _Mix, bares: Sequence[Round], noops: Sequence[Round], reals: Sequence[Round]) -> list[Row]:
    bare = [r.span.per_second for r in bares]
    slow, fast = [r.span.per_second for r in reals], [r.span.per_second for r in noops]
    ratio = _RATIO if mix.has_targets else None
    name = mix.name
    sustained, ceiling = [r.sustained for r in reals], f"{name}: no-op"
    return [
        median_row(NAME, f"{name}: bare", bare, "turns/s"),
        median_row(NAME, ceiling, fast, "turns/s"),
        median_row(NAME, f"{name}: validation", slow, "turns/s", ceiling=ceiling),
        median_row(NAME, f"{name}: validation until all is done", sustained, "turns/s", ceiling=ceiling),
        median_row(NAME, f"{name}: validation / no-op", paired(slow, fast), "", ratio, "aim 0.5" if ratio else ""),
        median_row(NAME, f"{name}: validation / bare", paired(slow, bare)),
        median_row(NAME, f"{name}: bare CPU, all", [r.cpu.total for r in bares], "µs/turn"),
        *cpu_rows(NAME, name, noops, reals, has_targets=mix.has_targets),
    ]


def cpu_rows(
    benchmark: str, mix: str, noops: Sequence[Round], reals: Sequence[Round], *, has_targets: bool
) -> list[Row]:
    """Return what a turn costs, as measured, and as it would be where the no-op costs what it did with the targets.

    A processor's speed differs between machines, and from second to second on one that others share; what a turn costs
    in no-ops of the same round does not.
    """
    cpu, unit, scale = f"{mix}: validation CPU,", "µs/turn", f"scaled to a no-op of {_NOOP_CPU} µs"
    worker, total = [r.cpu.worker for r in reals], [r.cpu.total for r in reals]
    noop = [r.cpu.worker for r in noops]
    worker_aim, total_aim = (_aim(_WORKER_CPU), _aim(_TOTAL_CPU)) if has_targets else (None, None)
    rows = [
        median_row(benchmark, f"{mix}: no-op CPU, worker", noop, unit),
        median_row(benchmark, f"{mix}: no-op CPU, nats-server", [r.cpu.server for r in noops], unit),
        median_row(benchmark, f"{mix}: no-op CPU, load client", [r.cpu.client for r in noops], unit),
        median_row(benchmark, f"{cpu} worker", worker, unit, worker_aim, ceiling=f"{mix}: no-op CPU, worker"),
        median_row(
            benchmark,
            f"{cpu} nats-server",
            [r.cpu.server for r in reals],
            unit,
            ceiling=f"{mix}: no-op CPU, nats-server",
        ),
        median_row(benchmark, f"{cpu} load client", [r.cpu.client for r in reals], unit),
        median_row(benchmark, f"{cpu} all", total, unit, total_aim),
    ]
    if has_targets:
        rows += [
            median_row(benchmark, f"{cpu} worker, {scale}", _scaled(worker, noop), unit, _WORKER_CPU),
            median_row(benchmark, f"{cpu} all, {scale}", _scaled(total, noop), unit, _TOTAL_CPU),
        ]
    return rows


def _scaled(figures: Sequence[float], noop: Sequence[float]) -> list[float]:
    return [ratio * _NOOP_CPU for ratio in paired(figures, noop)]


def _aim(target: Target) -> Target:
    return replace(target, required=False)
