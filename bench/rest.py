"""Objectives at rest must cost nothing: what a step on one costs among few and among many, and what the many hold.

Two systems, each with a server of its own, take turns round by round; in one there are few objectives that rest, in the
other many. Processor time is compared, because it is steadier than time by the clock on a machine that others share.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

from bench.machine import rss_mib
from bench.options import Options
from bench.rig import Rig, requests, rig, until_quiet
from bench.roles import POOL, Roles
from bench.rows import Row, Target, median_row, paired
from bench.supervisor import STEPS
from turngate.jetstream.request import Requester
from turngate.jetstream.store import Event, Store
from turngate.process import run as run_loop
from turngate_contracts import codec
from turngate_contracts.messages import SCHEMAS
from turngate_contracts.subjects import Subjects
from turngate_contracts.topology import Durability
from turngate_protocol.esm.continuation import advance
from turngate_protocol.esm.inputs import Create, Pause
from turngate_protocol.esm.state import EsmState

NAME: Final = "rest"
FEW: Final = 20

_RATIO: Final = Target(1.3)
_GROWTH: Final = Target(24.0)
_TEXT: Final = "Make every test of the parser pass. " * 50
_AT_ONCE: Final = 64


def run(options: Options) -> list[Row]:
    """Measure both systems."""
    with rig("supervisor", Durability.RELAXED) as few, rig("supervisor", Durability.RELAXED) as many:
        costs, grown = run_loop(_compare(few, many, options))
    name = f"{options.resting:,} objectives at rest"
    return [
        median_row(NAME, f"{FEW} objectives at rest: CPU", costs[0], "ms/step"),
        median_row(NAME, f"{name}: CPU", costs[1], "ms/step", ceiling=f"{FEW} objectives at rest: CPU"),
        median_row(NAME, f"{name}: CPU / among {FEW}", paired(costs[1], costs[0]), "", _RATIO),
        Row(NAME, f"{name}: growth of the supervisor", grown, "MiB RSS", target=_GROWTH),
    ]


async def _compare(few: Rig, many: Rig, options: Options) -> tuple[Sequence[Sequence[float]], float]:
    costs: tuple[list[float], list[float]] = ([], [])
    async with requests(few) as to_few, requests(many) as to_many:
        pairs = ((few, to_few), (many, to_many))
        for on, requester in pairs:
            await fill_objectives(requester, on.topology.subjects, FEW)
            await _cost(on, requester, options.rest_steps)
        before = rss_mib(many.worker_pid)
        await fill_objectives(to_many, many.topology.subjects, options.resting)
        await until_quiet(to_many, many.topology)
        for _ in range(options.rounds):
            for (on, requester), found in zip(pairs, costs, strict=True):
                found.append(await _cost(on, requester, options.rest_steps))
        return costs, rss_mib(many.worker_pid) - before


async def _cost(on: Rig, requester: Requester, steps: int) -> float:
    """Return the processor time of a step on one objective, in ms; the client's own is not counted."""
    roles = await Roles.start(requester, on.topology, 1, real=True)
    before = on.cpu()
    await roles.for_continuations(steps // STEPS)
    await until_quiet(requester, on.topology)
    used = on.cpu().per_turn_us(before, steps)
    await roles.stop()
    return (used.worker + used.server) / 1000


async def fill_objectives(requester: Requester, subjects: Subjects, count: int) -> None:
    """Put paused objectives into the bucket, as long ago created."""
    store = Store(requester, subjects, "objectives", SCHEMAS[EsmState])
    slots = asyncio.Semaphore(_AT_ONCE)

    async def put(number: int) -> None:
        session = f"rest-{count}-{number}"
        state = advance(EsmState(session), Create(text=_TEXT, esm_id=f"e{number}", pool=POOL), 1)
        state = advance(state, Pause(), 2)
        async with slots:
            await store.save(session, codec.encode(state), 0, Event("objective.paused", 2))

    await asyncio.gather(*(put(number) for number in range(count)))
