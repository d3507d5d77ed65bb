"""Services as processes that the nursery forks: started in a moment, and ended by their own ids."""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.waiting import wait_until

READY_S: Final = 60
ENDED_S: Final = 30


class Nursling:
    """One `turngate`, most often a service."""

    def __init__(self, pid: int, log: Path) -> None:
        self.pid = pid
        self.exit: int | None = None
        self._log = log

    def log(self) -> str:
        """What it has written so far."""
        return self._log.read_text(encoding="utf-8", errors="replace")

    @property
    def ready(self) -> bool:
        return '"ready"' in self.log()

    async def is_ready(self) -> None:
        """Wait until it takes work."""

        def ready() -> bool:
            assert self.exit is None, f"it ended with {self.exit} before it was ready: {self.log()[-2000:]}"
            return self.ready

        await wait_until(ready, READY_S, "the service is ready")

    async def ended(self, deadline_s: float = ENDED_S) -> int:
        """Wait until it has ended and return its exit code."""
        await wait_until(lambda: self.exit is not None, deadline_s, f"process {self.pid} ends: {self.log()[-2000:]}")
        assert self.exit is not None
        return self.exit

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal, if it is there."""
        if self.exit is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)


class Nursery:
    """Forks services; use it as an async context manager."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.Task[None] | None = None
        self._born: asyncio.Queue[int] = asyncio.Queue()
        self._all: dict[int, Nursling] = {}
        self._ended: dict[int, int] = {}
        self._one = asyncio.Lock()

    async def __aenter__(self) -> "Nursery":
        command = (sys.executable, "-m", "tests.system.faults.nursery")
        self._process = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
        )
        self._reader = asyncio.create_task(self._read())
        return self

    async def __aexit__(self, *_error: object) -> None:
        for child in self._all.values():
            child.signal(signal.SIGCONT)
            child.signal(signal.SIGKILL)
        if self._all:
            await wait_until(lambda: all(child.exit is not None for child in self._all.values()), ENDED_S, "all end")
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.close()
        await self._process.wait()
        if self._reader is not None:
            await self._reader

    async def start(self, name: str, service: str, environment: dict[str, str]) -> Nursling:
        """Start a service whose log has a name that no other one has."""
        assert self._process is not None
        return await self.run(name, ["serve", service, "--parent", str(self._process.pid)], environment)

    async def run(self, name: str, arguments: Sequence[str], environment: dict[str, str]) -> Nursling:
        """Start `turngate` with these arguments; what it prints is in its log."""
        log = self._directory / f"{name}.log"
        wanted = {"arguments": arguments, "environment": environment, "log": str(log)}
        assert self._process is not None
        assert self._process.stdin is not None
        async with self._one:
            self._process.stdin.write(f"{json.dumps(wanted)}\n".encode())
            log.touch()
            pid = await asyncio.wait_for(self._born.get(), READY_S)
        child = self._all[pid] = Nursling(pid, log)
        child.exit = self._ended.pop(pid, None)
        return child

    async def _read(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            fact = json.loads(line)
            if "exit" not in fact:
                self._born.put_nowait(fact["pid"])
            elif fact["pid"] in self._all:
                self._all[fact["pid"]].exit = fact["exit"]
            else:
                self._ended[fact["pid"]] = fact["exit"]
