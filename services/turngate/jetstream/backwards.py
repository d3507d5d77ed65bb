"""Keys of a bucket by their last change, the newest first: what lists of "what happened last" are made of.

A bucket holds the revisions of all its keys in the order in which they were stored. They are walked backwards, in
windows that grow where little is left, and each key shows once, at its newest revision. A key that changes while
somebody walks moves to the beginning: the next walk shows it there.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Final

from msgspec import Struct

from turngate.jetstream.direct import PAGE, Stored, read_page
from turngate.jetstream.store import Store

_WINDOW: Final = 128
_WIDEST: Final = 1 << 20


class Window(Struct, frozen=True):
    """A part of a bucket: those revisions in it that are the newest of their keys, newest first.

    `first` is the revision before which to go on, 1 at the bucket's beginning; `looked` is how many were read.
    """

    newest: tuple[Stored, ...]
    first: int
    looked: int


def anything(_stored: Stored) -> bool:
    """Want whatever there is."""
    return True


async def backwards(
    store: Store, before: int = 0, keys: str = ">", wanted: Callable[[Stored], bool] = anything
) -> AsyncGenerator[Window, None]:
    """Yield the windows of a bucket, from a revision back to the beginning.

    Args:
        store: the bucket.
        before: the revision before which to begin; 0 for the end.
        keys: which keys, as a filter.
        wanted: which revisions; asked first, because it takes a request to find out whether one is the newest.

    Raises:
        Unavailable: the bucket did not answer.
    """
    state = (await store.requester.api(f"STREAM.INFO.{store.stream}"))["state"]
    # Where nothing is left, or nothing is yet, there is nothing to walk, whatever somebody asks for.
    oldest, end = max(1, int(state["first_seq"])), int(state["last_seq"]) + 1
    before = min(before or end, end)
    width = _WINDOW
    while before > oldest:
        first = max(oldest, before - width)
        found = await _between(store, first, before, keys)
        yield Window(
            await _newest_of(store, [each for each in found if wanted(each)]),
            first if first > oldest else 1,
            len(found),
        )
        before = first
        # Old revisions leave: where a window is nearly empty, the next one is wider.
        width = min(width * 4, _WIDEST) if len(found) < _WINDOW // 4 else _WINDOW


async def _between(store: Store, first: int, before: int, keys: str) -> list[Stored]:
    """Return the revisions from `first` on and before `before`, oldest first."""
    found: list[Stored] = []
    after, more = first - 1, True
    while more:
        some, more = await read_page(store.requester, store.stream, after, PAGE, store.subject(keys))
        for stored in some:
            if stored.sequence >= before:
                return found
            found.append(stored)
            after = stored.sequence
    return found


async def _newest_of(store: Store, found: list[Stored]) -> tuple[Stored, ...]:
    last = {store.key_of(stored.subject): stored for stored in found}
    newest = await asyncio.gather(*(store.load(key) for key in last))
    kept = [
        stored
        for stored, entry in zip(last.values(), newest, strict=True)
        if entry.revision == stored.sequence and entry.value
    ]
    return tuple(sorted(kept, key=lambda stored: stored.sequence, reverse=True))
