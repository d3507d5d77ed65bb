"""What happened to a session's objectives, in order and once, from revisions and events.

Each revision carries the causes that made it, and the events stream holds copies of all revisions for a week, the
bucket the last ones of each session for ever. Where the bucket still reaches as far back, it is read alone; else the
events come first and the bucket goes on where they end. The number that a session's changes are counted with tells what
was shown already, so a page may overlap another and still shows nothing twice. Looks of the watchdog are no news.
"""

import re
from collections import deque
from typing import Final

from msgspec import Struct

from turngate.jetstream.direct import Stored, read_page
from turngate.jetstream.store import Store
from turngate.supervisor.lane import new_causes
from turngate_contracts import codec
from turngate_contracts.errors import InvalidMessage, shown
from turngate_contracts.esm import MAX_PAGE, HistoryPage
from turngate_contracts.subjects import Subjects
from turngate_protocol.esm.state import Cause, CauseType, EsmState

_CURSOR: Final = re.compile(r"([be])\.([0-9]{1,18})\.([0-9]{1,18})", re.ASCII)
_READ_AT_ONCE: Final = 32
"""Revisions that are read in one go: states may be large."""
_ANY_NUMBER: Final = 1 << 30
_SOURCE: Final = "Nats-Stream-Source"


class _Place(Struct, frozen=True):
    """Where a reader is: in the events or in the bucket, after which message, and after which change of the session."""

    in_events: bool
    sequence: int
    change: int

    def text(self) -> str:
        """Return it as a cursor."""
        return f"{'e' if self.in_events else 'b'}.{self.sequence}.{self.change}"


class History:
    """Reads the history of the objectives of one namespace."""

    def __init__(self, store: Store, subjects: Subjects) -> None:
        self._store = store
        self._subjects = subjects
        self._events = subjects.stream("events")

    async def page(self, session: str, cursor: str, limit: int) -> HistoryPage:
        """Return what happened after a cursor, oldest first.

        Raises:
            InvalidMessage: no page gave that cursor.
        """
        limit = max(1, min(limit, MAX_PAGE))
        place = _parsed(cursor) if cursor else await self._beginning(session)
        found: list[Cause] = []
        more = True
        while more and len(found) < limit:
            causes, place, more = await self._read(session, place, limit - len(found))
            found += causes
        return HistoryPage(tuple(found), place.text(), more)

    async def before(self, session: str, change: int, limit: int) -> HistoryPage:
        """Return the last things that happened before a change of a session, oldest first."""
        limit = max(1, min(limit, MAX_PAGE))
        found = await self._last(session, _Place(False, 0, 0), change, limit + 1)
        if len(found) <= limit:
            # The bucket does not reach that far back; the events may.
            beginning = await self._beginning(session)
            if beginning.in_events:
                found = await self._last(session, beginning, change, limit + 1)
        return HistoryPage(found[-limit:], "", len(found) > limit)

    async def _last(self, session: str, place: _Place, change: int, count: int) -> tuple[Cause, ...]:
        """Return the last so many causes from a place on and before a change."""
        found: deque[Cause] = deque(maxlen=count)
        more = True
        while more and place.change < change:
            causes, place, more = await self._read(session, place, _ANY_NUMBER)
            found += [cause for cause in causes if cause.revision < change]
        return tuple(found)

    async def _beginning(self, session: str) -> _Place:
        kept, _ = await self._some(session, _Place(False, 0, 0), 1)
        if kept and _change(kept[0]) > 1:
            older, _ = await self._some(session, _Place(True, 0, 0), 1)
            if older and _change(older[0]) < _change(kept[0]):
                return _Place(True, 0, 0)
        return _Place(False, 0, 0)

    async def _read(self, session: str, place: _Place, most: int) -> tuple[list[Cause], _Place, bool]:
        """Return some causes, the place behind them, and whether there are more."""
        page, more = await self._some(session, place, _READ_AT_ONCE)
        found: list[Cause] = []
        source = 0
        for stored in page:
            new = new_causes(codec.decode(stored.body, EsmState, "a session's objective"), place.change)
            news = [cause for cause in new if cause.type is not CauseType.WATCHED]
            if len(found) + len(news) > most:
                kept = news[: most - len(found)]
                change = kept[-1].revision if kept else place.change
                # This revision is read again for the rest of it.
                return [*found, *kept], _Place(place.in_events, place.sequence, change), True
            found += news
            change = new[-1].revision if new else place.change
            place = _Place(place.in_events, stored.sequence, change)
            source = _source_of(stored)
        if place.in_events and not more:
            return found, _Place(False, source, place.change), True
        return found, place, more

    async def _some(self, session: str, place: _Place, count: int) -> tuple[list[Stored], bool]:
        subject = self._subjects.event("objectives", session) if place.in_events else self._store.subject(session)
        stream = self._events if place.in_events else self._store.stream
        return await read_page(self._store.requester, stream, place.sequence, count, subject)


def _parsed(cursor: str) -> _Place:
    parts = _CURSOR.fullmatch(cursor)
    if parts is None:
        raise InvalidMessage(f"cursor {shown(cursor)} must be empty or one that a page gave", field="cursor")
    return _Place(parts[1] == "e", int(parts[2]), int(parts[3]))


class _Counted(Struct):
    """The part of a state that says which change of its session it is."""

    revision: int = 0


def _change(stored: Stored) -> int:
    return codec.decode(stored.body, _Counted, "a session's objective").revision


def _source_of(stored: Stored) -> int:
    """Return the revision in the bucket that an event is a copy of, 0 where that is not known."""
    parts = stored.fields.get(_SOURCE, "").split(" ")
    return int(parts[1]) if len(parts) > 1 and parts[1].isdecimal() else 0
