"""A system with a past must be as fast as an empty one: turns among very many sessions and objectives, and among none.

Two systems, each with a server of its own, take turns round by round; one holds old sessions and objectives. What a
step on an objective costs among many is the benchmark `rest`.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from bench.load import Load
from bench.options import Options
from bench.pipeline import IN_FLIGHT
from bench.rest import fill_objectives
from bench.rig import Cpu, Rig, requests, rig, until_quiet
from bench.rows import Row, Target, median_row, paired
from turngate.jetstream.request import Requester
from turngate.jetstream.store import Event, Store
from turngate.process import run as run_loop
from turngate_contracts import codec
from turngate_contracts.messages import SCHEMAS
from turngate_contracts.subjects import Subjects
from turngate_contracts.topology import OBJECTIVES_RECONCILER, Durability
from turngate_protocol.report.session import SessionTurns
from turngate_protocol.report.turn import Attempt, GateRules, Judged, submit

NAME: Final = "filled"

_CPU: Final = Target(1.3)
_RATE: Final = Target(0.77, at_least=True)
_REPORT: Final = b'{"task_status":"completed","headline":"Done","blocks":[{"type":"change","id":"a","summary":"s"}]}'
_AT_ONCE: Final = 256


class _Round(Struct, frozen=True):
    per_second: float
    cpu: Cpu


def run(options: Options) -> list[Row]:
    """Measure both systems."""
    with rig("validation", Durability.RELAXED) as empty, rig("validation", Durability.RELAXED) as full:
        those, these = run_loop(_compare(empty, full, options))
    name = f"{options.filled:,} sessions, {options.resting:,} objectives"
    rates = paired([r.per_second for r in these], [r.per_second for r in those])
    costs = paired([r.cpu.total for r in these], [r.cpu.total for r in those])
    return [
        median_row(NAME, "empty: turns", [r.per_second for r in those], "turns/s"),
        median_row(NAME, f"{name}: turns", [r.per_second for r in these], "turns/s", ceiling="empty: turns"),
        median_row(NAME, f"{name}: turns / empty", rates, "", _RATE),
        median_row(NAME, "empty: CPU, all", [r.cpu.total for r in those], "µs/turn"),
        median_row(NAME, f"{name}: CPU, worker", [r.cpu.worker for r in these], "µs/turn"),
        median_row(NAME, f"{name}: CPU, nats-server", [r.cpu.server for r in these], "µs/turn"),
        median_row(NAME, f"{name}: CPU, all", [r.cpu.total for r in these], "µs/turn", ceiling="empty: CPU, all"),
        median_row(NAME, f"{name}: CPU / empty", costs, "", _CPU),
    ]


async def _compare(empty: Rig, full: Rig, options: Options) -> tuple[Sequence[_Round], Sequence[_Round]]:
    found: tuple[list[_Round], list[_Round]] = ([], [])
    async with requests(full) as requester:
        await _fill_sessions(requester, full.topology.subjects, options.filled)
        await fill_objectives(requester, full.topology.subjects, options.resting)
        await until_quiet(requester, full.topology, OBJECTIVES_RECONCILER)
    for on in (empty, full):
        await _round(on, options)
    for _ in range(options.rounds):
        for on, rounds in zip((empty, full), found, strict=True):
            rounds.append(await _round(on, options))
    return found


async def _round(on: Rig, options: Options) -> _Round:
    async with requests(on) as requester:
        load = await Load.start(requester, on.topology.subjects)
        before = on.cpu()
        span = await load.for_seconds(IN_FLIGHT, options.warm_up_s, options.seconds)
        await until_quiet(requester, on.topology, OBJECTIVES_RECONCILER)
        return _Round(span.per_second, on.cpu().per_turn_us(before, load.done))


async def _fill_sessions(requester: Requester, subjects: Subjects, count: int) -> None:
    """Put sessions into the bucket that had one turn, long ago."""
    store = Store(requester, subjects, "turns", SCHEMAS[SessionTurns])
    slots = asyncio.Semaphore(_AT_ONCE)

    async def put(number: int) -> None:
        judged = submit(None, Attempt(f"old-{number}", "bench", "bench", 1, 1, _REPORT), GateRules(), 1)
        assert isinstance(judged, Judged)
        assert judged.state is not None
        async with slots:
            await store.save(f"old-{number}", codec.encode(judged.state), 0, Event("turn.report_accepted", 1))

    for start in range(0, count, 10_000):
        await asyncio.gather(*(put(number) for number in range(start, min(count, start + 10_000))))
