"""The inbox bucket: what waits for a person, over all sessions and kinds; gone when it no longer waits.

Several processes derive entries from states, and an older one may be late. Each entry, and each tombstone, therefore
carries the revision of the state that it came from; what came from an older state never replaces what came from a
newer.
"""

import logging
from typing import Final

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
_TRIES: Final = 20


class Inbox:
    """The inbox of one namespace."""

    def __init__(self, requester: Requester, subjects: Subjects) -> None:
        self.store = Store(requester, subjects, "inbox", SCHEMAS[InboxEntry])

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
        for _ in range(_TRIES):
            there = await self.store.load(key)
            source = int(there.headers().get(SOURCE_REVISION, "0"))
            if source > revision or (value is not None and there.value == value):
                return
            # Where no entry is, a tombstone is put all the same: one from an older state may be on its way.
            if value is None and there.value is None and source == revision:
                return
            extra = {SOURCE_REVISION: str(revision)}
            try:
                if value is None:
                    await self.store.delete(key, there.revision, extra, TOMBSTONE_S)
                else:
                    await self.store.put(key, value, there.revision, extra)
            except Conflict:
                continue
            return
        raise Conflict(key)
