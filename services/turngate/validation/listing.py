"""The list of sessions, the last changed first.

The bucket holds the revisions of all sessions in the order in which they were stored. A page walks them backwards, in
windows that grow where little is left, and shows each session once, at its newest revision. A session that changes
while somebody lists moves to the beginning: the next look shows it there.
"""

import asyncio
from typing import Final

import msgspec
from msgspec import Struct

from turngate.jetstream.direct import PAGE, Stored, read_page
from turngate.jetstream.store import Store
from turngate_contracts import codec
from turngate_contracts.sessions import SessionEntry, SessionsPage
from turngate_protocol.cause import Cause
from turngate_protocol.report.session import Answer, Dismissal, Phase
from turngate_protocol.text import cut_bytes

MAX_PAGE: Final = 200
TITLE_BYTES: Final = 240
"""Longest title of an entry, in UTF-8 bytes; the whole report stands in the state."""
READ_AT_MOST: Final = 8 * PAGE
"""Revisions that one page looks at before it is given out short: a session that is busy must not read everything."""
_WINDOW: Final = 128
_WIDEST: Final = 1 << 20


class _Card(Struct):
    headline: str = ""


class _Turn(Struct):
    turn: int
    phase: Phase = Phase.OPEN
    runner: str = ""
    rejections: int = 0
    report: _Card | None = None
    choices: tuple[msgspec.Raw, ...] = ()
    answer: Answer | None = None
    dismissal: Dismissal | None = None


class _Session(Struct):
    """The part of a state that a list shows."""

    session: str
    pool: str
    current: _Turn
    cause: Cause
    held: tuple[msgspec.Raw, ...] = ()


async def page(store: Store, cursor: int, limit: int, pool: str = "", text: str = "") -> SessionsPage:
    """Return sessions whose newest revision is before a cursor, newest first.

    Args:
        store: the bucket.
        cursor: the revision before which to go on; 0 to begin with the newest.
        limit: how many entries at most.
        pool: one pool only.
        text: only those that have it in their name or their headline, in whatever case.

    Raises:
        Unavailable: the bucket did not answer.
    """
    limit = max(1, min(limit, MAX_PAGE))
    before = cursor or await _end(store)
    entries: list[SessionEntry] = []
    window, looked = _WINDOW, 0
    while before > 1 and looked < READ_AT_MOST:
        first = max(1, before - window)
        found = await _window(store, first, before)
        looked += len(found)
        for stored in await _newest_of(store, found):
            state = codec.decode(stored.body, _Session, "a session's state")
            if pool not in ("", state.pool) or not _has(state, text.casefold()):
                continue
            if len(entries) == limit:
                return SessionsPage(tuple(entries), entries[-1].revision, True)
            entries.append(_entry(state, stored.sequence))
        before = first
        # Old revisions leave: where a window is nearly empty, the next one is wider.
        window = min(window * 4, _WIDEST) if len(found) < _WINDOW // 4 else _WINDOW
    return SessionsPage(tuple(entries), before, before > 1)


async def _end(store: Store) -> int:
    info = await store.requester.api(f"STREAM.INFO.{store.stream}")
    return int(info["state"]["last_seq"]) + 1


async def _window(store: Store, first: int, before: int) -> list[Stored]:
    """Return the revisions from `first` on and before `before`, oldest first."""
    found: list[Stored] = []
    after, more = first - 1, True
    while more:
        some, more = await read_page(store.requester, store.stream, after, PAGE, store.subject(">"))
        for stored in some:
            if stored.sequence >= before:
                return found
            found.append(stored)
            after = stored.sequence
    return found


async def _newest_of(store: Store, found: list[Stored]) -> list[Stored]:
    """Return those revisions that are the newest of their keys, newest first."""
    last = {stored.subject: stored for stored in found}
    prefix = len(store.subject(""))
    newest = await asyncio.gather(*(store.load(subject[prefix:]) for subject in last))
    kept = [
        stored
        for stored, entry in zip(last.values(), newest, strict=True)
        if entry.revision == stored.sequence and entry.value
    ]
    return sorted(kept, key=lambda stored: stored.sequence, reverse=True)


def _has(state: _Session, text: str) -> bool:
    report = state.current.report
    return text in state.session.casefold() or (report is not None and text in report.headline.casefold())


def _entry(state: _Session, revision: int) -> SessionEntry:
    turn, cause = state.current, state.cause
    return SessionEntry(
        state.session,
        state.pool,
        revision,
        cause.at,
        cause.type,
        turn.turn,
        turn.phase,
        turn.runner,
        cause.actor,
        cut_bytes(turn.report.headline, TITLE_BYTES) if turn.report else "",
        bool(turn.choices) and turn.answer is None and turn.dismissal is None,
        len(turn.choices),
        turn.rejections,
        len(state.held),
        turn.answer.actor if turn.answer else "",
    )
