"""The processes of the demo: a server, validation processes, and a runner process for each pool."""

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from turngate.settings import Settings
from turngate_contracts.errors import Unavailable


class Processes:
    """Child processes that are ended with the demo, whatever happens."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._validation: list[asyncio.subprocess.Process] = []
        self._runners: list[asyncio.subprocess.Process] = []
        self._facts: list[asyncio.Task[None]] = []
        self._readers: list[asyncio.Task[None]] = []

    async def validate(self, count: int) -> None:
        """Start validation processes and wait until each takes work."""
        environment = {
            **os.environ,
            "TURNGATE_NATS_URL": self._settings.nats_url,
            "TURNGATE_NAMESPACE": self._settings.namespace,
            "TURNGATE_DURABILITY": self._settings.durability.value,
            "TURNGATE_LOG_FORMAT": "json",
        }
        for _ in range(count):
            self._validation.append(
                await asyncio.create_subprocess_exec(
                    sys.executable,
                    *("-m", "turngate.cli.main", "serve", "validation"),
                    env=environment,
                    stdin=asyncio.subprocess.DEVNULL,
                    stderr=asyncio.subprocess.PIPE,
                    start_new_session=True,
                )
            )
        for process in self._validation:
            await _until_ready(process)
            # Nobody may leave the pipe full: what it logs from here on is read and dropped.
            self._readers.append(asyncio.create_task(_drain(process)))

    async def run_fleet(self, pools: Sequence[str], pace_s: float, on_fact: Callable[[dict[str, Any]], None]) -> None:
        """Start a runner process for each pool; `on_fact` is called with each fact that one prints."""
        for number, pool in enumerate(pools, 1):
            runner = await asyncio.create_subprocess_exec(
                sys.executable,
                *("-m", "turngate.demo.fleet", "--identity", f"runner-{number}", "--pool", pool),
                *("--url", self._settings.nats_url, "--namespace", self._settings.namespace),
                *("--pace", str(pace_s), "--seed", str(number)),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                start_new_session=True,
            )
            self._runners.append(runner)
            self._facts.append(asyncio.create_task(_read(runner, on_fact)))

    @property
    def lost(self) -> list[str]:
        """What ended although it should not have."""
        ended = [("validation", p) for p in self._validation] + [("runner", p) for p in self._runners]
        return [f"a {name} process ended with {p.returncode}" for name, p in ended if p.returncode is not None]

    async def dismiss_fleet(self) -> None:
        """Have the runners end, and wait for their last facts."""
        for runner in self._runners:
            if runner.stdin is not None:
                runner.stdin.close()
        await asyncio.gather(*self._facts, *(runner.wait() for runner in self._runners))
        self._runners.clear()

    async def end(self) -> None:
        """End every process that still runs."""
        for process in (*self._runners, *self._validation):
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
        for process in (*self._runners, *self._validation):
            try:
                async with asyncio.timeout(15):
                    await process.wait()
            except TimeoutError:
                process.kill()
                await process.wait()
        for reader in (*self._facts, *self._readers):
            reader.cancel()
        await asyncio.gather(*self._facts, *self._readers, return_exceptions=True)


async def _until_ready(process: asyncio.subprocess.Process) -> None:
    if process.stderr is None:
        return
    said = []
    async for line in process.stderr:
        said.append(line)
        with contextlib.suppress(ValueError):
            if "ready" in json.loads(line):
                return
    last = b"".join(said[-5:]).decode("utf-8", "replace").strip()
    raise Unavailable(f"a validation process did not start: {last or 'it said nothing'}")


async def _drain(process: asyncio.subprocess.Process) -> None:
    while process.stderr is not None and await process.stderr.read(65536):
        pass


async def _read(runner: asyncio.subprocess.Process, on_fact: Callable[[dict[str, Any]], None]) -> None:
    if runner.stdout is None:
        return
    async for line in runner.stdout:
        on_fact(json.loads(line))
