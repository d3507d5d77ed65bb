"""What strict durability costs: saves of 4 KiB one at a time, many at once, and grouped, and turns beside them.

Where the server syncs each write to the disk, a save made alone waits for a sync. The validation service groups its
saves, so that many share one; turns a second are compared with the saves a second that the other ways reach.
"""

import asyncio
import secrets
import time
from typing import Final

from msgspec import Struct

from bench.load import FIXTURES, Load
from bench.loop import run as run_loop
from bench.options import Options
from bench.pipeline import IN_FLIGHT
from bench.rig import BenchmarkFailed, Rig, requests, rig, until_quiet
from bench.rows import Row, Target, median_row, paired
from turngate.jetstream.request import Requester
from turngate.jetstream.store import Event, Store
from turngate_contracts.messages import SCHEMAS
from turngate_contracts.topology import Durability
from turngate_protocol.report.session import SessionTurns

NAME: Final = "strict"

_ONE: Final = Target(4.0, at_least=True)
_MANY: Final = Target(2.0, at_least=True)


class _Round(Struct, frozen=True):
    """What a round reached, a second."""

    single: float
    pipelined: float
    grouped: float
    turns: float


def run(options: Options) -> list[Row]:
    """Measure all of them on one server, one after the other, round by round."""
    with rig("validation", Durability.STRICT) as on:
        rounds = run_loop(_measure(on, options))
    single, pipelined = [r.single for r in rounds], [r.pipelined for r in rounds]
    grouped, turns = [r.grouped for r in rounds], [r.turns for r in rounds]
    ceiling = f"saves, {IN_FLIGHT} at once, grouped"
    return [
        median_row(NAME, "saves one at a time", single, "saves/s", ceiling=ceiling),
        median_row(NAME, f"saves, {IN_FLIGHT} at once", pipelined, "saves/s", ceiling=ceiling),
        median_row(NAME, ceiling, grouped, "saves/s"),
        median_row(NAME, "turns", turns, "turns/s", ceiling=ceiling),
        median_row(NAME, "grouped saves / saves one at a time", paired(grouped, single), "", _ONE),
        median_row(NAME, "grouped saves / saves at once", paired(grouped, pipelined), "", _MANY),
        median_row(NAME, "turns / saves one at a time", paired(turns, single), "", _ONE),
        median_row(NAME, "turns / saves at once", paired(turns, pipelined), "", _MANY),
    ]


async def _measure(on: Rig, options: Options) -> list[_Round]:
    rounds = []
    async with requests(on) as requester:
        for _ in range(options.rounds):
            single = await _saves(on, requester, options.seconds, 1)
            pipelined = await _saves(on, requester, options.seconds, IN_FLIGHT)
            grouped = await _saves(on, requester, options.seconds, IN_FLIGHT, grouped=True)
            load = await Load.start(requester, on.topology.subjects)
            span = await load.for_seconds(IN_FLIGHT, options.warm_up_s, options.seconds)
            await until_quiet(requester, on.topology)
            rounds.append(_Round(single, pipelined, grouped, span.per_second))
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
