"""The processes of the demo: services, and runners that say what they see, one fact as JSON a line."""

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from turngate.cli.config import to_environment
from turngate.settings import Settings
from turngate_contracts.errors import Unavailable

END_S: Final = 15.0
"""How long a process may take to end when it is told to."""

OnFact = Callable[[dict[str, Any]], None]


class Runner:
    """A runner process: its name, and the process itself."""

    def __init__(self, identity: str, process: asyncio.subprocess.Process) -> None:
        self.identity = identity
        self.process = process


class Processes:
    """Child processes that are ended with the demo, whatever happens."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._services: list[tuple[str, asyncio.subprocess.Process]] = []
        self._runners: list[Runner] = []
        self._facts: list[asyncio.Task[None]] = []
        self._readers: list[asyncio.Task[None]] = []

    async def serve(self, counts: Mapping[str, int]) -> None:
        """Start so many processes of each service and wait until all of them take work."""
        environment = {**os.environ, **to_environment(self._settings), "TURNGATE_LOG_FORMAT": "json"}
        for name in (name for name, count in counts.items() for _ in range(count)):
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                *("-m", "turngate.cli.main", "serve", name),
                env=environment,
                stdin=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
            )
            self._services.append((name, process))
        for name, process in self._services:
            await _until_ready(name, process)
            # Nobody may leave the pipe full: what it logs from here on is read and dropped.
            self._readers.append(asyncio.create_task(_drain(process)))

    async def run(self, module: str, identity: str, pool: str, *options: str, on_fact: OnFact) -> Runner:
        """Start a runner of the demo's; `on_fact` is called with each fact that it prints."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", f"turngate.demo.{module}", "--identity", identity, "--pool", pool),
            *("--url", self._settings.nats_url, "--namespace", self._settings.namespace, *options),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        runner = Runner(identity, process)
        self._runners.append(runner)
        self._facts.append(asyncio.create_task(_read(process, on_fact)))
        return runner

    async def run_fleet(self, pools: Sequence[str], pace_s: float, on_fact: OnFact) -> None:
        """Start a runner process for each pool."""
        for number, pool in enumerate(pools, 1):
            await self.run("fleet", f"runner-{number}", pool, "--pace", str(pace_s), on_fact=on_fact)

    async def kill(self, identity: str) -> None:
        """End a runner as a crash would."""
        for runner in [runner for runner in self._runners if runner.identity == identity]:
            self._runners.remove(runner)
            with contextlib.suppress(ProcessLookupError):
                runner.process.kill()
            await runner.process.wait()

    @property
    def lost(self) -> list[str]:
        """What ended although it should not have."""
        ended = [*self._services, *((runner.identity, runner.process) for runner in self._runners)]
        return [f"the process {name} ended with {p.returncode}" for name, p in ended if p.returncode is not None]

    async def dismiss_fleet(self) -> list[str]:
        """Have the runners end, wait for their last facts, and return which did not end; those are killed."""
        for runner in self._runners:
            if runner.process.stdin is not None:
                runner.process.stdin.close()
        left = [runner for runner in self._runners if not await _ends(runner.process)]
        for runner in left:
            await self.kill(runner.identity)
        await asyncio.gather(*self._facts)
        self._runners.clear()
        return [f"the runner {runner.identity} did not end when it was told to" for runner in left]

    async def end(self) -> None:
        """End every process that still runs."""
        every = [*(runner.process for runner in self._runners), *(process for _, process in self._services)]
        for process in every:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
        for process in every:
            if not await _ends(process):
                process.kill()
                await process.wait()
        for reader in (*self._facts, *self._readers):
            reader.cancel()
        await asyncio.gather(*self._facts, *self._readers, return_exceptions=True)


async def _ends(process: asyncio.subprocess.Process) -> bool:
    try:
        async with asyncio.timeout(END_S):
            await process.wait()
    except TimeoutError:
        return False
    return True


async def _until_ready(name: str, process: asyncio.subprocess.Process) -> None:
    if process.stderr is None:
        return
    said = []
    async for line in process.stderr:
        said.append(line)
        with contextlib.suppress(ValueError):
            if "ready" in json.loads(line):
                return
    last = b"".join(said[-5:]).decode("utf-8", "replace").strip()
    raise Unavailable(f"a {name} process did not start: {last or 'it said nothing'}")


async def _drain(process: asyncio.subprocess.Process) -> None:
    while process.stderr is not None and await process.stderr.read(65536):
        pass


async def _read(process: asyncio.subprocess.Process, on_fact: OnFact) -> None:
    if process.stdout is None:
        return
    async for line in process.stdout:
        # The last line of one that was killed may be half a line.
        with contextlib.suppress(ValueError):
            on_fact(json.loads(line))
