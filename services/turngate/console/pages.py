"""The pages: each loads its states with as few requests as it needs, and its view makes of them what is drawn."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from turngate.console.auth import Auth
from turngate.console.drawing import Drawing
from turngate.console.fleet import read_fleet
from turngate.console.hub import Hub
from turngate.console.reading import COUNTED, Reader, Requests
from turngate.console.views import (
    fleet,
    inbox,
    objective,
    objectives,
    question,
    questions,
    session,
    sessions,
    task,
    tasks,
)
from turngate.jetstream.connect import Connection
from turngate.jetstream.request import Requester
from turngate_contracts.errors import InvalidMessage, shown
from turngate_contracts.esm import HistoryPage, ObjectiveFound
from turngate_contracts.ids import check_id
from turngate_contracts.messages import TurnFound
from turngate_contracts.questions import QuestionFound
from turngate_contracts.topology import Topology
from turngate_protocol.cause import Cause
from turngate_protocol.esm.activity import Activity, ActivityKind
from turngate_protocol.esm.objective import Status
from turngate_protocol.esm.state import EsmState
from turngate_protocol.report.session import Phase, SessionTurns, Turn

_MOST: Final = 2**53
NO_ACTIVITY: Final = Activity(ActivityKind.NONE)


class Looking(Struct, frozen=True):
    """Who looks at what."""

    request: Request
    read: Reader
    now: int

    def id(self, name: str) -> str:
        """Return a part of the path that is an id.

        Raises:
            InvalidId: it is none.
        """
        return check_id(name, self.request.path_params[name])

    def text(self, name: str) -> str:
        """Return a parameter of the query, empty where it is missing."""
        return self.request.query_params.get(name, "")

    def number(self, name: str) -> int:
        """Return a number of the query, 0 where it is missing.

        Raises:
            InvalidMessage: it is none.
        """
        text = self.text(name)
        if text and not (text.isascii() and text.isdigit() and int(text[:20]) <= _MOST):
            raise InvalidMessage(f"{name} is {shown(text)}; it must be a number that a page gave", field=name)
        return int(text or 0)


Load = Callable[[Looking], Awaitable[Any]]


class Pages:
    """The pages of one console."""

    def __init__(
        self,
        auth: Auth,
        hub: Hub,
        drawing: Drawing,
        requests: Requests,
        connection: Connection,
        requester: Requester,
        topology: Topology,
    ) -> None:
        self._auth = auth
        self._hub = hub
        self._drawing = drawing
        self._requests = requests
        self._connection = connection
        self._requester = requester
        self._topology = topology

    def routes(self) -> list[Route]:
        """Return a route for each page."""
        pages: tuple[tuple[str, str, Load], ...] = (
            ("/", "inbox", _inbox),
            ("/sessions", "sessions", _sessions),
            ("/sessions/{session}", "session", _session),
            ("/questions", "questions", _questions),
            ("/questions/{session}", "question", _question),
            ("/objectives", "objectives", _objectives),
            ("/objectives/{session}", "objective", _objective),
            ("/tasks", "tasks", _tasks),
            ("/tasks/{session}/{task}", "task", _task),
            ("/fleet", "fleet", self._fleet),
        )
        return [Route(path, self._page(f"{name}.html", load), name=name) for path, name, load in pages]

    def _page(self, template: str, load: Load) -> Callable[[Request], Awaitable[Response]]:
        async def page(request: Request) -> Response:
            actor = self._auth.require(request)
            # Taken before anything is read: what is read is at least as new.
            cursor = self._hub.cursor
            read = self._requests.by(actor.name)
            looking = Looking(request, read, time.time_ns() // 1_000_000)
            made, counted = await asyncio.gather(load(looking), read.inbox(0, COUNTED))
            response = self._drawing.page(request, actor, template, made, cursor, counted)
            if actor.session.fresh:
                self._auth.set_cookie(request, response, actor.session)
            return response

        return page

    async def _fleet(self, look: Looking) -> Any:
        found = await read_fleet(look.read, self._connection, self._requester, self._topology)
        return fleet.page(found, look.now)


async def _inbox(look: Looking) -> Any:
    listed = await look.read.inbox(look.number("cursor"))
    questions_of = [e.session for e in listed.entries if e.kind == "question"]
    turns, asked, driven, news, (waiting, unknown) = await asyncio.gather(
        look.read.each((e.session for e in listed.entries if e.kind == "card"), look.read.turn),
        look.read.each(questions_of, look.read.question),
        look.read.each((e.session for e in listed.entries if e.kind == "objective"), look.read.objective),
        look.read.said(questions_of),
        look.read.unattended(),
    )
    return inbox.page(listed, turns, asked, driven, look.now, waiting=waiting, unknown=unknown, news=news)


async def _sessions(look: Looking) -> Any:
    text = look.text("q").strip()
    return sessions.page(await look.read.sessions(look.number("cursor"), text), look.now, text)


async def _session(look: Looking) -> Any:
    name = look.id("session")
    found = (await look.read.each((name,), look.read.turn)).get(name)
    # A session whose first turn goes on is no error: its page says so, and shows the card when it comes.
    nothing = SessionTurns(name, "", Turn(0, look.now, "", Phase.ENDED), Cause("", "", look.now))
    return session.page(found or TurnFound(nothing, 0), look.now)


async def _questions(look: Looking) -> Any:
    listed = await look.read.inbox(look.number("cursor"), kind="question")
    asked = await look.read.each((entry.session for entry in listed.entries), look.read.question)
    return questions.page(listed, asked, look.now)


async def _question(look: Looking) -> Any:
    name = look.id("session")
    found = await look.read.each((name,), look.read.question)
    # A session that never asked is no error: its page says so, and shows the first question when it comes.
    return question.page(found.get(name) or QuestionFound(name, "", 0), look.now)


async def _objectives(look: Looking) -> Any:
    text = look.text("status")
    try:
        status = Status(text) if text else None
    except ValueError:
        known = ", ".join(each.value for each in Status)
        raise InvalidMessage(f"status is {shown(text)}; it must be one of {known}", field="status") from None
    listed = await look.read.objectives(look.text("cursor"), status)
    at_work = (entry.session for entry in listed.entries if entry.activity.kind is ActivityKind.RUNNING)
    return objectives.page(listed, status, look.now, await look.read.said(at_work))


async def _objective(look: Looking) -> Any:
    name = look.id("session")
    found = (await look.read.each((name,), look.read.objective)).get(name)
    if found is None:
        # It is given one on this page.
        return objective.page(ObjectiveFound(EsmState(name), 0, NO_ACTIVITY, ""), HistoryPage(()), look.now)
    before = look.number("before")
    history, news = await asyncio.gather(
        look.read.history(name, before or found.state.revision + 1), look.read.said((name,))
    )
    return objective.page(found, history, look.now, news, newest=not before)


async def _tasks(look: Looking) -> Any:
    session = look.text("session")
    return tasks.page(await look.read.tasks(look.number("cursor"), session), look.now, session)


async def _task(look: Looking) -> Any:
    return task.page(await look.read.task(look.id("session"), look.id("task")), look.now)
