"""One subscription to the events for all browsers, and what each browser has not read yet.

The hub follows the events stream once and keeps the last events as (sequence, kind, key, type), never their states. A
browser has a map of what it has not read, one entry a key with the newest sequence: a browser that does not read costs
a bounded map, and nobody waits for it. When the map is full the browser is told to load its page anew instead. A
browser that comes back says the last sequence that it saw, and gets what came after it from the last events or from the
stream; where neither goes back so far, or too much happened, it is told to load its page anew. Each way it ends with
the newest state.

What running agents say passes by as it comes, paced and coalesced: it is no state, and nobody catches up on it.
"""

import asyncio
import contextlib
import logging
from collections import deque
from typing import Any, Final

import msgspec
from msgspec import Struct

from turngate.console.views.texts import one_line
from turngate.jetstream.connect import Connection, parse_headers
from turngate.jetstream.direct import PAGE, read_page
from turngate.jetstream.events import EventReader, StreamEvent
from turngate.jetstream.request import Requester
from turngate_contracts import codec
from turngate_contracts.errors import InvalidMessage, Unavailable
from turngate_contracts.progress import RoleProgressed
from turngate_contracts.subjects import Subjects

log = logging.getLogger(__name__)

RING: Final = 8_192
"""Events that are remembered for browsers that come back."""
MOST_UNREAD: Final = 1_000
"""Keys that one browser may have unread before it is told to load its page anew."""
MOST_NEWS: Final = 1_000
"""Sessions whose agents' last lines one browser may have unread."""
NEWS_S: Final = 0.25
"""How long news gather: a thousand agents must not mean a thousand writes a second to each browser."""
MOST_REPLAYED: Final = 4 * PAGE
"""Events that are read from the stream for one browser that comes back."""
CHECK_S: Final = 10.0
RETRY_S: Final = 0.5
KINDS: Final = frozenset({"turns", "questions", "conclusions", "objectives"})


class Change(Struct, frozen=True):
    """Something that a browser may want to show anew. `type` is the event's, such as `turngate.turn.answered`."""

    sequence: int
    kind: str
    key: str
    type: str = ""


class News(Struct, frozen=True):
    """What a running agent says. Only the last line of a session counts, and one that is missed is no loss."""

    sequence: int
    session: str
    data: dict[str, Any]


class Browser:
    """What one open browser has not read yet."""

    def __init__(self, owner: str) -> None:
        self.owner = owner
        self.wake = asyncio.Event()
        self.closed = False
        self._unread: dict[tuple[str, str], Change] = {}
        self._news: dict[str, News] = {}
        self._ring: asyncio.TimerHandle | None = None
        self._reset = ""
        self._reset_at = 0
        self._connected: bool | None = None
        self._told_connected: bool | None = None

    @property
    def unread(self) -> int:
        """How many keys wait to be read."""
        return len(self._unread)

    def offer(self, change: Change) -> None:
        """Have a change read next; it replaces an unread one of the same key."""
        place = (change.kind, change.key)
        # Taken out first: the map stays in the order of sequences, so that an id never goes back.
        self._unread.pop(place, None)
        if len(self._unread) >= MOST_UNREAD:
            self.reset("slow", change.sequence)
            return
        self._unread[place] = change
        self.wake.set()

    def mention(self, news: News) -> None:
        """Have news read soon, in place of older ones of the same session; with too many of them these are left out."""
        if news.session in self._news or len(self._news) < MOST_NEWS:
            self._news[news.session] = news
        if self._ring is None:
            self._ring = asyncio.get_running_loop().call_later(NEWS_S, self.wake.set)

    def retract(self) -> list[Change]:
        """Take back what is unread, oldest first."""
        unread = list(self._unread.values())
        self._unread.clear()
        return unread

    def reset(self, reason: str, sequence: int) -> None:
        """Have the page loaded anew; what it has not read is in it then."""
        self._unread.clear()
        self._news.clear()
        self._reset, self._reset_at = reason, sequence
        self.wake.set()

    def set_connected(self, connected: bool) -> None:
        """Have the browser told whether the NATS server is there."""
        self._connected = connected
        self.wake.set()

    def close(self) -> None:
        """End the stream; the browser comes back by itself and goes on where it was."""
        self.closed = True
        if self._ring is not None:
            self._ring.cancel()
        self.wake.set()

    def take(self) -> bytes:
        """Return what is unread as server-sent events, and have it read."""
        self.wake.clear()
        parts = []
        if self._connected is not None and self._connected != self._told_connected:
            self._told_connected = self._connected
            parts.append(_event("status", {"nats": "up" if self._connected else "away"}))
        if self._reset:
            parts.append(_event("reset", {"reason": self._reset}, self._reset_at))
            self._reset = ""
        # In the order of sequences: an id says that everything up to it was told.
        told: list[Change | News] = sorted((*self._unread.values(), *self._news.values()), key=_sequence)
        parts += [_told(each) for each in told]
        self._unread.clear()
        self._news.clear()
        self._ring = None
        return b"".join(parts)


class Hub:
    """Follows the events of one namespace for any number of browsers."""

    def __init__(self, connection: Connection, requester: Requester, subjects: Subjects) -> None:
        self._connection = connection
        self._requester = requester
        self._subjects = subjects
        self._stream = subjects.stream("events")
        self._ring: deque[Change] = deque(maxlen=RING)
        self._floor = 0
        self._browsers: set[Browser] = set()
        self._task: asyncio.Task[None] | None = None
        self._checker: asyncio.Task[None] | None = None
        self.cursor = 0
        self._renumbered = (0, 0)
        self.following = False

    @property
    def open(self) -> int:
        """How many browsers are open."""
        return len(self._browsers)

    @property
    def connected(self) -> bool:
        """Whether the NATS server is there."""
        return bool(self._connection.is_connected)

    @property
    def unread(self) -> int:
        """How many keys all browsers together have not read."""
        return sum(browser.unread for browser in self._browsers)

    def open_by(self, owner: str) -> int:
        """Return how many browsers of one owner are open."""
        return sum(browser.owner == owner for browser in self._browsers)

    async def start(self) -> None:
        """Begin to follow at the newest event.

        Raises:
            Unavailable: the stream can't be read.
        """
        self.cursor = self._floor = await self._newest()
        self._connection.on_disconnect(self._on_connection)
        self._connection.on_reconnect(self._on_connection)
        self._task = asyncio.create_task(self._follow(), name="turngate-console-hub")
        self._checker = asyncio.create_task(self._check(), name="turngate-console-check")

    async def stop(self) -> None:
        """Follow no more, and end all streams."""
        self._connection.forget(self._on_connection)
        tasks = [task for task in (self._task, self._checker) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for browser in list(self._browsers):
            browser.close()

    async def attach(self, owner: str, after: int | None) -> Browser:
        """Add a browser.

        Args:
            owner: whose it is, for the count.
            after: the last sequence that it saw; None to begin now.
        """
        browser = Browser(owner)
        # Added before the stream is read: what happens meanwhile is offered, and offered again does no harm.
        self._browsers.add(browser)
        browser.set_connected(self.connected)
        try:
            if after is not None:
                await self._catch_up(browser, after)
        except BaseException:
            self._browsers.discard(browser)
            raise
        return browser

    def detach(self, browser: Browser) -> None:
        """Forget a browser."""
        self._browsers.discard(browser)

    async def _catch_up(self, browser: Browser, after: int) -> None:
        if after > self.cursor or self._renumbered[0] < after <= self._renumbered[1]:
            browser.reset("gap", self.cursor)
            return
        if after >= self._floor:
            for change in self._ring:
                if change.sequence > after:
                    browser.offer(change)
            return
        target = self.cursor
        if target - after > MOST_REPLAYED:
            browser.reset("gap", target)
            return
        try:
            missed = await self._read(after, target)
        except Unavailable:
            missed = None
        if missed is None:
            browser.reset("gap", target)
            return
        self._replay(browser, missed)

    @staticmethod
    def _replay(browser: Browser, missed: list[Change]) -> None:
        # What was offered while the stream was read comes behind what was missed.
        for change in (*missed, *browser.retract()):
            browser.offer(change)

    async def _read(self, after: int, target: int) -> list[Change] | None:
        """Return what the stream has between two sequences, or None where a part of it is gone."""
        found: list[Change] = []
        at, more = after, True
        while more and at < target:
            page, more = await read_page(self._requester, self._stream, at, PAGE, self._subjects.events())
            for stored in page:
                if stored.sequence != at + 1:
                    return None
                at = stored.sequence
                kind, _, key = stored.subject.removeprefix(self._subjects.events()[:-1]).partition(".")
                if kind in KINDS and at <= target:
                    found.append(Change(at, kind, key, stored.fields.get("ce-type", "")))
        return found if at >= target else None

    async def _follow(self) -> None:
        reader = EventReader(self._connection, self._requester, self._subjects)
        while True:
            try:
                async with contextlib.aclosing(reader.follow(self.cursor)) as events:
                    self.following = True
                    async for event in events:
                        self._on_event(Change(event.cursor, event.kind, event.key, event.type))
                        if event.kind == "progress" and self._browsers:
                            self._mention(event)
            except Unavailable as error:
                log.info("the events can't be followed at the moment: %s", error)
            except Exception:  # the console must not go blind without a word
                log.exception("following the events failed; it is begun anew")
            self.following = False
            await asyncio.sleep(RETRY_S)

    def _on_event(self, change: Change) -> None:
        if change.sequence <= self.cursor:
            # The server forgot its last events: what a browser saw under these numbers is not what they are now.
            self._renumbered = (change.sequence - 1, self.cursor)
        if change.sequence != self.cursor + 1:
            # A part of the stream is gone, so browsers that come back can't be told about it one by one.
            self._ring.clear()
            self._floor = change.sequence - 1
        self.cursor = change.sequence
        if change.kind not in KINDS:
            return
        if len(self._ring) == RING:
            self._floor = self._ring[0].sequence
        self._ring.append(change)
        for browser in self._browsers:
            browser.offer(change)

    def _mention(self, event: StreamEvent) -> None:
        try:
            said = codec.decode(event.data, RoleProgressed, "progress")
        except InvalidMessage as error:
            log.info("progress %d is passed over: %s", event.cursor, error)
            return
        data = msgspec.to_builtins(msgspec.structs.replace(said, progress=one_line(said.progress)))
        news = News(event.cursor, said.session, data)
        for browser in self._browsers:
            browser.mention(news)

    async def _check(self) -> None:
        """Notice when the stream was made anew: its sequences then are behind ours, and nothing would be seen."""
        while True:
            await asyncio.sleep(CHECK_S)
            try:
                newest = await self._newest()
            except Unavailable:
                continue
            if newest < self.cursor:
                log.warning("the events stream went back from %d to %d; it is followed anew", self.cursor, newest)
                await self._begin_anew(newest)

    async def _begin_anew(self, newest: int) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._ring.clear()
        self.cursor = self._floor = newest
        for browser in self._browsers:
            browser.reset("gap", newest)
        self._task = asyncio.create_task(self._follow(), name="turngate-console-hub")

    async def _newest(self) -> int:
        """Return the sequence of the newest event, 0 where there is none."""
        subject = f"$JS.API.DIRECT.GET.{self._stream}"
        wanted = msgspec.json.encode({"last_by_subj": self._subjects.events()})
        reply = await self._requester.request(subject, wanted)
        status, fields = parse_headers(reply.head)
        if status not in (0, 404):
            raise Unavailable(f"the events stream {self._stream} was not read: status {status}")
        return int(fields.get("Nats-Sequence", "0"))

    def _on_connection(self) -> None:
        for browser in self._browsers:
            browser.set_connected(self.connected)


def _sequence(told: Change | News) -> int:
    return told.sequence


def _told(told: Change | News) -> bytes:
    if isinstance(told, News):
        return _event("progress", told.data, told.sequence)
    return _event("state", msgspec.to_builtins(told), told.sequence)


def _event(name: str, data: object, sequence: int | None = None) -> bytes:
    head = f"id: {sequence}\n" if sequence is not None else ""
    # JSON has no line breaks of its own, so one data line holds it.
    return f"{head}event: {name}\ndata: {msgspec.json.encode(data).decode()}\n\n".encode()
