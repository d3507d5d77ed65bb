"""Burying a message that is still stored: its letter first, then it leaves its queue."""

import asyncio
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from turngate.deadletter.places import Places
from turngate.jetstream.deadletter import DeadLetters
from turngate.jetstream.direct import Stored
from turngate_contracts.dead import DeadLetter, Decided, FoundBy, LetterStatus
from turngate_contracts.errors import ErrorBody, ErrorCode

REAPER: Final = "reaper"
"""Who decides that a message goes out again which a full queue had no room for."""


class Burial(Struct, frozen=True):
    """What burying needs."""

    dead: DeadLetters
    places: Places

    async def bury(
        self,
        stream: str,
        stored: Stored,
        reason: ErrorBody,
        found_by: FoundBy,
        *,
        consumer: str = "",
        deliveries: int = 0,
    ) -> None:
        """Store a message's letter, then remove it from a work queue; elsewhere it stays, and keeps its subject.

        Raises:
            Unavailable, JetStreamError: it may be buried or not, and is not lost; bury it again.
        """
        await self._store(self._letter(stream, stored, reason, found_by, consumer, deliveries))

    async def hold(self, stream: str, stored: Stored, consumer: str) -> None:
        """Bury a message so that it goes out again by itself once its queue has room; raises as `bury`."""
        reason = ErrorBody(ErrorCode.OVERLOADED, f"{stream} was full when it was to be published again")
        letter = self._letter(stream, stored, reason, FoundBy.REAPER, consumer, 0)
        decided = Decided(REAPER, letter.at, "left behind in a full queue")
        await self._store(replace(letter, status=LetterStatus.RETRYING, decided=decided))

    def _letter(
        self, stream: str, stored: Stored, reason: ErrorBody, found_by: FoundBy, consumer: str, deliveries: int
    ) -> DeadLetter:
        return self.dead.letter(
            stream,
            stored.sequence,
            stored.subject,
            stored.body,
            stored.fields,
            reason,
            consumer=consumer,
            deliveries=deliveries,
            found_by=found_by,
        )

    async def _store(self, letter: DeadLetter) -> None:
        there: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def on_stored(error: Exception | None) -> None:
            if there.done():
                return
            if error is None:
                there.set_result(None)
            else:
                there.set_exception(error)

        self.dead.store_nowait(letter, on_stored)
        await there
        if self.places.is_queue(letter.stream):
            await self.places.delete(letter.stream, letter.sequence)
