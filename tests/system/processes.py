"""Validation processes of a test: started, killed with SIGKILL, drained, and always ended by their process ids.

Each writes its log into a file of the test's own. A process that outlives its test is told its parent's id, so that
even the end of pytest itself ends it.
"""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from tests.waiting import wait_until

READY_S: Final = 60
ENDED_S: Final = 30
_TAIL: Final = 15


class ValidationProcess:
    """One `turngate serve` of a service; it may be started again after its end, with the same log."""

    def __init__(self, name: str, log: Path, environment: dict[str, str], service: str = "validation") -> None:
        self.name = name
        self.kills = 0
        self._log = log
        self._environment = environment
        self._service = service
        self._process: subprocess.Popen[bytes] | None = None
        self._starts = 0

    @property
    def pid(self) -> int:
        """The process id of the present process."""
        assert self._process is not None, f"{self.name} was never started"
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether it is there."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start it; `ready` says when it takes work."""
        command = [sys.executable, "-m", "turngate.cli.main", "serve", self._service, "--parent", str(os.getpid())]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(command, env=self._environment, stdin=subprocess.DEVNULL, stderr=log)
        self._starts += 1

    async def ready(self) -> None:
        """Wait until it takes work; it must not end before."""

        def is_ready() -> bool:
            assert self._process is not None
            assert self._process.poll() is None, f"{self.name} ended before it was ready:\n{self.last_words()}"
            return sum("ready" in line for line in self.log()) == self._starts

        await wait_until(is_ready, READY_S, f"{self.name} is ready; its log ends with:\n{self.last_words()}")

    def kill(self) -> None:
        """End it with SIGKILL, as a crash would; returns when it is gone."""
        if self._process is not None and self.running:
            self._process.kill()
            self._process.wait(ENDED_S)
            self.kills += 1
            # It may have been killed while it said that it was ready.
            self._starts = sum("ready" in line for line in self.log())

    def terminate(self) -> None:
        """Have it drain; `ended` says what came of it."""
        os.kill(self.pid, signal.SIGTERM)

    async def ended(self) -> int:
        """Wait until it has ended by itself and return its exit code."""
        process = self._process
        assert process is not None
        await wait_until(lambda: process.poll() is not None, ENDED_S, f"{self.name} ends:\n{self.last_words()}")
        return process.returncode

    def log(self) -> list[dict[str, Any]]:
        """Return the lines that it has written so far."""
        if not self._log.exists():
            return []
        lines = self._log.read_text(encoding="utf-8", errors="replace").splitlines()
        return [_parsed(line) for line in lines]

    def last_words(self) -> str:
        """Return the end of its log, for a failing test."""
        return "\n".join(json.dumps(line) for line in self.log()[-_TAIL:])


class Fleet:
    """The validation processes of one test, sharing one namespace of one server."""

    def __init__(self, url: str, namespace: str, directory: Path) -> None:
        self.processes: list[ValidationProcess] = []
        self._directory = directory
        self._environment = {name: value for name, value in os.environ.items() if not name.startswith("TURNGATE_")} | {
            "TURNGATE_NATS_URL": url,
            "TURNGATE_NAMESPACE": namespace,
            "TURNGATE_DURABILITY": "relaxed",
            "TURNGATE_LOG_FORMAT": "json",
        }

    async def start(self, count: int = 1, service: str = "validation", **variables: str) -> list[ValidationProcess]:
        """Start processes and wait until each takes work.

        Args:
            count: how many.
            service: of which service.
            variables: further environment variables, such as TURNGATE_CLOCK_OFFSET_MS.
        """
        started = []
        for _ in range(count):
            name = f"{service}-{len(self.processes) + 1}"
            log = self._directory / f"{name}.log"
            process = ValidationProcess(name, log, self._environment | variables, service)
            self.processes.append(process)
            process.start()
            started.append(process)
        for process in started:
            await process.ready()
        return started

    def end(self) -> None:
        """End every process, however the test went."""
        for process in self.processes:
            process.kill()

    def assert_no_crash_was_logged(self) -> None:
        """Fail when a process logged a traceback: a fault may delay work, it must not meet unhandled errors."""
        bad = [f"{p.name}: {json.dumps(line)}" for p in self.processes for line in p.log() if _is_crash(line)]
        assert not bad, f"{len(bad)} log lines tell of a crash, the first:\n" + "\n".join(bad[:3])


def _parsed(line: str) -> dict[str, Any]:
    try:
        parsed: dict[str, Any] = json.loads(line)
    except ValueError:
        return {"unparsed": line}
    return parsed


def _is_crash(line: dict[str, Any]) -> bool:
    return "traceback" in line or "Traceback" in line.get("unparsed", "")
