"""The delegated tasks and what the gate made of them."""

from typing import Final

from msgspec import Struct

from turngate.console.views.texts import Chip, count, one_line, words
from turngate.console.views.times import Time, time
from turngate_contracts.tasks import ConclusionEntry, ConclusionsPage
from turngate_protocol.conclusion.record import ConclusionPhase

STATUS: Final = {"success": "good", "partial": "warn", "failed": "bad", "blocked": "bad"}


class TaskRow(Struct, frozen=True):
    """A task in the list; `found` are the gate's findings that ask for a look."""

    session: str
    task: str
    chip: Chip
    changed: Time
    title: str
    runner: str
    pool: str
    engine: str
    project: str
    found: tuple[Chip, ...]


class TasksView(Struct, frozen=True):
    """Everything that the list shows; `next` leads to the next page, empty when there is none.

    `session` is the one whose tasks are listed alone, empty where all are.
    """

    rows: tuple[TaskRow, ...]
    next: str
    session: str


def page(listed: ConclusionsPage, now: int, session: str = "") -> TasksView:
    """Return what the list of tasks, of one session or of all, shows at `now`, in ms since the epoch."""
    narrowed = f"&session={session}" if session else ""
    older = f"/tasks?cursor={listed.cursor}{narrowed}" if listed.more else ""
    return TasksView(tuple(_row(entry, now) for entry in listed.entries), older, session)


def status(phase: ConclusionPhase, claimed: str) -> Chip:
    """Return how a task ended, as far as that is known."""
    if phase is ConclusionPhase.RECEIVED:
        return Chip("being checked", "info")
    return Chip(words(claimed), STATUS.get(claimed, "idle")) if claimed else Chip("no conclusion", "warn")


def _row(entry: ConclusionEntry, now: int) -> TaskRow:
    found = [
        (entry.downgraded, "success not believed", "bad"),
        (entry.missing > 0, f"{entry.missing} missing", "bad"),
        (entry.unproven > 0, f"{entry.unproven} unproven", "bad"),
        (entry.uncheckable > 0, f"{entry.uncheckable} uncheckable", "warn"),
        (entry.conflicts > 0, count(entry.conflicts, "conflict"), "bad"),
        (entry.synthesized, "made up: no block", "warn"),
        (bool(entry.refusal), "parent not told", "bad"),
    ]
    return TaskRow(
        entry.session,
        entry.task,
        status(entry.phase, entry.status),
        time(entry.at, now),
        one_line(entry.title),
        one_line(entry.runner),
        one_line(entry.pool),
        one_line(entry.engine),
        one_line(entry.project),
        tuple(Chip(text, tone) for there, text, tone in found if there),
    )
