"""All objectives by session: where each stands, what goes on, and whether anybody is waited for."""

from typing import Final

from msgspec import Struct

from turngate.console.views.said import SILENCE, News, Said, of_run
from turngate.console.views.texts import Chip, one_line, short, words
from turngate.console.views.times import Time, time
from turngate_contracts.esm import ObjectiveEntry, ObjectivesPage
from turngate_protocol.esm.activity import Activity, ActivityKind
from turngate_protocol.esm.activity import doing as activity_doing
from turngate_protocol.esm.objective import Status
from turngate_protocol.esm.present import format_duration

STATUS: Final = {
    Status.ACTIVE: "info",
    Status.PAUSED: "warn",
    Status.BLOCKED: "bad",
    Status.USAGE_LIMITED: "bad",
    Status.COMPLETE_CANDIDATE: "ask",
    Status.COMPLETE: "good",
}
ACTIVITY: Final = {
    ActivityKind.RUNNING: "info",
    ActivityKind.WAITING_FOR_RUNNER: "warn",
    ActivityKind.WAITING_FOR_PERSON: "bad",
    ActivityKind.PAUSED: "warn",
    ActivityKind.COMPLETE: "good",
}


class ObjectiveRow(Struct, frozen=True):
    """An objective in a list; `streaks` are blocked, rejected and recovered runs in a row."""

    session: str
    chip: Chip
    phase: str
    title: str
    doing: Chip
    pool: str
    changed: Time
    runs: int
    tokens: str
    took: str
    streaks: str
    remaining: int
    guidance: int
    said: Said | None


class Tab(Struct, frozen=True):
    """A way to narrow the list down."""

    href: str
    label: str
    here: bool


class ObjectivesView(Struct, frozen=True):
    """Everything that the list shows; `next` leads to the next page, empty when there is none."""

    rows: tuple[ObjectiveRow, ...]
    tabs: tuple[Tab, ...]
    status: str
    next: str


def page(
    listed: ObjectivesPage,
    status: Status | None,
    now: int,
    news: News = SILENCE,
) -> ObjectivesView:
    """Return what the list of objectives of one status, or of all, shows at `now`, in ms since the epoch.

    `news` is what their agents said last.
    """
    tabs = (Tab("/objectives", "all", status is None), *(_tab(each, status) for each in Status))
    narrowed = f"&status={status}" if status else ""
    return ObjectivesView(
        tuple(row(entry, now, news) for entry in listed.entries),
        tabs,
        words(status or ""),
        f"/objectives?cursor={listed.cursor}{narrowed}" if listed.more else "",
    )


def doing(activity: Activity, now: int, runners: int = -1) -> Chip:
    """Say in words what goes on.

    Args:
        activity: what does.
        now: ms since the epoch.
        runners: how many live runners could take the role that is wanted; -1 where that is not known.
    """
    return Chip(one_line(activity_doing(activity, now, runners)), ACTIVITY.get(activity.kind, "idle"))


def row(entry: ObjectiveEntry, now: int, news: News = SILENCE) -> ObjectiveRow:
    """Return an objective as a row of a list."""
    return ObjectiveRow(
        entry.session,
        Chip(words(entry.status), STATUS[entry.status]),
        words(entry.phase),
        one_line(entry.title),
        doing(entry.activity, now, entry.runners),
        one_line(entry.pool),
        time(entry.at, now),
        entry.runs,
        short(entry.tokens_used),
        format_duration(entry.time_used_ms),
        streaks(entry.blocked_count, entry.rejection_count, entry.recovery_count),
        entry.remaining,
        entry.guidance,
        of_run(entry.session, entry.activity, news),
    )


def streaks(blocked: int, rejected: int, recovered: int) -> str:
    """Return in words what happens in a row, empty when nothing does."""
    told = [(blocked, "blocked"), (rejected, "rejected"), (recovered, "recovered")]
    return ", ".join(f"{number}× {name}" for number, name in told if number)


def _tab(status: Status, here: Status | None) -> Tab:
    return Tab(f"/objectives?status={status}", words(status), status is here)
