"""Following events from a cursor: every revision once and in order, at the reader's own pace.

The events stream republishes to live subjects, which any number of readers share without a consumer each. A live
message that follows the cursor directly is delivered as it is; any gap (a slow reader, a restart, a message that was
dropped) is filled by reading the stream from the cursor. The cursor is the stream's sequence: a reader that comes
back with it misses no state that the stream still holds. A stream that ends before the cursor was made anew, or
restored from a backup: it is read from its beginning, for nothing tells how much of it was seen. A server that was
killed may number its last events otherwise: `resuming` sees to that for whoever follows them.
"""

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import AsyncGenerator
from typing import Any, Final

from msgspec import Struct

from turngate.jetstream.connect import Connection, parse_headers
from turngate.jetstream.direct import PAGE, Stored, read_page
from turngate.jetstream.leader import is_needed as is_clustered
from turngate.jetstream.request import JetStreamError, Requester
from turngate.jetstream.resuming import Told
from turngate_contracts.errors import InvalidId, Unavailable
from turngate_contracts.headers import KV_OPERATION
from turngate_contracts.ids import check_id
from turngate_contracts.subjects import Subjects

log = logging.getLogger(__name__)

BUFFER: Final = 1024
BUFFER_BYTES: Final = 8 * 1024 * 1024
"""Live messages that wait for a slow reader; the rest is read from the stream when it comes back."""
LAG_S: Final = 0.05
LAG_TRIES: Final = 20
"""How often a stream is read again that does not hold yet what it republished: a replica may be behind."""
EVERY_KIND: Final = "*"
"""The kind that stands for all of them, beside a key: what happened to one session."""
RETRY_S: Final = 0.5
"""When a stream is read again that can't be read at the moment."""
CHECK_S: Final = 15.0
"""How often a silent reader looks into the stream all the same."""


class StreamEvent(Struct, frozen=True):
    """One event. `cursor` continues after it; `kind` and `key` name the state; `type` says what happened.

    `data` is the whole new state as JSON, empty where the state was deleted; `time` is RFC 3339 in UTC.
    """

    cursor: int
    kind: str
    key: str
    type: str
    time: str
    data: bytes
    schema: str = ""
    deleted: bool = False


class EventReader:
    """A reader of one namespace's events; it may follow several times at once."""

    def __init__(self, connection: Connection, requester: Requester, subjects: Subjects) -> None:
        self._connection = connection
        self._requester = requester
        self._subjects = subjects
        self._stream = subjects.stream("events")

    async def follow(
        self, after: int = 0, *, kind: str = "", key: str = "", until_caught_up: bool = False
    ) -> AsyncGenerator[StreamEvent, None]:
        """Yield events, oldest first, from the one after a cursor on.

        Where the stream is made anew meanwhile, or was before, its events come from the first on, with small cursors.

        Args:
            after: the last cursor seen; 0 begins with the oldest event that is kept.
            kind: one kind only, such as `turns`, or EVERY_KIND beside a key.
            key: one key only, such as a session; needs `kind`.
            until_caught_up: end when there is nothing newer, instead of waiting.

        Raises:
            Unavailable: the stream could not be read at the start; later, the reader waits until it can.
            InvalidId: `kind` or `key` could be a wildcard or another subject.
        """
        part = _filter(kind, key)
        stored_filter = f"{self._subjects.namespace}.event.{part}"
        cursor = after
        if until_caught_up:
            more = True
            while more:
                page, more = await read_page(self._requester, self._stream, cursor, PAGE, stored_filter)
                for stored in page:
                    cursor = stored.sequence
                    yield self._event(stored)
            return
        feed, told = _Feed(self._connection, whole=not kind), Told(after)
        live = await self._connection.listen(f"{self._subjects.namespace}.live.{part}", feed.on_message)
        self._connection.on_reconnect(feed.ring)
        try:
            target, lags = 0, 0
            page, more = await read_page(self._requester, self._stream, cursor, PAGE, stored_filter)
            while True:
                while feed.has_new_server():
                    place = await self._place(told, cursor, stored_filter)
                    if place != cursor:
                        log.warning("the server forgot events after %d: they are read anew", place)
                        cursor = place
                        page, more = await self._read(cursor, stored_filter)
                if not page and await self._is_made_anew(cursor):
                    log.warning("the events stream ends before event %d: it was made anew, and is read anew", cursor)
                    cursor, told = 0, Told(0)
                    page, more = await self._read(cursor, stored_filter)
                for stored in page:
                    cursor = stored.sequence
                    if told.is_new(stored):
                        yield self._event(stored)
                if not more:
                    if cursor < target and lags < LAG_TRIES:
                        lags += 1
                        await asyncio.sleep(LAG_S)
                    else:
                        lags = 0
                        feed.settle(target)
                        async with contextlib.aclosing(feed.follow(cursor)) as lively:
                            async for stored in lively:
                                cursor = stored.sequence
                                if told.is_new(stored):
                                    yield self._event(stored)
                target = feed.newest
                page, more = await self._read(cursor, stored_filter)
        finally:
            self._connection.forget(feed.ring)
            await self._connection.unlisten(live)

    async def _place(self, told: Told, cursor: int, subjects: str) -> int:
        """Return where to go on after a restart of the server; other replicas of a cluster have what one forgot."""
        if is_clustered(self._connection) or cursor == told.before:
            return cursor
        while True:
            state = await self._state()  # before what is read: what comes in between is only new
            if state is not None:
                break
            await asyncio.sleep(RETRY_S)
        held: list[Stored] = []
        after, more = told.before, True
        while more and after < cursor:
            page, more = await self._read(after, subjects)
            held += page
            after = page[-1].sequence if page else cursor
        return told.go_back(held, int(state["first_seq"]))

    async def _read(self, cursor: int, subjects: str) -> tuple[list[Stored], bool]:
        while True:
            try:
                return await read_page(self._requester, self._stream, cursor, PAGE, subjects)
            except Unavailable:
                # The reader outlives the server: what it missed is in the stream when the server is back.
                await asyncio.sleep(RETRY_S)

    async def _is_made_anew(self, cursor: int) -> bool:
        if not cursor:
            return False
        state = await self._state()
        return state is not None and int(state["last_seq"]) < cursor

    async def _state(self) -> dict[str, Any] | None:
        try:
            # The stream's leader answers; a direct get may be answered by a replica that is behind.
            info = await self._requester.api(f"STREAM.INFO.{self._stream}")
        except (Unavailable, JetStreamError):
            return None
        state: dict[str, Any] = info["state"]
        return state

    def _event(self, stored: Stored) -> StreamEvent:
        kind, _, key = stored.subject.removeprefix(f"{self._subjects.namespace}.event.").partition(".")
        fields = stored.fields
        return StreamEvent(
            stored.sequence,
            kind,
            key,
            fields.get("ce-type", ""),
            fields.get("ce-time", ""),
            stored.body,
            fields.get("Turngate-Schema", ""),
            KV_OPERATION in fields,
        )


class _Feed:
    """What the live subjects say: the messages where all are wanted, else only how far the stream is."""

    def __init__(self, connection: Connection, *, whole: bool) -> None:
        self.newest = 0
        self._connection = connection
        self._server = connection.server_id
        self._whole = whole
        self._waiting: deque[Stored] = deque()
        self._waiting_bytes = 0
        self._missed = False
        self._wake = asyncio.Event()

    def on_message(self, _subject: bytes, _reply: bytes, body: bytes, head: bytes) -> None:
        fields = parse_headers(head)[1]
        sequence = int(fields.get("Nats-Sequence", "0"))
        self.newest = max(self.newest, sequence)
        if self._whole:
            if len(self._waiting) >= BUFFER or self._waiting_bytes + len(body) > BUFFER_BYTES:
                self._missed = True
            else:
                self._waiting.append(Stored(sequence, fields.get("Nats-Subject", ""), body, fields))
                self._waiting_bytes += len(body)
        self._wake.set()

    def has_new_server(self) -> bool:
        """Say whether another start of the server answers than before; what the one before told counts no more."""
        server = self._connection.server_id
        if server == self._server:
            return False
        self._server = server
        self.newest = 0
        self._waiting.clear()
        self._waiting_bytes = 0
        self._missed = True
        return True

    def ring(self) -> None:
        """Have the stream read: something may have been missed."""
        self._missed = True
        self._wake.set()

    def settle(self, target: int) -> None:
        """Take what the stream was up to as read, whether it still holds it or not."""
        if self.newest == target:
            self.newest = 0

    async def follow(self, cursor: int) -> AsyncGenerator[Stored, None]:
        """Yield live messages for as long as each follows the one before; end when the stream must be read."""
        while True:
            while self._waiting:
                if self._connection.server_id != self._server:
                    return  # where it goes on has to be found first
                stored = self._waiting.popleft()
                self._waiting_bytes -= len(stored.body)
                if stored.sequence == cursor + 1:
                    cursor = stored.sequence
                    yield stored
                elif stored.sequence > cursor:
                    self._waiting.clear()
                    self._waiting_bytes = 0
                    self._missed = True
            if self._missed or self.newest > cursor:
                self._missed = False
                return
            self._wake.clear()
            try:
                async with asyncio.timeout(CHECK_S):
                    await self._wake.wait()
            except TimeoutError:
                return


def _filter(kind: str, key: str) -> str:
    if not kind:
        if key:
            raise InvalidId("kind", kind, "a kind beside the key, such as turns")
        return ">"
    if kind != EVERY_KIND or not key:
        check_id("kind", kind)
    if not key:
        return f"{kind}.>"
    for each in key.split("."):
        check_id("key", each)
    return f"{kind}.{key}"
