"""The questions that wait, over all sessions, oldest first."""

from collections.abc import Mapping

from msgspec import Struct

from turngate.console.views.question import asks, kind_of
from turngate.console.views.texts import one_line
from turngate.console.views.times import Time, due, time
from turngate_contracts.messages import InboxPage
from turngate_contracts.questions import QuestionFound


class QuestionRow(Struct, frozen=True):
    """A question in the list; `kind` says how it is answered, `options` are the labels of the first part."""

    session: str
    pool: str
    since: Time
    expires: Time | None
    header: str
    title: str
    kind: str
    options: tuple[str, ...]
    runner: str
    parent: str
    task: str


class QuestionsPage(Struct, frozen=True):
    """Everything that the list shows; `cursor` leads to the next page, empty when there is none."""

    rows: tuple[QuestionRow, ...]
    cursor: str


def page(listed: InboxPage, questions: Mapping[str, QuestionFound], now: int) -> QuestionsPage:
    """Return what the list of waiting questions shows at `now`, in ms since the epoch."""
    rows = []
    for entry in listed.entries:
        found = questions.get(entry.session)
        if found is None or found.pending is None:
            continue
        request, lineage = found.pending.request, found.pending.lineage
        first = request.questions[0] if request.questions else None
        rows.append(
            QuestionRow(
                entry.session,
                one_line(entry.pool),
                time(entry.since, now),
                due(found.pending.expires_at, now),
                one_line(first.header) if first else "",
                asks(request),
                kind_of(request),
                tuple(one_line(option.label) for option in first.options) if first else (),
                one_line(found.pending.runner),
                lineage.parent_session if lineage else "",
                one_line(lineage.task) if lineage else "",
            )
        )
    return QuestionsPage(tuple(rows), str(listed.cursor) if listed.more else "")
