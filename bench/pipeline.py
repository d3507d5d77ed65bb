"""Turns a second at 256 in flight: the validation service beside a no-op on the same client, and what a turn costs.

The two take turns round by round, so that a busy minute of the machine falls on both; the ratio is the median over the
pairs. CPU is read when the queues are quiet again, so the reconciler's and the events' share is in it.
"""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from bench.load import Load, Span
from bench.loop import run as run_loop
from bench.options import Options
from bench.rig import Cpu, Rig, requests, rig, until_quiet
from bench.rows import Row, Target, median_row, paired
from turngate_contracts.topology import Durability

NAME: Final = "pipeline"
IN_FLIGHT: Final = 256

_RATIO: Final = Target(0.2, at_least=True)
_WORKER_CPU: Final = Target(130, required=False)
_TOTAL_CPU: Final = Target(300, required=False)


class _Mix(Struct, frozen=True):
    name: str
    durability: Durability
    turns_a_session: int

    @property
    def counts(self) -> bool:
        """Whether the mix has targets; strict durability is shown beside."""
        return self.durability is Durability.RELAXED


class _Round(Struct, frozen=True):
    span: Span
    cpu: Cpu


_MIXES: Final = (
    _Mix("relaxed, new sessions", Durability.RELAXED, 1),
    _Mix("relaxed, 10 turns a session", Durability.RELAXED, 10),
    _Mix("strict, new sessions", Durability.STRICT, 1),
)


def run(options: Options) -> list[Row]:
    """Measure each mix on fresh servers."""
    rows = []
    for mix in _MIXES:
        with rig("noop", mix.durability) as noop, rig("validation", mix.durability) as real:
            rounds = run_loop(_alternate(noop, real, mix, options))
        rows += _rows(mix, *rounds)
    return rows


async def _alternate(noop: Rig, real: Rig, mix: _Mix, options: Options) -> tuple[list[_Round], list[_Round]]:
    noops, reals = [], []
    for _ in range(options.rounds):
        noops.append(await _round(noop, mix, options))
        reals.append(await _round(real, mix, options))
    return noops, reals


async def _round(on: Rig, mix: _Mix, options: Options) -> _Round:
    async with requests(on) as requester:
        load = await Load.start(requester, on.topology.subjects, mix.turns_a_session)
        before = on.cpu()
        span = await load.for_seconds(IN_FLIGHT, options.warm_up_s, options.seconds)
        await until_quiet(requester, on.topology)
        return _Round(span, on.cpu().per_turn_us(before, load.done))


def _rows(mix: _Mix, noops: Sequence[_Round], reals: Sequence[_Round]) -> list[Row]:
    slow, fast = [r.span.per_second for r in reals], [r.span.per_second for r in noops]
    ratio = _RATIO if mix.counts else None
    return [
        median_row(NAME, f"{mix.name}: no-op", fast, "turns/s"),
        median_row(NAME, f"{mix.name}: validation", slow, "turns/s"),
        median_row(NAME, f"{mix.name}: validation / no-op", paired(slow, fast), "", ratio, "aim 0.3" if ratio else ""),
        *_cpu_rows(f"{mix.name}: no-op CPU,", noops, aims=False),
        *_cpu_rows(f"{mix.name}: validation CPU,", reals, aims=mix.counts),
    ]


def _cpu_rows(name: str, rounds: Sequence[_Round], *, aims: bool) -> list[Row]:
    return [
        median_row(NAME, f"{name} worker", [r.cpu.worker for r in rounds], "µs/turn", _WORKER_CPU if aims else None),
        median_row(NAME, f"{name} nats-server", [r.cpu.server for r in rounds], "µs/turn"),
        median_row(NAME, f"{name} load client", [r.cpu.client for r in rounds], "µs/turn"),
        median_row(NAME, f"{name} all", [r.cpu.total for r in rounds], "µs/turn", _TOTAL_CPU if aims else None),
    ]
