"""What strict durability costs: turns whose states are saved one at a time, many at once, and grouped as they are.

Where the server syncs each write to the disk, a save made alone waits for a sync. The validation service groups its
saves, so that many share one. The same service without that takes turns with it, round by round, once with one save
outstanding and once with any number; bare saves of 4 KiB in the same three ways are shown beside them.
"""

import asyncio
import contextlib
import secrets
import time
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from bench.load import FIXTURES
from bench.options import Options
from bench.pipeline import IN_FLIGHT, measure
from bench.rig import BenchmarkFailed, Rig, requests, rig, until_quiet
from bench.rows import Row, Target, median_row, paired
from turngate.jetstream.request import Requester
from turngate.jetstream.store import Event, Store
from turngate.process import run as run_loop
from turngate_contracts.messages import SCHEMAS
from turngate_contracts.topology import Durability
from turngate_protocol.report.session import SessionTurns

NAME: Final = "strict"

_ONE: Final = Target(4.0, at_least=True)
_MANY: Final = Target(2.0, at_least=True)
_KINDS: Final = ("one-by-one", "pipelined", "validation")


class _Round(Struct, frozen=True):
    """What a round reached, a second."""

    single: float
    pipelined: float
    grouped: float


def run(options: Options) -> list[Row]:
    """Measure turns and saves, each in the three ways in turn."""
    with contextlib.ExitStack() as stack:
        rigs = [stack.enter_context(rig(kind, Durability.STRICT)) for kind in _KINDS]
        turns = run_loop(_turns(rigs, options))
        saves = run_loop(_all_saves(rigs[-1], options))
    return [*_rows("turns", "turns/s", turns), *_rows("saves", "saves/s", saves)]


def _rows(what: str, unit: str, rounds: Sequence[_Round]) -> list[Row]:
    single, pipelined, grouped = [[getattr(r, name) for r in rounds] for name in _Round.__struct_fields__]
    ceiling = f"{what}, saves grouped"
    return [
        median_row(NAME, f"{what}, one save at a time", single, unit, ceiling=ceiling),
        median_row(NAME, f"{what}, saves at once", pipelined, unit, ceiling=ceiling),
        median_row(NAME, ceiling, grouped, unit),
        median_row(NAME, f"{what}: grouped / one at a time", paired(grouped, single), "", _ONE),
        median_row(NAME, f"{what}: grouped / at once", paired(grouped, pipelined), "", _MANY),
    ]


async def _turns(rigs: Sequence[Rig], options: Options) -> list[_Round]:
    rounds = []
    for _ in range(options.rounds):
        reached = [await measure(on, options, 1) for on in rigs]
        rounds.append(_Round(*(each.span.per_second for each in reached)))
    return rounds


async def _all_saves(on: Rig, options: Options) -> list[_Round]:
    rounds = []
    async with requests(on) as requester:
        for _ in range(options.rounds):
            single = await _saves(on, requester, options.seconds, 1)
            pipelined = await _saves(on, requester, options.seconds, IN_FLIGHT)
            grouped = await _saves(on, requester, options.seconds, IN_FLIGHT, grouped=True)
            rounds.append(_Round(single, pipelined, grouped))
    return rounds


async def _saves(on: Rig, requester: Requester, seconds: float, in_flight: int, *, grouped: bool = False) -> float:
    """Return how many saves a second are confirmed, each of a key of its own."""
    store = Store(requester, on.topology.subjects, "turns", SCHEMAS[SessionTurns], grouped=grouped)
    value = (FIXTURES / "report_4k.json").read_bytes()
    prefix, began = secrets.token_hex(4), time.perf_counter()
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    sent = saved = 0

    def save() -> None:
        nonlocal sent
        sent += 1
        store.save_nowait(f"{prefix}-{sent}", value, 0, Event("turn.report_accepted", 1), on_saved)

    def on_saved(result: int | Exception) -> None:
        nonlocal saved
        if isinstance(result, Exception):
            if not done.done():
                done.set_exception(BenchmarkFailed(f"a save failed: {result}"))
            return
        saved += 1
        if time.perf_counter() - began < seconds:
            save()
        elif saved == sent:
            done.set_result(None)

    for _ in range(in_flight):
        save()
    await done
    per_second = saved / (time.perf_counter() - began)
    await until_quiet(requester, on.topology)
    return per_second
