"""`turngate mcp` beside a bare server of its SDK: from the start to the first list of tools, and a call's round trip.

Both are spoken to by lines of JSON, so that nothing of a client is measured. They take turns, and the ratio and the
difference are those of neighbours. CPU time up to the list stands beside the wall time, which others' work disturbs.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from bench.machine import cpu_s
from bench.options import Options
from bench.rig import BenchmarkFailed, rig
from bench.rows import Row, Target, median_row, paired
from turngate_contracts.topology import Durability

NAME: Final = "mcp"

_RATIO: Final = Target(1.3)
_ADDED: Final = Target(15.0)
_WARM_UP: Final = 5
_BARE: Final = (sys.executable, "-m", "bench.bare_mcp")
_OURS: Final = (sys.executable, "-m", "turngate.cli.main", "mcp", "--session", "bench")
_ROOT: Final = Path(__file__).parent.parent
_HELLO: Final = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}


def run(options: Options) -> list[Row]:
    """Measure starts without a NATS server, and round trips with one, under both durabilities."""
    with tempfile.TemporaryDirectory(prefix="turngate-bench-mcp-") as directory:
        environment = os.environ | {"TURNGATE_AGENTS_DIR": directory}
        rows = _starts(options.start_ups, environment)
        for durability in Durability:
            with rig("validation", durability) as real:
                settings = {"TURNGATE_NATS_URL": real.settings.nats_url, "TURNGATE_SESSION": durability.value}
                rows += _round_trips(durability, options.latency_turns, environment | settings)
    return rows


def _starts(count: int, environment: Mapping[str, str]) -> list[Row]:
    bare, ours = [], []
    for _ in range(count):
        bare.append(_start(_BARE, environment))
        ours.append(_start(_OURS, environment))
    walls = [[wall for wall, _ in side] for side in (bare, ours)]
    cpus = [[cpu for _, cpu in side] for side in (bare, ours)]
    return [
        median_row(NAME, "bare server: start to first list", walls[0], "ms"),
        median_row(
            NAME, "turngate mcp: start to first list", walls[1], "ms", ceiling="bare server: start to first list"
        ),
        median_row(NAME, "start / bare server", paired(walls[1], walls[0]), "", _RATIO),
        median_row(NAME, "start / bare server, CPU", paired(cpus[1], cpus[0])),
    ]


def _start(command: Sequence[str], environment: Mapping[str, str]) -> tuple[float, float]:
    began = time.perf_counter()
    with _Spoken(command, environment) as server:
        server.ask("tools/list", {})
        return (time.perf_counter() - began) * 1000, cpu_s(server.pid)


def _round_trips(durability: Durability, calls: int, environment: Mapping[str, str]) -> list[Row]:
    with _Spoken(_BARE, environment) as bare, _Spoken(_OURS, environment) as ours:
        fast, slow = [], []
        for number in range(calls + _WARM_UP):
            fast.append(bare.report(number))
            slow.append(ours.report(number))
    fast, slow = fast[_WARM_UP:], slow[_WARM_UP:]
    name = durability.value
    nothing = f"{name}: call of a tool that does nothing"
    return [
        median_row(NAME, nothing, fast, "ms"),
        median_row(NAME, f"{name}: Report, accepted", slow, "ms", ceiling=nothing),
        median_row(
            NAME, f"{name}: Report adds", [this - that for this, that in zip(slow, fast, strict=True)], "ms", _ADDED
        ),
    ]


class _Spoken:
    """A server process, spoken to by lines."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            command,
            cwd=_ROOT,
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._requests = 0

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    def __enter__(self) -> Self:
        self.ask("initialize", _HELLO)
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._process:
            self._process.kill()

    def report(self, number: int) -> float:
        """Report something that is accepted, and return how long that took, in ms."""
        finding = {"type": "finding", "id": "a", "summary": "It is so.", "impact": "None.", "importance": "low"}
        report = {
            "task_status": "completed",
            "headline": f"Turn {number} is done",
            "blocks": [finding | {"blocks_current_task": False}],
        }
        began = time.perf_counter()
        result = self.ask("tools/call", {"name": "Report", "arguments": report})
        took = (time.perf_counter() - began) * 1000
        if result.get("isError"):
            raise BenchmarkFailed(f"a report was not accepted: {result['content'][0]['text']}")
        return took

    def ask(self, method: str, params: Any) -> dict[str, Any]:
        """Send a request and return its result."""
        self._requests += 1
        self._send({"jsonrpc": "2.0", "id": self._requests, "method": method, "params": params})
        assert self._process.stdout is not None, "started with a pipe"
        while line := self._process.stdout.readline():
            said = json.loads(line)
            if said.get("id") == self._requests:
                if "error" in said:
                    raise BenchmarkFailed(f"{method} failed: {said['error']['message']}")
                found: dict[str, Any] = said["result"]
                return found
        raise BenchmarkFailed("an MCP server ended at its start")

    def _send(self, message: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None, "started with a pipe"
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()
