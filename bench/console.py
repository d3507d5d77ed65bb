"""From a write to its appearance in open browsers, and what each browser costs the console.

A state is saved as services save it; every browser's stream tells of it; one browser then loads its page anew, which is
what a person sees. Browsers are sockets that read, the console is a process of its own.
"""

import asyncio
import contextlib
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from typing import Final

from bench.machine import cpu_s, rss_mib
from bench.options import Options
from bench.rig import BenchmarkFailed, Rig, requests, rig
from bench.rows import Row, Target, median_row
from turngate.jetstream.request import Requester
from turngate.jetstream.store import Event, Store
from turngate.process import run as run_loop
from turngate_contracts import codec
from turngate_contracts.messages import SCHEMAS
from turngate_contracts.topology import Durability
from turngate_protocol.cause import Cause
from turngate_protocol.report.session import SessionTurns, Turn

NAME: Final = "console"

_BROWSERS: Final = (1, 50)
_SHOWN: Final = Target(100.0)
_READY_S: Final = 30.0
_PARALLEL: Final = 32
_LAST: Final = "last"


def run(options: Options) -> list[Row]:
    """Measure with one browser and with many."""
    with rig("validation", Durability.RELAXED) as real, serving(real) as (port, pid):
        rows: list[Row] = []
        for browsers in _BROWSERS:
            rows += run_loop(_measure(real, port, pid, browsers, options))
    return rows


async def _measure(on: Rig, port: int, pid: int, count: int, options: Options) -> list[Row]:
    name = f"{count} {'browser' if count == 1 else 'browsers'}"
    async with requests(on) as requester, _browsers(port, count) as browsers:
        writer = _Writer(requester, on, f"b{count}")
        heard = await _hear(requester, on)
        stored, told, drawn = [], [], []
        for _ in range(options.latency_turns * 2):
            began = time.perf_counter()
            heard.clear()
            session = await writer.write("one")
            await heard.wait()
            stored.append((time.perf_counter() - began) * 1000)
            await asyncio.gather(*(browser.until(session) for browser in browsers))
            told.append((time.perf_counter() - began) * 1000)
            await browsers[0].load(f"/sessions/{session}")
            drawn.append((time.perf_counter() - began) * 1000)
        events = options.latency_turns * 20
        before, began = cpu_s(pid), time.perf_counter()
        reads = [asyncio.create_task(browser.until(writer.session(_LAST))) for browser in browsers]
        await writer.many(events)
        await writer.write(_LAST)
        await asyncio.gather(*reads)
        took, used = time.perf_counter() - began, cpu_s(pid) - before
    ceiling = f"{name}: write to a bare subscription, no-op"
    return [
        _latency(ceiling, stored),
        _latency(f"{name}: write to each browser's stream", told, ceiling=ceiling),
        _latency(f"{name}: write to the page drawn anew", drawn, _SHOWN, ceiling),
        Row(NAME, f"{name}: {events:,} events", events / took, "events/s"),
        Row(NAME, f"{name}: CPU of the console", used * 1e6 / events, "µs/event"),
        Row(NAME, f"{name}: console at end", rss_mib(pid), "MiB RSS"),
    ]


def _latency(name: str, values: list[float], target: Target | None = None, ceiling: str = "") -> Row:
    p99 = statistics.quantiles(values, n=100)[98]
    return median_row(NAME, name, values, "ms", target, note=f"p99 {p99:.1f} ms", ceiling=ceiling)


async def _hear(requester: Requester, on: Rig) -> asyncio.Event:
    """Return what is set when the writer's own connection hears an event: nobody can tell a browser earlier."""
    heard = asyncio.Event()
    await requester.connection.listen(on.topology.subjects.live(), lambda *_message: heard.set())
    await requester.connection.flush()
    return heard


class _Writer:
    """Saves states as validation does."""

    def __init__(self, requester: Requester, on: Rig, prefix: str) -> None:
        self._store = Store(requester, on.topology.subjects, "turns", SCHEMAS[SessionTurns])
        self._prefix = prefix
        self._revisions: dict[str, tuple[int, int]] = {}

    def session(self, name: str) -> str:
        return f"{self._prefix}-{name}"

    async def write(self, name: str) -> str:
        session = self.session(name)
        revision, turn = self._revisions.get(session, (0, 0))
        state = SessionTurns(session, "pool-1", Turn(turn + 1, 1, "runner-1"), Cause("turn.ended", "runner-1", 1))
        saved = await self._store.save(session, codec.encode(state), revision, Event("turn.ended", 1))
        self._revisions[session] = saved, turn + 1
        return session

    async def many(self, count: int) -> None:
        async def some(number: int) -> None:
            for _ in range(count // _PARALLEL):
                await self.write(f"w{number}")

        await asyncio.gather(*(some(number) for number in range(_PARALLEL)))


class _Browser:
    """A stream that is read, and a connection for pages."""

    def __init__(self, port: int, number: int) -> None:
        self._port = port
        # One address opens only so many streams, so these come from several.
        self._address = f"127.0.0.{2 + number // 10}"
        self._writers: list[asyncio.StreamWriter] = []

    async def open(self) -> None:
        self._events, writer = await self._connect()
        writer.write(b"GET /live HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n")
        await self._events.readuntil(b"event: status")
        self._pages, self._ask = await self._connect()

    async def until(self, session: str) -> None:
        """Read until the stream tells of a session, or has the page loaded anew."""
        wanted = f'"key":"{session}"'.encode()
        while True:
            line = await self._events.readuntil(b"\n")
            if wanted in line or b"event: reset" in line:
                return

    async def load(self, path: str) -> None:
        """Load what is inside of a page's main."""
        self._ask.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nTurngate-Fragment: main\r\n\r\n".encode())
        head = (await self._pages.readuntil(b"\r\n\r\n")).lower()
        if not head.startswith(b"http/1.1 200"):
            raise BenchmarkFailed(f"{path} was answered with {head[:40]!r}")
        length = next(line for line in head.split(b"\r\n") if line.startswith(b"content-length:"))
        await self._pages.readexactly(int(length.split(b":")[1]))

    async def close(self) -> None:
        for writer in self._writers:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port, local_addr=(self._address, 0))
        self._writers.append(writer)
        return reader, writer


@contextlib.asynccontextmanager
async def _browsers(port: int, count: int) -> AsyncIterator[list[_Browser]]:
    browsers = [_Browser(port, number) for number in range(count)]
    try:
        await asyncio.gather(*(browser.open() for browser in browsers))
        yield browsers
    finally:
        await asyncio.gather(*(browser.close() for browser in browsers))


@contextlib.contextmanager
def serving(on: Rig) -> Iterator[tuple[int, int]]:
    """Start a console for a rig's server; gives its port and its process id."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    with tempfile.TemporaryDirectory(prefix="turngate-bench-") as directory:
        place = ["--nats-url", on.settings.nats_url, "--durability", on.settings.durability.value]
        own = ["--console-port", str(port), "--state-dir", directory, "--log-level", "error"]
        command = [sys.executable, "-m", "turngate.cli.main", "serve", "console", "--parent", str(os.getpid())]
        with subprocess.Popen([*command, *place, *own], stderr=subprocess.DEVNULL) as process:
            try:
                _await_ready(port, process)
                yield port, process.pid
            finally:
                process.terminate()


def _await_ready(port: int, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + _READY_S
    while process.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    raise BenchmarkFailed(f"the console did not listen within {_READY_S:g} s")
