"""All sessions, the one that changed last first."""

from typing import Final
from urllib.parse import quote

from msgspec import Struct

from turngate.console.views.session import phase_chip
from turngate.console.views.texts import Chip, one_line, words
from turngate.console.views.times import Time, time
from turngate_contracts.sessions import SessionEntry, SessionsPage

_PREFIX: Final = "turngate."


class SessionRow(Struct, frozen=True):
    """A session in the list."""

    session: str
    pool: str
    turn: int
    chip: Chip
    changed: Time
    event: str
    title: str
    runner: str
    held: int
    rejections: int
    answered_by: str
    waiting: bool


class SessionsView(Struct, frozen=True):
    """Everything that the list shows; `next` leads to older ones, empty when there are none.

    `text` is what was searched for as it was typed, `shown` as a page may say it; both are empty where nothing was.
    """

    rows: tuple[SessionRow, ...]
    next: str
    text: str
    shown: str


def page(listed: SessionsPage, now: int, text: str = "") -> SessionsView:
    """Return what the list of sessions, or of those with a text, shows at `now`, in ms since the epoch."""
    rows = tuple(_row(entry, now) for entry in listed.entries)
    searched = f"&q={quote(text, safe='')}" if text else ""
    older = f"/sessions?cursor={listed.cursor}{searched}" if listed.more else ""
    return SessionsView(rows, older, text, one_line(text))


def _row(entry: SessionEntry, now: int) -> SessionRow:
    chip = Chip("waits for you", "ask") if entry.waiting else phase_chip(entry.phase)
    return SessionRow(
        entry.session,
        one_line(entry.pool),
        entry.turn,
        chip if entry.turn else Chip("no turn yet"),
        time(entry.at, now),
        words(entry.event.removeprefix(_PREFIX).replace(".", " ")),
        one_line(entry.title),
        one_line(entry.runner),
        entry.held,
        entry.rejections,
        one_line(entry.answered_by),
        entry.waiting,
    )
