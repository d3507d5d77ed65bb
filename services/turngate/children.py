"""Further processes of a service on this machine: started, restarted when they end by themselves, drained at the end.

A child has a session of its own, so that Ctrl-C reaches only the parent, which then drains it; and it is told its
parent's process id, so that it drains itself when the parent is gone.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Final

log = logging.getLogger(__name__)

FIRST_DELAY_S: Final = 0.5
LAST_DELAY_S: Final = 30.0
SETTLED_S: Final = 10.0
"""A child that lived this long is started again without growing delay."""
KILL_AFTER_S: Final = 30.0
"""How long a child may take to drain before it is killed: longer than its services may take."""


class Children:
    """A number of processes with the same command line."""

    def __init__(self, count: int, command: Sequence[str], environment: Callable[[int], Mapping[str, str]]) -> None:
        """Describe the processes.

        Args:
            count: how many there are; 0 for none.
            command: their command line.
            environment: all environment variables of the first, second and so on.
        """
        self.restarts = 0
        self._count = count
        self._command = list(command)
        self._environment = environment
        self._keepers: list[asyncio.Task[None]] = []
        self._running: set[asyncio.subprocess.Process] = set()
        self._stopping = False

    @property
    def pids(self) -> list[int]:
        """The process ids of those that run."""
        return sorted(child.pid for child in self._running)

    def start(self) -> None:
        """Start them, and start each again whenever it ends by itself."""
        for number in range(1, self._count + 1):
            self._keepers.append(asyncio.create_task(self._keep(number), name=f"turngate-child-{number}"))

    async def stop(self) -> None:
        """Have them drain and wait until they have ended; kill those that take too long."""
        self._stopping = True
        for child in self._running:
            with contextlib.suppress(ProcessLookupError):
                child.terminate()
        if not self._keepers:
            return
        _, late = await asyncio.wait(self._keepers, timeout=KILL_AFTER_S)
        for child in list(self._running) if late else ():
            log.warning("child %d did not drain in %g s and is killed", child.pid, KILL_AFTER_S)
            with contextlib.suppress(ProcessLookupError):
                child.kill()
        await asyncio.gather(*self._keepers, return_exceptions=True)

    async def _keep(self, number: int) -> None:
        loop = asyncio.get_running_loop()
        delay = FIRST_DELAY_S
        while not self._stopping:
            began = loop.time()
            code = await self._run(number)
            if self._stopping:
                return
            self.restarts += 1
            delay = FIRST_DELAY_S if loop.time() - began > SETTLED_S else min(delay * 2, LAST_DELAY_S)
            log.warning("child %d ended with %d and is started again in %g s", number, code, delay)
            waited = 0.0
            while waited < delay and not self._stopping:
                await asyncio.sleep(0.1)
                waited += 0.1

    async def _run(self, number: int) -> int:
        child = await asyncio.create_subprocess_exec(
            *self._command,
            env=self._environment(number),
            stdin=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
        self._running.add(child)
        if self._stopping:  # stop() was called while it was being started
            child.terminate()
        try:
            return await child.wait()
        finally:
            self._running.discard(child)
