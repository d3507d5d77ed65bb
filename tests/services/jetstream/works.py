"""Works that add names to a state, for tests of lanes."""

from collections.abc import Callable, Iterable

import msgspec
from msgspec import Struct

from tests.waiting import wait_until
from turngate.jetstream.direct import Stored, read_page
from turngate.jetstream.keyed import Lanes, Save
from turngate.jetstream.store import Event, Store

EVENT = Event("count.changed", 1_700_000_000_000)


class Count(Struct, frozen=True, omit_defaults=True):
    """The state of these tests: what was added, in order."""

    added: tuple[str, ...] = ()
    op: str = ""


Decide = Callable[[Count | None], Save[Count] | None]

encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder(Count).decode


class Work:
    """A work that keeps what it was told."""

    def __init__(self, key: str, decide: Decide, *, likely_new: bool = False) -> None:
        self.key = key
        self.likely_new = likely_new
        self.state: Count | None = None
        self.revision = 0
        self.error: Exception | None = None
        self.told = 0
        self.seen: list[Count | None] = []
        self._decide = decide

    def decide(self, state: Count | None) -> Save[Count] | None:
        self.seen.append(state)
        return self._decide(state)

    def done(self, state: Count | None, revision: int, /) -> None:
        self.told += 1
        self.state, self.revision = state, revision

    def failed(self, error: Exception) -> None:
        self.told += 1
        self.error = error


def add(key: str, name: str, *, likely_new: bool = False) -> Work:
    """Add a name once, as a message that may be repeated does."""

    def decide(state: Count | None) -> Save[Count] | None:
        added = state.added if state is not None else ()
        return None if name in added else Save(Count((*added, name)), EVENT)

    return Work(key, decide, likely_new=likely_new)


def look(key: str) -> Work:
    return Work(key, lambda _: None)


def make_lanes(store: Store, **options: int) -> Lanes[Count]:
    return Lanes(store, encode, decode, **options)


async def told(works: Iterable[Work]) -> None:
    waiting = list(works)
    await wait_until(lambda: all(work.told for work in waiting), why="a work was not told its outcome")


async def run(lanes: Lanes[Count], *works: Work) -> None:
    for work in works:
        lanes.submit(work)
    await told(works)


async def stored(store: Store, key: str = "k") -> Count:
    entry = await store.load(key)
    assert entry.value is not None
    return decode(entry.value)


async def revisions(store: Store, key: str = "k") -> list[Stored]:
    return (await read_page(store.requester, store.stream, 0, 256, store.subject(key)))[0]
