"""From a save to its event in the hands of subscribers, and how many events a second they take.

The subscriber is the SDK's: it sees every revision once and fills gaps from the stream. The no-op is a message of the
same size on a plain subject to a plain listener: stored nowhere, and lost when the listener is slow.
"""

import asyncio
import contextlib
import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from bench.load import FIXTURES, SILENCE_S
from bench.options import Options
from bench.rig import BenchmarkFailed, Rig, requests, rig
from bench.rows import Row, median_row, paired
from turngate.jetstream.events import EventReader
from turngate.jetstream.request import Requester
from turngate.jetstream.store import Event, Store
from turngate.process import run as run_loop
from turngate_contracts.messages import SCHEMAS
from turngate_contracts.topology import Durability
from turngate_protocol.report.session import SessionTurns

NAME: Final = "events"

_SUBSCRIBERS: Final = (1, 8)
_AT_ONCE: Final = 64
_WARM_UP: Final = 20
_PLAIN: Final = "bench.plain"

Write = Callable[[str], Awaitable[None]]


def run(options: Options) -> list[Row]:
    """Measure one subscriber and several on one server; nothing but the server is needed."""
    rows: list[Row] = []
    with rig("idle", Durability.RELAXED) as on:
        for count in _SUBSCRIBERS:
            rows += _rows(count, *run_loop(_measure(on, count, options)))
    return rows


class Arrivals:
    """What arrived at each of some subscribers; somebody waits until all of them have so many."""

    def __init__(self, subscribers: int) -> None:
        self._counts = [0] * subscribers
        self._wanted = 0
        self._all = asyncio.Event()

    def arrived(self, subscriber: int) -> None:
        """Count one."""
        self._counts[subscriber] += 1
        if min(self._counts) >= self._wanted:
            self._all.set()

    async def more(self, count: int, write: Callable[[], Awaitable[None]]) -> float:
        """Write, and return how many seconds it took until each has that many more.

        Raises:
            BenchmarkFailed: they had not in time.
        """
        self._wanted = min(self._counts) + count
        self._all.clear()
        began = time.perf_counter()
        await write()
        try:
            async with asyncio.timeout(SILENCE_S):
                await self._all.wait()
        except TimeoutError:
            raise BenchmarkFailed(f"not every subscriber had {count} events within {SILENCE_S:g} s") from None
        return time.perf_counter() - began


async def _measure(
    on: Rig, count: int, options: Options
) -> tuple[Sequence[Sequence[float]], Sequence[Sequence[float]]]:
    body = (FIXTURES / "report_4k.json").read_bytes()
    many = options.latency_turns * 20
    async with requests(on) as requester, requests(on) as reading, contextlib.AsyncExitStack() as stack:
        plain, whole = Arrivals(count), Arrivals(count)
        info = await reading.api(f"STREAM.INFO.{on.topology.subjects.stream('events')}")
        after = int(info["state"]["last_seq"])
        for number in range(count):
            await _listen(reading, plain, number)
            following = asyncio.create_task(_follow(on, reading, whole, number, after))
            stack.push_async_callback(_ended, following)
        store = Store(requester, on.topology.subjects, "turns", SCHEMAS[SessionTurns])

        async def send(_key: str) -> None:
            requester.connection.send(_PLAIN, body)

        async def save(key: str) -> None:
            await store.save(key, body, 0, Event("turn.report_accepted", 1))

        # The first event shows that all of them follow.
        await whole.more(1, lambda: save(f"e-{secrets.token_hex(6)}"))
        latencies: tuple[list[float], list[float]] = ([], [])
        for number in range(options.latency_turns * 2 + _WARM_UP):
            for arrivals, write, found in zip((plain, whole), (send, save), latencies, strict=True):
                took = await _one(arrivals, write)
                if number >= _WARM_UP:
                    found.append(took * 1000)
        rates: tuple[list[float], list[float]] = ([], [])
        for _ in range(options.rounds):
            for arrivals, write, found in zip((plain, whole), (send, save), rates, strict=True):
                found.append(many / await _many(arrivals, write, many))
    return latencies, rates


async def _one(arrivals: Arrivals, write: Write) -> float:
    return await arrivals.more(1, lambda: write(f"e-{secrets.token_hex(6)}"))


async def _many(arrivals: Arrivals, write: Write, count: int) -> float:
    prefix = secrets.token_hex(4)

    async def some(slot: int) -> None:
        for number in range(slot, count, _AT_ONCE):
            await write(f"e-{prefix}-{number}")
            await asyncio.sleep(0)

    async def all_of_them() -> None:
        await asyncio.gather(*(some(slot) for slot in range(_AT_ONCE)))

    return await arrivals.more(count, all_of_them)


async def _listen(reading: Requester, arrivals: Arrivals, number: int) -> None:
    await reading.connection.listen(_PLAIN, lambda *_message: arrivals.arrived(number))
    await reading.connection.flush()


async def _follow(on: Rig, reading: Requester, arrivals: Arrivals, number: int, after: int) -> None:
    reader = EventReader(reading.connection, reading, on.topology.subjects)
    async with contextlib.aclosing(reader.follow(after)) as events:
        async for _ in events:
            arrivals.arrived(number)


async def _ended(task: "asyncio.Task[None]") -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def _rows(count: int, latencies: Sequence[Sequence[float]], rates: Sequence[Sequence[float]]) -> list[Row]:
    name = f"{count} {'subscriber' if count == 1 else 'subscribers'}"
    one, many = f"{name}: plain message to each, no-op", f"{name}: plain messages, no-op"
    return [
        median_row(NAME, one, latencies[0], "ms"),
        median_row(NAME, f"{name}: save to its event at each", latencies[1], "ms", ceiling=one),
        median_row(NAME, many, rates[0], "events/s"),
        median_row(NAME, f"{name}: saves to their events", rates[1], "events/s", ceiling=many),
        median_row(NAME, f"{name}: saves to their events / no-op", paired(rates[1], rates[0])),
    ]
