"""The list of sessions, the last changed first."""

import contextlib
from collections.abc import Callable
from typing import Final

import msgspec
from msgspec import Struct

from turngate.jetstream.backwards import anything, backwards
from turngate.jetstream.direct import PAGE, Stored
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
    entries: list[SessionEntry] = []
    looked, before = 0, 1
    wanted = _wanted(pool, text.casefold()) if pool or text else anything
    async with contextlib.aclosing(backwards(store, cursor, wanted=wanted)) as windows:
        async for window in windows:
            for stored in window.newest:
                if len(entries) == limit:
                    return SessionsPage(tuple(entries), entries[-1].revision, True)
                entries.append(_entry(stored))
            looked, before = looked + window.looked, window.first
            if looked >= READ_AT_MOST:
                break
    return SessionsPage(tuple(entries), before, before > 1)


def _wanted(pool: str, text: str) -> Callable[[Stored], bool]:
    def wanted(stored: Stored) -> bool:
        if not stored.body:
            return False
        state = _state(stored)
        report = state.current.report
        named = text in state.session.casefold() or (report is not None and text in report.headline.casefold())
        return named and pool in ("", state.pool)

    return wanted


def _state(stored: Stored) -> _Session:
    return codec.decode(stored.body, _Session, "a session's state")


def _entry(stored: Stored) -> SessionEntry:
    state = _state(stored)
    turn, cause = state.current, state.cause
    return SessionEntry(
        state.session,
        state.pool,
        stored.sequence,
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
