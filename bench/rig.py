"""A nats-server, or a cluster, in a temporary directory with a worker process beside it, gone with the `with` block.

Each service gets a server of its own, so that what the server spends on one is not counted for the other.
"""

import asyncio
import contextlib
import os
import selectors
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from msgspec import Struct

from bench.machine import cpu_s
from turngate.jetstream.connect import connect
from turngate.jetstream.embedded import HOST, EmbeddedServer
from turngate.jetstream.request import JetStreamError, Requester
from turngate.settings import Settings
from turngate_contracts.errors import Unavailable
from turngate_contracts.topology import Durability, Topology

PYTHON = Path(sys.executable)
READY_S = 30.0
STOP_S = 5.0
QUIET_S = 60.0
_ROOT = Path(__file__).parent.parent


class BenchmarkFailed(Exception):
    """A benchmark could not be carried out, as opposed to: it was slow."""


class Cpu(Struct, frozen=True):
    """CPU seconds by process, the load client's included."""

    worker: float
    server: float
    client: float

    def per_turn_us(self, earlier: "Cpu", turns: int) -> "Cpu":
        """Return what was used since an earlier reading, in µs a turn."""
        return Cpu(
            (self.worker - earlier.worker) * 1e6 / turns,
            (self.server - earlier.server) * 1e6 / turns,
            (self.client - earlier.client) * 1e6 / turns,
        )

    @property
    def total(self) -> float:
        """All processes together."""
        return self.worker + self.server + self.client


class Rig(Struct, frozen=True):
    """A running server and its worker."""

    kind: str
    settings: Settings
    server_pids: tuple[int, ...]
    worker_pid: int

    @property
    def server_pid(self) -> int:
        """The process id of the server, of the first one in a cluster."""
        return self.server_pids[0]

    @property
    def topology(self) -> Topology:
        """The streams and consumers on this server."""
        return self.settings.topology()

    def cpu(self) -> Cpu:
        """Return what each process has used so far."""
        return Cpu(cpu_s(self.worker_pid), sum(map(cpu_s, self.server_pids)), cpu_s(os.getpid()))


@contextlib.contextmanager
def rig(kind: str, durability: Durability, python: Path = PYTHON, servers: int = 1) -> Iterator[Rig]:
    """Start servers and a worker of a kind that `bench.worker` knows, and end all of them.

    Args:
        kind: what the worker does.
        durability: what an acknowledged save survives.
        python: the interpreter that runs the worker; another one has other packages.
        servers: how many; several are a cluster in which each stream has as many copies.

    Raises:
        BenchmarkFailed: the worker did not become ready.
        EmbeddedServerError: the server did not start.
    """
    with contextlib.ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="turngate-bench-")))
        started = [
            stack.enter_context(
                EmbeddedServer(directory / name, sync_always=durability is Durability.STRICT, extra_config=config)
            )
            for name, config in _members(servers)
        ]
        settings = Settings(
            nats_url=",".join(server.url for server in started), durability=durability, replicas=servers
        )
        if servers > 1:
            asyncio.run(_formed(settings.nats_url, servers))
        worker = stack.enter_context(_worker(kind, settings, python))
        yield Rig(kind, settings, tuple(server.pid for server in started), worker.pid)


def _members(count: int) -> list[tuple[str, str]]:
    """Return each server's name and what its configuration says of the others."""
    names = [f"server-{number}" for number in range(count)]
    if count == 1:
        return [(names[0], "")]
    ports = _free_ports(count)
    routes = ", ".join(f"nats://{HOST}:{port}" for port in ports)
    cluster = 'cluster {{ name: bench, listen: "{}:{}", routes: [{}] }}'
    return [(name, cluster.format(HOST, port, routes)) for name, port in zip(names, ports, strict=True)]


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind((HOST, 0))
        return [int(one.getsockname()[1]) for one in sockets]


async def _formed(url: str, servers: int) -> None:
    """Wait until a cluster has a leader that knows all of its servers; raises BenchmarkFailed."""
    connection = await connect(url.partition(",")[0], name="bench-client")
    requester = await Requester.start(connection)
    probe = {"name": "bench_formed", "subjects": ["bench.formed"], "num_replicas": servers, "storage": "memory"}
    try:
        async with asyncio.timeout(READY_S):
            while True:
                with contextlib.suppress(Unavailable, JetStreamError):
                    await requester.api("STREAM.CREATE.bench_formed", probe, timeout_ms=1_000)
                    await requester.api("STREAM.DELETE.bench_formed")
                    return
                await asyncio.sleep(0.1)
    except TimeoutError:
        raise BenchmarkFailed(f"the cluster did not form within {READY_S:g} s") from None
    finally:
        await requester.stop()
        await connection.close()


@contextlib.asynccontextmanager
async def requests(on: Rig) -> AsyncIterator[Requester]:
    """Connect to a rig's server for the time of an `async with` block."""
    connection = await connect(on.settings.nats_url, name="bench-client")
    requester = await Requester.start(connection)
    try:
        yield requester
    finally:
        await requester.stop()
        await connection.close()


async def until_quiet(requester: Requester, topology: Topology, unserved: str = "") -> None:
    """Wait until every stored turn is acked, every state reconciled and every revision is an event.

    Args:
        requester: the connection's requests.
        topology: the streams and consumers.
        unserved: a consumer from which nobody pulls here.

    Raises:
        BenchmarkFailed: that is not so within a minute.
    """
    try:
        async with asyncio.timeout(QUIET_S):
            while not await _is_quiet(requester, topology, unserved):  # noqa: ASYNC110  the server tells only who asks
                await asyncio.sleep(0.02)
    except TimeoutError:
        raise BenchmarkFailed(f"the queues were not empty after {QUIET_S:g} s") from None


async def _is_quiet(requester: Requester, topology: Topology, unserved: str) -> bool:
    for stream, consumer in topology.consumers():
        if consumer["durable_name"] == unserved:
            continue
        info = await requester.api(f"CONSUMER.INFO.{stream}.{consumer['durable_name']}")
        if info["num_pending"] or info["num_ack_pending"]:
            return False
    subjects = topology.subjects
    last: list[int] = []
    for stream in (subjects.bucket_stream("turns"), subjects.bucket_stream("objectives"), subjects.stream("events")):
        info = await requester.api(f"STREAM.INFO.{stream}")
        last.append(info["state"]["last_seq"])
    turns, objectives, events = last
    return turns + objectives <= events


@contextlib.contextmanager
def _worker(kind: str, settings: Settings, python: Path) -> Iterator["subprocess.Popen[bytes]"]:
    place = ["--url", settings.nats_url, "--durability", settings.durability.value]
    command = [str(python), "-m", "bench.worker", kind, *place, "--replicas", str(settings.replicas)]
    worker = subprocess.Popen(command, cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    try:
        _await_ready(worker, kind)
        yield worker
    finally:
        _end(worker)


def _await_ready(worker: "subprocess.Popen[bytes]", kind: str) -> None:
    assert worker.stdout is not None, "started with a pipe"
    with selectors.DefaultSelector() as selector:
        selector.register(worker.stdout, selectors.EVENT_READ)
        said = worker.stdout.readline() if selector.select(READY_S) else b""
    if said.strip() != b"ready":
        how = f"was not ready within {READY_S:g} s" if worker.poll() is None and not said else "ended at its start"
        raise BenchmarkFailed(f"the {kind} worker {how}; what it wrote is above")


def _end(worker: "subprocess.Popen[bytes]") -> None:
    with worker:  # closes the pipes, by which the worker knows, and waits
        worker.terminate()
        try:
            worker.wait(STOP_S)
        except subprocess.TimeoutExpired:
            worker.kill()
