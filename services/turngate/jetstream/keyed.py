"""Turning messages into states: one lane per key, load, decide, save with compare-and-set, tell.

A `Work` is one message or request about one key. Its `decide` is pure: it gets the newest state and returns what to
save, or nothing when the state already says what to answer. It may be called again with a newer state when another
process saved first. Works of one key run one after the other, so that the messages of a session do not conflict with
themselves; different keys run at once, without a task or a timer per message.

Killed before the save: the message comes again. Killed after it: it comes again, and `decide` finds its outcome in the
state. The cache is only that: a save that it misled is refused by the server. A save whose confirmation got lost is
looked for by the operation id that every state carries: it is either the newest state, or decided anew.
"""

import asyncio
import logging
import random
import secrets
from collections import OrderedDict, deque
from collections.abc import Callable
from functools import partial
from typing import Final, Generic, Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from turngate.jetstream.request import Interrupted, RequestTimeout
from turngate.jetstream.store import Conflict, Entry, Event, Store
from turngate_contracts.errors import Overloaded

log = logging.getLogger(__name__)


class State(Protocol):
    """What a state must have: the id of the operation that made this revision."""

    @property
    def op(self) -> str:
        """The operation id."""


S = TypeVar("S", bound=State)

MAX_CONFLICTS: Final = 12
QUICK_TRIES: Final = 4
"""How often a work that lost is tried again at once; who won saves on from its cache, and wins until it pauses."""
FIRST_PAUSE_MS: Final = 5
"""How long a work waits then; twice as long each time, 1.3 s in all."""
FAIR_DEPTH: Final = 4
"""From how many works of its key before it on a message leaves its place in the pull window to other keys."""
MOST_OF_KEY: Final = 1_024
MOST_WAITING: Final = 16_384
"""How many works may wait, of one key and of all; more are refused as overloaded."""
RETRY_AFTER_MS: Final = 1_000
CACHE_BYTES: Final = 32 * 1024 * 1024
ENTRY_BYTES: Final = 512
"""What a cached key costs beside its state: also one that has none, which anybody may ask for."""


class Save(Struct, Generic[S], frozen=True):
    """A new state, and the event that it is."""

    state: S
    event: Event


class Work(Protocol[S]):
    """One message or request about one key."""

    key: str
    likely_new: bool
    """Whether the key probably has no state yet: the first save is then tried without reading first."""

    def decide(self, state: S | None) -> Save[S] | None:
        """Return what to save, or None when nothing changes. Pure; may be called more than once."""

    def done(self, state: S | None, revision: int, /) -> None:
        """Tell the outcome: the state is stored at `revision`."""

    def failed(self, error: Exception) -> None:
        """Tell that the outcome is unknown or impossible for now."""


class _Cached(Struct, Generic[S], frozen=True, gc=False):
    state: S | None
    revision: int
    size: int


class Lanes(Generic[S]):
    """The works of one bucket in one process."""

    def __init__(
        self,
        store: Store,
        encode: Callable[[S], bytes],
        decode: Callable[[bytes], S],
        cache_bytes: int = CACHE_BYTES,
    ) -> None:
        self.store = store
        self.conflicts = 0
        self.saves = 0
        self._encode = encode
        self._decode = decode
        self.waiting = 0
        # What waits behind the work of its key that is under way; most often nothing does.
        self._lanes: dict[str, deque[Work[S]] | None] = {}
        self._ready: deque[Work[S]] = deque()
        # Unique over processes and restarts; the counter makes it unique within this one.
        self._process = secrets.token_hex(6)
        self._running = False
        # A plain dict looks for its first key past all that were removed before it.
        self._cache: OrderedDict[str, _Cached[S]] = OrderedDict()
        self._cached_bytes = 0
        self._cache_limit = cache_bytes

    @property
    def busy(self) -> int:
        """How many keys have work under way."""
        return len(self._lanes)

    @property
    def cached(self) -> int:
        """How many keys are cached."""
        return len(self._cache)

    def held(self, key: str, revision: int) -> S | None:
        """Return the state of a key at a revision where it is cached; None says nothing."""
        cached = self._cache.get(key)
        return cached.state if cached is not None and cached.revision == revision else None

    def is_free(self, key: str) -> bool:
        """Say whether a work of a key would begin at once."""
        return key not in self._lanes

    def submit(self, work: Work[S], park: Callable[[], None] | None = None) -> None:
        """Take a work; its `done` or `failed` is called once, now or later.

        Args:
            work: what is to be done.
            park: called when it has to wait behind so many works of its key that other keys should go first.
        """
        if work.key in self._lanes:
            self._queue(work, park)
        else:
            self._lanes[work.key] = None
            self._run(work)

    def _queue(self, work: Work[S], park: Callable[[], None] | None) -> None:
        lane = self._lanes[work.key]
        if lane is None:
            lane = self._lanes[work.key] = deque()
        if len(lane) >= MOST_OF_KEY or self.waiting >= MOST_WAITING:
            whose = work.key if len(lane) >= MOST_OF_KEY else "all sessions"
            work.failed(Overloaded(f"too many messages of {whose} wait here; try again", RETRY_AFTER_MS))
            return
        lane.append(work)
        self.waiting += 1
        if park is not None and len(lane) > FAIR_DEPTH:
            park()

    def _run(self, work: Work[S]) -> None:
        # A loop, not a recursion: a lane of a thousand repeats is answered without leaving this frame.
        self._ready.append(work)
        if self._running:
            return
        self._running = True
        try:
            while self._ready:
                self._begin(self._ready.popleft())
        finally:
            self._running = False

    def _begin(self, work: Work[S]) -> None:
        cached = self._cache.get(work.key)
        if cached is not None:
            self._decide(work, cached, 0, fresh=False)
        elif work.likely_new:
            self._decide(work, _Cached(None, 0, 0), 0, fresh=False)
        else:
            self._load(work, 0)

    def _load(self, work: Work[S], tries: int, lost: str = "") -> None:
        """Read the newest state and decide; `lost` is the operation id of a save whose confirmation did not come."""

        def on_entry(entry: Entry | Exception) -> None:
            if isinstance(entry, Exception):
                self._end(work, entry)
                return
            try:
                state = None if entry.value is None else self._decode(entry.value)
            except Exception as error:  # noqa: BLE001  a state that can't be read is this key's problem only
                log.error("%s %s at revision %d can't be read: %s", self.store.bucket, work.key, entry.revision, error)
                self._end(work, error)
                return
            found = _Cached(state, entry.revision, len(entry.value or b""))
            if lost and state is not None and state.op == lost:
                self._remember(work.key, found)
                self._end(work, None, found)
            else:
                self._decide(work, found, tries, fresh=True)

        self.store.load_nowait(work.key, on_entry)

    def _load_later(self, work: Work[S], tries: int, lost: str) -> None:
        if tries <= QUICK_TRIES:
            self._load(work, tries, lost)
            return
        pause_ms = FIRST_PAUSE_MS * 2 ** (tries - QUICK_TRIES - 1) * random.uniform(0.5, 1.5)  # noqa: S311
        asyncio.get_running_loop().call_later(pause_ms / 1000, self._load, work, tries, lost)

    def _decide(self, work: Work[S], found: _Cached[S], tries: int, *, fresh: bool) -> None:
        op = f"{self._process}-{self.saves}"
        state, value = None, b""
        try:
            save = work.decide(found.state)
            if save is not None:
                # Every state is a Struct; Python's types have no intersection to say so.
                state = replace(save.state, op=op)  # type: ignore[type-var]
                value = self._encode(state)
        except Exception as error:
            log.exception("deciding about %s %s failed", self.store.bucket, work.key)
            self._end(work, error)
            return
        if save is None:
            # Only a save proves that the cache was right: an answer without one is given from a fresh read.
            if fresh:
                self._remember(work.key, found)
                self._end(work, None, found)
            else:
                self._load(work, tries)
            return
        self.saves += 1
        # Without the value: it would take the cache of the processor until the save is confirmed.
        on_saved = partial(self._saved, work, state, len(value), tries, op)
        try:
            self.store.save_nowait(work.key, value, found.revision, save.event, on_saved)
        except Exception as error:  # an event that can't be written must not hold up its key for ever
            log.exception("saving %s %s failed", self.store.bucket, work.key)
            self._end(work, error)

    def _saved(self, work: Work[S], state: S | None, size: int, tries: int, op: str, saved: int | Exception) -> None:
        if isinstance(saved, int):
            stored = _Cached(state, saved, size)
            self._remember(work.key, stored)
            self._end(work, None, stored)
            return
        self._forget(work.key)
        ambiguous = isinstance(saved, (RequestTimeout, Interrupted))
        if not ambiguous and not isinstance(saved, Conflict):
            self._end(work, saved)
            return
        self.conflicts += not ambiguous
        if tries >= MAX_CONFLICTS:
            self._end(work, Overloaded(f"too many writers on {work.key}; try again", RETRY_AFTER_MS))
        else:
            self._load_later(work, tries + 1, op if ambiguous else "")

    def _end(self, work: Work[S], error: Exception | None, found: _Cached[S] | None = None) -> None:
        try:
            if error is not None or found is None:
                work.failed(error or RuntimeError("no state"))
            else:
                work.done(found.state, found.revision)
        except Exception:  # telling one outcome must not stop the lane
            log.exception("telling the outcome for %s %s failed", self.store.bucket, work.key)
        lane = self._lanes[work.key]
        if lane:
            self.waiting -= 1
            self._run(lane.popleft())
        else:
            del self._lanes[work.key]

    def _remember(self, key: str, found: _Cached[S]) -> None:
        self._forget(key)
        self._cache[key] = found
        self._cached_bytes += found.size + ENTRY_BYTES
        while self._cached_bytes > self._cache_limit:
            self._cached_bytes -= self._cache.popitem(last=False)[1].size + ENTRY_BYTES

    def _forget(self, key: str) -> None:
        old = self._cache.pop(key, None)
        if old is not None:
            self._cached_bytes -= old.size + ENTRY_BYTES
