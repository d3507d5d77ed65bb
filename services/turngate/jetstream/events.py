"""Following events from a cursor: every revision once and in order, at the reader's own pace.

The events stream republishes to live subjects, which any number of readers share without a consumer each. A live
message that follows the cursor directly is delivered as it is; any gap (a slow reader, a restart, a message that was
dropped) is filled by reading the stream from the cursor. The cursor is the stream's sequence: a reader that comes
back with it misses no state that the stream still holds.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Final

from msgspec import Struct

from turngate.jetstream.connect import Connection, parse_headers
from turngate.jetstream.direct import PAGE, Stored, read_page
from turngate.jetstream.request import Requester
from turngate_contracts.errors import Unavailable
from turngate_contracts.headers import KV_OPERATION
from turngate_contracts.subjects import Subjects

BUFFER: Final = 1024
"""Live messages that wait for a slow reader; the rest is read from the stream when it comes back."""
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
    """A reader of one namespace's events."""

    def __init__(self, connection: Connection, requester: Requester, subjects: Subjects) -> None:
        self._connection = connection
        self._requester = requester
        self._subjects = subjects
        self._stream = subjects.stream("events")
        self._buffer: deque[tuple[int, Stored]] = deque()
        self._overflowed = False
        self._wake = asyncio.Event()

    async def follow(
        self, after: int = 0, *, kind: str = "", key: str = "", until_caught_up: bool = False
    ) -> AsyncGenerator[StreamEvent, None]:
        """Yield events, oldest first, from the one after a cursor on.

        Args:
            after: the last cursor seen; 0 begins with the oldest event that is kept.
            kind: one kind only, such as `turns`.
            key: one key only, such as a session; needs `kind`.
            until_caught_up: end when there is nothing newer, instead of waiting.

        Raises:
            Unavailable: the stream could not be read at the start.
        """
        whole = not kind
        part = f"{kind}.{key}" if key else f"{kind}.>" if kind else ">"
        stored_filter = f"{self._subjects.namespace}.event.{part}"
        live = await self._connection.listen(f"{self._subjects.namespace}.live.{part}", self._on_live)
        self._connection.on_reconnect(self._ring)
        cursor = after
        try:
            while True:
                more = True
                while more:
                    page, more = await self._read(cursor, stored_filter, until_caught_up)
                    for stored in page:
                        cursor = stored.sequence
                        yield self._event(stored)
                if until_caught_up:
                    return
                async for stored in self._live(cursor, whole):
                    cursor = stored.sequence
                    yield self._event(stored)
        finally:
            await self._connection.unlisten(live)

    async def _live(self, cursor: int, whole: bool) -> AsyncIterator[Stored]:
        """Yield live messages for as long as each follows the one before; end when the stream must be read."""
        while True:
            while self._buffer:
                sequence, stored = self._buffer.popleft()
                if sequence <= cursor:
                    continue
                # With a filter the sequences have gaps of their own: a live message only says that there is something.
                if not whole or sequence != cursor + 1:
                    self._buffer.clear()
                    return
                cursor = sequence
                yield stored
            if self._overflowed:
                self._overflowed = False
                return
            self._wake.clear()
            try:
                async with asyncio.timeout(CHECK_S):
                    await self._wake.wait()
            except TimeoutError:
                return
            if not self._buffer:
                return

    async def _read(self, cursor: int, subjects: str, once: bool) -> tuple[list[Stored], bool]:
        while True:
            try:
                return await read_page(self._requester, self._stream, cursor, PAGE, subjects)
            except Unavailable:
                if once:
                    raise
                # The reader outlives the server: what it missed is in the stream when the server is back.
                await asyncio.sleep(0.5)

    def _on_live(self, _subject: bytes, _reply: bytes, body: bytes, head: bytes) -> None:
        if len(self._buffer) >= BUFFER:
            self._overflowed = True
        else:
            fields = parse_headers(head)[1]
            sequence = int(fields.get("Nats-Sequence", "0"))
            self._buffer.append((sequence, Stored(sequence, fields.get("Nats-Subject", ""), body, fields)))
        self._wake.set()

    def _ring(self) -> None:
        self._overflowed = True
        self._wake.set()

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
