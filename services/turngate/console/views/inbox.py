"""The inbox: everything that waits for a person, oldest first, with enough of each to see what it takes."""

from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct

from turngate.console.views import card, objectives
from turngate.console.views.question import asks, kind_of
from turngate.console.views.said import SILENCE, News, Said, of_session
from turngate.console.views.texts import Chip, count, one_line, words
from turngate.console.views.times import Time, due, time
from turngate_contracts.esm import ObjectiveFound, ObjectivesPage
from turngate_contracts.messages import InboxPage, TurnFound
from turngate_contracts.questions import QuestionFound
from turngate_protocol.inbox import InboxEntry

CARD: Final = "card"
QUESTION: Final = "question"
OBJECTIVE: Final = "objective"
_NONE: Final = ObjectivesPage(())


class Offer(Struct, frozen=True):
    """An option that an entry offers; `number` is its digit on the page of the entry, 0 for none."""

    number: int
    label: str
    recommended: bool = False


class InboxRow(Struct, frozen=True):
    """An entry: where it leads, what it is about, since when it waits, and what it takes."""

    kind: str
    chip: Chip
    href: str
    session: str
    pool: str
    since: Time
    title: str
    asks: str
    offers: tuple[Offer, ...]
    takes: str
    expires: Time | None = None
    parent: str = ""
    said: Said | None = None


class Unattended(Struct, frozen=True):
    """A pool in which roles wait while no live runner takes them, the objectives that they are of, and what helps."""

    pool: str
    command: str
    rows: tuple[objectives.ObjectiveRow, ...]


class InboxView(Struct, frozen=True):
    """Everything that the inbox shows; `cursor` leads to the next page, empty when there is none.

    `unattended` is not counted among what waits for a person; `unattended_more` when there is more of it, and
    `unknown` says why it could not be read.
    """

    rows: tuple[InboxRow, ...]
    cursor: str
    unattended: tuple[Unattended, ...]
    unattended_more: bool
    unknown: str


def page(
    listed: InboxPage,
    turns: Mapping[str, TurnFound],
    questions: Mapping[str, QuestionFound],
    objectives_found: Mapping[str, ObjectiveFound],
    now: int,
    *,
    waiting: ObjectivesPage = _NONE,
    unknown: str = "",
    news: News = SILENCE,
) -> InboxView:
    """Return what the inbox shows.

    Args:
        listed: the entries, oldest first.
        turns: the sessions of cards.
        questions: the sessions of questions.
        objectives_found: the sessions of objectives.
        now: ms since the epoch.
        waiting: objectives whose role waits for a runner that nobody is.
        unknown: why these are not known.
        news: what the agents of sessions said last.
    """
    rows = []
    for entry in listed.entries:
        if entry.kind == CARD:
            rows.append(_of_card(entry, turns.get(entry.session), now))
        elif entry.kind == QUESTION:
            rows.append(_of_question(entry, questions.get(entry.session), now, news))
        else:
            rows.append(_of_objective(entry, objectives_found.get(entry.session), now))
    by_pool: dict[str, list[objectives.ObjectiveRow]] = {}
    for each in waiting.entries:
        by_pool.setdefault(one_line(each.activity.pool or each.pool or "default"), []).append(objectives.row(each, now))
    unattended = tuple(
        Unattended(pool, f"turngate runner --pool {pool} -- COMMAND", tuple(found)) for pool, found in by_pool.items()
    )
    return InboxView(
        tuple(rows), str(listed.cursor) if listed.more else "", unattended, waiting.more, one_line(unknown)
    )


def _of_card(entry: InboxEntry, found: TurnFound | None, now: int) -> InboxRow:
    drawn = card.card(found.state.current.report) if found and found.state.current.turn == entry.turn else None
    asking = [block for block in drawn.blocks if block.options] if drawn else []
    offers = tuple(
        Offer(option.number, option.label, option.recommended) for block in asking for option in block.options
    )
    return InboxRow(
        CARD,
        drawn.status if drawn else Chip("needs action", "ask"),
        f"/sessions/{entry.session}",
        entry.session,
        one_line(entry.pool),
        time(entry.since, now),
        one_line(entry.title),
        asking[0].summary if asking else "",
        offers,
        f"turn {entry.turn}, {count(entry.options, 'option')}",
    )


def _of_question(entry: InboxEntry, found: QuestionFound | None, now: int, news: News) -> InboxRow:
    request = found.pending.request if found and found.pending else None
    first = request.questions[0] if request and request.questions else None
    return InboxRow(
        QUESTION,
        Chip("question", "ask"),
        f"/questions/{entry.session}",
        entry.session,
        one_line(entry.pool),
        time(entry.since, now),
        asks(request) if request else one_line(entry.title),
        one_line(first.header) if first else "",
        tuple(Offer(number, one_line(option.label)) for number, option in enumerate(first.options, 1)) if first else (),
        kind_of(request) if request else count(entry.questions, "question"),
        due(entry.expires_at, now),
        one_line(" ".join(_lineage(entry))),
        of_session(entry.session, news),
    )


def _of_objective(entry: InboxEntry, found: ObjectiveFound | None, now: int) -> InboxRow:
    state = found.state if found else None
    halt = state.halt if state else None
    objective = state.objective if state else None
    status = Chip(words(objective.status), objectives.STATUS[objective.status]) if objective else Chip("waits", "warn")
    return InboxRow(
        OBJECTIVE,
        Chip(words(halt.reason), "bad") if halt else status,
        f"/objectives/{entry.session}",
        entry.session,
        one_line(entry.pool),
        time(entry.since, now),
        one_line(objective.text if objective else entry.title),
        one_line(halt.message) if halt else "",
        (),
        "resume it, guide it, or give it another text",
    )


def _lineage(entry: InboxEntry) -> Iterator[str]:
    if entry.parent_session:
        yield f"for session {entry.parent_session}"
    if entry.task:
        yield f"task {entry.task}"
