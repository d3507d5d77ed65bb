"""Works that somebody awaits: a decision about one key, for code that goes on once it is stored.

The lanes call back; whoever has nothing else to do until then uses `apply`, which is one work as a coroutine.
"""

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

from msgspec.structs import replace

from turngate import tracing
from turngate.jetstream.keyed import Lanes, Save, State

S = TypeVar("S", bound=State)

Decide = Callable[[S | None], Save[S] | None]


async def apply(lanes: Lanes[S], key: str, decide: Decide[S], on_stored: Callable[[], None] | None = None) -> None:
    """Decide about a key and return once what was decided is stored.

    Args:
        lanes: the works of the bucket.
        key: the key.
        decide: gets the newest state and returns what to save, or None when nothing changes. Pure but for what it
            leaves to its caller; it is called again when another process saved first, and its last call counts.
        on_stored: called the moment that it is stored, before whoever awaits this goes on.

    Raises:
        Unavailable: what was decided may be stored or not; decide again.
        Exception: the state can't be read, or what `decide` raised.
    """
    work = _Awaited(key, decide, on_stored)
    lanes.submit(work)
    await work.stored


class _Awaited(Generic[S]):
    __slots__ = ("_decide", "_on_stored", "_trace_parent", "key", "likely_new", "stored")

    def __init__(self, key: str, decide: Decide[S], on_stored: Callable[[], None] | None) -> None:
        self.key = key
        self.likely_new = False
        self.stored: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._decide = decide
        self._on_stored = on_stored
        # Decided from wherever the state comes in, which is not where this was asked for.
        self._trace_parent = tracing.current()

    def decide(self, state: S | None) -> Save[S] | None:
        save = self._decide(state)
        if save is None or not self._trace_parent:
            return save
        return replace(save, event=replace(save.event, trace_parent=self._trace_parent))

    def done(self, _state: S | None, _revision: int) -> None:
        if not self.stored.done():
            self.stored.set_result(None)
        if self._on_stored is not None:
            self._on_stored()

    def failed(self, error: Exception) -> None:
        if not self.stored.done():
            self.stored.set_exception(error)
