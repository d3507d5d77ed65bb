"""All sessions, the one that changed last first."""

from typing import Final

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
    """Everything that the list shows; `cursor` leads to older ones, empty when there are none."""

    rows: tuple[SessionRow, ...]
    cursor: str


def page(listed: SessionsPage, now: int) -> SessionsView:
    """Return what the list of sessions shows at `now`, in ms since the epoch."""
    rows = tuple(_row(entry, now) for entry in listed.entries)
    return SessionsView(rows, str(listed.cursor) if listed.more else "")


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
