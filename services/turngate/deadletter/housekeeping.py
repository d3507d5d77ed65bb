"""What has to be done every now and then, by each process of the service: one after the other, whatever fails.

Several processes may do the same at once: a letter is stored once, a message moved twice is handled once, and of two
saves at once one loses.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from msgspec import Struct

log = logging.getLogger(__name__)

_JITTER: Final = (0.8, 1.2)


class Chore(Struct, frozen=True):
    """Something that is done every `every_ms`; `name` stands in the log when it fails."""

    name: str
    every_ms: int
    do: Callable[[], Awaitable[object]]


class Housekeeping:
    """Does chores until it is stopped."""

    def __init__(self, chores: Sequence[Chore]) -> None:
        self._chores = chores
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begin; each chore is done for the first time after its interval."""
        self._tasks = [asyncio.create_task(_repeat(chore), name=f"turngate-{chore.name}") for chore in self._chores]

    async def stop(self) -> None:
        """End; what is under way is cancelled, which is as safe as a kill."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def _repeat(chore: Chore) -> None:
    while True:
        await asyncio.sleep(chore.every_ms / 1000 * random.uniform(*_JITTER))  # noqa: S311
        try:
            await chore.do()
        except Exception as error:  # noqa: BLE001  the next time may do better, and the others must go on
            log.warning("%s did not come to an end: %s", chore.name, error)
