"""Supervisors, runners and a validation service as real processes, to be killed at any time and started again."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from tests.waiting import wait_until
from turngate_contracts import codec

READY_S: Final = 60
ENDED_S: Final = 30
POOL: Final = "fleet"
IMPATIENT: Final = {
    "TURNGATE_PRESENCE_MS": "2000",
    "TURNGATE_WATCHDOG_MS": "400",
    "TURNGATE_FIRST_DELAY_MS": "20",
    "TURNGATE_LONGEST_DELAY_MS": "200",
    "TURNGATE_POOL": POOL,
}
_SERVE: Final = (sys.executable, "-m", "turngate.cli.main", "serve")


class Process:
    """One process of ours, with its log; it may be started again after its end."""

    def __init__(self, name: str, command: tuple[str, ...], log: Path, environment: dict[str, str]) -> None:
        self.name = name
        self.kills = 0
        self._command = command
        self._log = log
        self._environment = environment
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def resident_kib(self) -> int:
        """The memory that it holds, in KiB."""
        assert self._process is not None
        status = Path(f"/proc/{self._process.pid}/status").read_text(encoding="ascii")
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:"))

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, env=self._environment, stdin=subprocess.DEVNULL, stderr=log, stdout=log
            )

    async def ready(self) -> None:
        """Wait until it took work for the first time."""
        await wait_until(lambda: "ready" in self.log(), READY_S, f"{self.name} is ready: {self.log()[-2000:]}")

    def kill(self) -> None:
        """End it with SIGKILL, as a crash would; returns when it is gone."""
        if self._process is not None and self.running:
            self._process.kill()
            self._process.wait(ENDED_S)
            self.kills += 1

    def log(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace") if self._log.exists() else ""


class EsmFleet:
    """The processes of one test, sharing one namespace of one server."""

    def __init__(self, url: str, namespace: str, directory: Path) -> None:
        self.supervisors: list[Process] = []
        self.runners: list[Process] = []
        self.others: list[Process] = []
        self._url = url
        self._namespace = namespace
        self._directory = directory
        self._environment = {k: v for k, v in os.environ.items() if not k.startswith("TURNGATE_")} | IMPATIENT
        self._environment |= {
            "TURNGATE_NATS_URL": url,
            "TURNGATE_NAMESPACE": namespace,
            "TURNGATE_DURABILITY": "relaxed",
            "TURNGATE_LOG_FORMAT": "json",
        }

    async def start(self, supervisors: int, runners: int, scenarios: dict[str, Any]) -> None:
        """Start all processes and wait until each takes work."""
        script = self._directory / "scenarios.json"
        script.write_bytes(codec.encode(scenarios))
        parent = ("--parent", str(os.getpid()))
        self.others = [self._made("validation-1", (*_SERVE, "validation", *parent))]
        self.supervisors = [
            self._made(f"supervisor-{n}", (*_SERVE, "supervisor", *parent)) for n in range(1, supervisors + 1)
        ]
        for process in (*self.others, *self.supervisors):
            process.start()
        for process in (*self.others, *self.supervisors):
            await process.ready()
        module = (sys.executable, "-m", "tests.system.host_process")
        self.runners = [
            self._made(f"runner-{n}", (*module, self._url, self._namespace, f"runner-{n}", str(script)))
            for n in range(1, runners + 1)
        ]
        for process in self.runners:
            process.start()
        for process in self.runners:
            await process.ready()

    def kill_one(self, chance: random.Random) -> Process:
        """Kill a supervisor or a runner and start it again."""
        process = chance.choice([*self.supervisors, *self.runners])
        process.kill()
        process.start()
        return process

    def end(self) -> None:
        """End every process, however the test went."""
        for process in (*self.runners, *self.supervisors, *self.others):
            process.kill()

    def crashes(self) -> list[str]:
        """Tracebacks in the logs: a fault may delay work, it must not meet errors that nobody handles."""
        return [
            f"{process.name}: {line[:2000]}"
            for process in (*self.runners, *self.supervisors, *self.others)
            for line in process.log().splitlines()
            if "Traceback" in line or '"traceback"' in line
        ]

    def _made(self, name: str, command: tuple[str, ...]) -> Process:
        root = str(Path(__file__).parents[2])
        return Process(name, command, self._directory / f"{name}.log", self._environment | {"PYTHONPATH": root})


def loaded(path: Path) -> dict[str, Any]:
    """Read the scenarios of a fleet."""
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found
