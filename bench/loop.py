"""The event loop of the load client and of the workers: uvloop where it can be imported, as in every process."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from bench.machine import has_uvloop

T = TypeVar("T")


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end in a new event loop and return its result."""
    factory = None
    if has_uvloop():
        import uvloop

        factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(main)
