"""The hosts of a test: runner processes with files of their own, always ended by their process ids."""

import asyncio
import contextlib
import json
import os
import sys
from pathlib import Path
from typing import Any

import msgspec

from turngate_protocol.conclusion import Task

STARTED_S = 60


class Host:
    """One runner process with a root directory."""

    def __init__(self, identity: str, root: Path, process: asyncio.subprocess.Process) -> None:
        self.identity = identity
        self.root = root
        self._process = process

    async def tell(self, session: str, task: Task) -> None:
        """Have it tell that a task ended; returns when that is stored."""
        assert self._process.stdin is not None
        told = {"session": session, "task": msgspec.to_builtins(task)}
        self._process.stdin.write(json.dumps(told).encode() + b"\n")
        assert await self.fact() == {"told": task.id}

    async def fact(self) -> Any:
        """Return the next thing that it says."""
        assert self._process.stdout is not None
        async with asyncio.timeout(STARTED_S):
            line = await self._process.stdout.readline()
        assert line, f"{self.identity} ended"
        return json.loads(line)

    def kill(self) -> None:
        """End it with SIGKILL."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()

    async def gone(self) -> None:
        """Wait until it is gone."""
        await self._process.wait()


class Hosts:
    """Starts hosts in one namespace of one server."""

    def __init__(self, url: str, namespace: str, directory: Path) -> None:
        self._url = url
        self._namespace = namespace
        self._directory = directory
        self._started: list[Host] = []

    async def start(self, identity: str, *files: str, deaf: bool = False) -> Host:
        """Start a host whose root holds some files, and wait until it answers; a deaf one never does."""
        root = self._directory / identity
        root.mkdir()
        for name in files:
            (root / name).write_text(f"{name} of {identity}")
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "tests.system.host", "--identity", identity, "--url", self._url, "--namespace", self._namespace),
            *("--root", str(root), *(["--deaf"] if deaf else [])),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env=os.environ | {"PYTHONUNBUFFERED": "1"},
        )
        host = Host(identity, root, process)
        self._started.append(host)
        assert await host.fact() == {"ready": True}
        return host

    async def end(self) -> None:
        """End every host."""
        for host in self._started:
            host.kill()
        for host in self._started:
            await host.gone()
