"""Waiting for what other processes do: poll until it is so, never a fixed sleep."""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, overload

T = TypeVar("T")

_POLL_S = 0.02


@overload
async def wait_until(condition: Callable[[], Awaitable[T]], deadline_s: float = 20, why: str = "") -> T: ...
@overload
async def wait_until(condition: Callable[[], T], deadline_s: float = 20, why: str = "") -> T: ...
async def wait_until(condition: Callable[[], Any], deadline_s: float = 20, why: str = "") -> Any:
    """Poll a plain or async condition until its result is true, and return it; else AssertionError with why."""
    deadline = time.monotonic() + deadline_s
    while True:
        outcome = condition()
        result = await outcome if inspect.isawaitable(outcome) else outcome
        if result:
            return result
        if time.monotonic() > deadline:
            raise AssertionError(_complaint(deadline_s, why))
        await asyncio.sleep(_POLL_S)


def wait_until_sync(condition: Callable[[], T], deadline_s: float = 20, why: str = "") -> T:
    """Poll a condition until its result is true, and return it; else AssertionError with why."""
    deadline = time.monotonic() + deadline_s
    while not (result := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(_complaint(deadline_s, why))
        time.sleep(_POLL_S)
    return result


def _complaint(deadline_s: float, why: str) -> str:
    return f"not within {deadline_s:g} s: {why or 'the condition stayed false'}"
