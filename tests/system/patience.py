"""Asking many times, and again while nobody answers: under faults that is never what a test is about."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, TypeVar

from turngate_contracts.errors import Unavailable

T = TypeVar("T")
R = TypeVar("R")

PATIENCE_MS: Final = 90_000
"""How long a client waits under faults, in ms."""
_AGAIN_S: Final = 0.1
_AT_ONCE: Final = 64


async def patiently(ask: Callable[[], Awaitable[R]]) -> R:
    """Return what asking returns, asking again while the server or the service is away."""
    async with asyncio.timeout(PATIENCE_MS / 1000):
        while True:
            try:
                return await ask()
            except Unavailable:
                await asyncio.sleep(_AGAIN_S)


async def each(items: Iterable[T], do: Callable[[T], Awaitable[R]]) -> list[R]:
    """Do something for each item, some at once, and return the results in the order of the items."""
    slots = asyncio.Semaphore(_AT_ONCE)

    async def one(item: T) -> R:
        async with slots:
            return await do(item)

    return await asyncio.gather(*map(one, list(items)))
