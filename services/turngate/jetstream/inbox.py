"""The inbox bucket: what waits for a person, over all sessions and kinds; gone when it no longer waits.

Several processes derive entries from states, and an older one may be late. Each entry, and each tombstone, therefore
carries the revision of the state that it came from; what came from an older state never replaces what came from a
newer. What a process wrote last it tries to replace without reading, and so it does where it wrote nothing: the
compare-and-set tells when others did. Only a read shows that nothing is to be written.
"""

import logging
from collections import OrderedDict
from typing import Final

from msgspec import Struct

from turngate.jetstream.request import Requester
from turngate.jetstream.store import Conflict, Store
from turngate_contracts import codec
from turngate_contracts.errors import InvalidMessage
from turngate_contracts.headers import SOURCE_REVISION
from turngate_contracts.ids import check_id
from turngate_contracts.messages import SCHEMAS, InboxPage
from turngate_contracts.subjects import Subjects
from turngate_protocol.inbox import InboxEntry

log = logging.getLogger(__name__)

TOMBSTONE_S: Final = 3600
"""How long a tombstone stays to fence off late writers."""
MAX_PAGE: Final = 1000
REMEMBERED: Final = 4_096
"""Of how many entries a process remembers what it wrote."""
_TRIES: Final = 20


class _There(Struct, frozen=True, gc=False):
    """What is at a key: its revision, the revision of the state that it came from, and its value (None: no entry)."""

    revision: int = 0
    source: int = 0
    value: bytes | None = None


_NOTHING: Final = _There()


class Inbox:
    """The inbox of one namespace."""

    def __init__(self, requester: Requester, subjects: Subjects) -> None:
        self.store = Store(requester, subjects, "inbox", SCHEMAS[InboxEntry])
        self._written: OrderedDict[str, _There] = OrderedDict()

    async def show(self, entry: InboxEntry, revision: int) -> None:
        """Show an entry that the state at `revision` wants; unchanged entries keep their place.

        Raises:
            Unavailable: the bucket did not answer; nothing or all of it was done.
        """
        await self._set(f"{entry.kind}.{entry.session}", codec.encode(entry), revision)

    async def clear(self, kind: str, session: str, revision: int) -> None:
        """Show no entry of this kind for a session, which is what the state at `revision` wants; raises as `show`."""
        await self._set(f"{kind}.{session}", None, revision)

    async def page(self, cursor: int, limit: int, kind: str = "") -> InboxPage:
        """Return entries, oldest first, from a cursor on; reads only what the page needs.

        Raises:
            InvalidId: the kind is none.
            Unavailable: the bucket did not answer.
        """
        keys = f"{check_id('kind', kind)}.*" if kind else ">"
        found, cursor, more = await self.store.page(cursor, max(1, min(limit, MAX_PAGE)), keys)
        entries = []
        for each in found:
            try:
                entries.append(codec.decode(each.value or b"", InboxEntry, "an inbox entry"))
            except InvalidMessage as error:  # one that can't be read must not hide the others
                log.error("inbox entry %s at revision %d is passed over: %s", each.key, each.revision, error)
        return InboxPage(tuple(entries), cursor, more)

    async def _set(self, key: str, value: bytes | None, revision: int) -> None:
        there, was_read = self._written.pop(key, _NOTHING), False
        for _ in range(_TRIES):
            wanted = there.source <= revision and there.value != value
            # Where no entry is, a tombstone is put all the same: one from an older state may be on its way.
            if wanted or (value is None and there.value is None and there.source < revision):
                stored = await self._replace(key, there.revision, value, revision)
                if stored:
                    self._remember(key, _There(stored, revision, value))
                    return
            elif was_read:
                return
            there, was_read = await self._read(key), True
        raise Conflict(key)

    async def _read(self, key: str) -> _There:
        entry = await self.store.load(key)
        return _There(entry.revision, int(entry.headers().get(SOURCE_REVISION, "0")), entry.value)

    async def _replace(self, key: str, there: int, value: bytes | None, revision: int) -> int:
        """Replace the revision that is `there`, and return the new one, or 0 where another one is there."""
        extra = {SOURCE_REVISION: str(revision)}
        try:
            if value is None:
                return await self.store.delete(key, there, extra, TOMBSTONE_S)
            return await self.store.put(key, value, there, extra)
        except Conflict:
            return 0

    def _remember(self, key: str, written: _There) -> None:
        self._written[key] = written
        if len(self._written) > REMEMBERED:
            self._written.popitem(last=False)
