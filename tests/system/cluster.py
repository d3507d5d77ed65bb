"""Three nats-servers on loopback that form a cluster, from the configuration that `compose.yaml` gives them.

Only addresses and paths are replaced. The servers end with the test, and with the process that started them.
"""

import asyncio
import contextlib
import ctypes
import json
import os
import random
import signal
import socket
import subprocess
import urllib.request
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any, Final

from tests.waiting import wait_until
from turngate.jetstream.embedded import find_binary
from turngate.jetstream.request import JetStreamError, Requester
from turngate_contracts.errors import Unavailable

CONFIG: Final = Path(__file__).parents[2] / "deploy" / "nats" / "cluster.conf"
NAMES: Final = ("nats-1", "nats-2", "nats-3")
FORMED_S: Final = 60
_PR_SET_PDEATHSIG: Final = 1
_CLIENTS: Final = "4222"
_ROUTES: Final = "6222"
_MONITORING: Final = "8222"


class Node:
    """One server of a cluster."""

    def __init__(self, name: str, directory: Path, config: str, ports: dict[str, int]) -> None:
        self.name = name
        self.ports = ports
        self._directory = directory
        self._config = directory / f"{name}.conf"
        self._config.write_text(config)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.ports[_CLIENTS]}"

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start it; it finds the others by itself."""
        with (self._directory / f"{self.name}.log").open("ab") as log:
            self._process = subprocess.Popen(
                [str(find_binary()), "--config", str(self._config)],
                env=os.environ | {"NATS_NAME": self.name},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=_end_with_parent,  # noqa: PLW1509  one call of the C library, nothing that takes a lock
            )

    def kill(self) -> None:
        """End it with SIGKILL, as a crash would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(30)

    def pause(self) -> None:
        """Have it stand still, as a machine does whose disk hangs."""
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Have it go on."""
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGCONT)

    def healthy(self) -> bool:
        """Ask what the container's health check asks."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.ports[_MONITORING]}/healthz", timeout=2) as answer:
                return bool(json.load(answer)["status"] == "ok")
        except (OSError, ValueError, KeyError):
            return False


class Cluster:
    """Three servers; make it with `running_cluster`."""

    def __init__(self, nodes: list[Node]) -> None:
        self.nodes = nodes

    @property
    def url(self) -> str:
        """Every server's address, as TURNGATE_NATS_URL has them."""
        return ",".join(node.url for node in self.nodes)

    async def formed(self) -> None:
        """Wait until every server says that it is healthy: it knows the others, and its streams are current."""
        for node in self.nodes:
            await wait_until(partial(asyncio.to_thread, node.healthy), FORMED_S, f"{node.name} is healthy")

    async def leader(self, requester: Requester, stream: str) -> Node:
        """Wait until a stream has a leader, and return its server."""
        found = ""

        async def has_one() -> bool:
            nonlocal found
            with contextlib.suppress(Unavailable, JetStreamError):
                info = await requester.api(f"STREAM.INFO.{stream}", timeout_ms=2_000)
                found = str((info.get("cluster") or {}).get("leader") or "")
            return bool(found)

        await wait_until(has_one, FORMED_S, f"{stream} has a leader")
        return next(node for node in self.nodes if node.name == found)

    def end(self) -> None:
        """End every server."""
        for node in self.nodes:
            node.kill()


@contextlib.asynccontextmanager
async def running_cluster(directory: Path, replaced: dict[str, str] | None = None) -> AsyncIterator[Cluster]:
    """Run a cluster for the time of an `async with` block.

    Args:
        directory: where data, configurations and logs go.
        replaced: further texts of the configuration that are replaced by others.
    """
    cluster = Cluster(nodes_in(directory, replaced or {}))
    try:
        for node in cluster.nodes:
            node.start()
        await cluster.formed()
        yield cluster
    finally:
        cluster.end()


def nodes_in(directory: Path, replaced: dict[str, str]) -> list[Node]:
    """Make the servers' configurations on free ports; nothing is started."""
    wanted = [(name, kind) for name in NAMES for kind in (_CLIENTS, _ROUTES, _MONITORING)]
    ports = dict(zip(wanted, _free_ports(len(wanted)), strict=True))
    nodes = []
    for name in NAMES:
        text = CONFIG.read_text()
        for other in NAMES:
            text = text.replace(f"nats://{other}:{_ROUTES}", f"nats://127.0.0.1:{ports[other, _ROUTES]}")
        own = {kind: ports[name, kind] for kind in (_CLIENTS, _ROUTES, _MONITORING)}
        for kind, port in own.items():
            text = text.replace(f"0.0.0.0:{kind}", f"127.0.0.1:{port}")
        text = text.replace("/data", json.dumps(str(directory / name)))
        for old, new in replaced.items():
            text = text.replace(old, new)
        nodes.append(Node(name, directory, text, own))
    return nodes


def _free_ports(count: int) -> list[int]:
    # Below the ranges of outgoing connections, or a client's socket could have one when a server comes back.
    found: list[int] = []
    for port in random.SystemRandom().sample(range(20_000, 32_000), 1_000):
        with contextlib.closing(socket.socket()) as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            found.append(port)
        if len(found) == count:
            return found
    raise AssertionError("there are no free ports")


def _end_with_parent() -> Any:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
