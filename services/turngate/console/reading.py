"""What pages show, read by the requests of the catalogue under the name of whoever looks."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from turngate.jetstream.connect import Connection
from turngate.jetstream.direct import read_newest
from turngate.jetstream.request import NoResponders, Requester
from turngate.runner.calls import Calls
from turngate_contracts import codec
from turngate_contracts.beats import ListRunners, RunnerPresence, RunnersPage
from turngate_contracts.dead import DeadPage, ListDead
from turngate_contracts.errors import ErrorCode, InvalidMessage, Refusal, TurngateError, Unavailable
from turngate_contracts.esm import GetHistory, GetObjective, HistoryPage, ListObjectives, ObjectiveFound, ObjectivesPage
from turngate_contracts.messages import GetTurn, InboxPage, ListInbox, TurnFound
from turngate_contracts.progress import RoleProgressed
from turngate_contracts.questions import GetQuestion, QuestionFound
from turngate_contracts.sessions import ListSessions, SessionsPage
from turngate_contracts.subjects import Subjects
from turngate_contracts.tasks import ConclusionFound, ConclusionsPage, GetConclusion, ListConclusions
from turngate_protocol.esm.objective import Status

log = logging.getLogger(__name__)

R = TypeVar("R", bound=Struct)
P = TypeVar("P", SessionsPage, ObjectivesPage)

TIMEOUT_MS: Final = 3_000
"""How long a request may take before a person is told that nobody answers."""
INBOX_PAGE: Final = 30
"""Entries of a page of the inbox: each is drawn in full."""
LIST_PAGE: Final = 50
EMPTY_PAGES: Final = 8
"""Pages without entries that are passed over: a service looks at so much for one, whether it finds anything or not."""
COUNTED: Final = 100
"""How many waiting things are counted before it is only said that there are more."""
UNATTENDED: Final = 20
"""Objectives without a runner that the inbox names."""
UNATTENDED_S: Final = 1.0
"""For how long they are known: less than between the last two loads of an inbox after an event."""
HISTORY_PAGE: Final = 100
RUNNERS_PAGE: Final = 500


class Away(Unavailable):
    """The NATS server is not there: nothing was sent."""

    def __init__(self) -> None:
        super().__init__(
            "the NATS server is away, so nothing can be read or done; this goes on by itself once it is back"
        )


class Requests:
    """The requests of one console, each sent under the name of whoever makes it."""

    def __init__(self, connection: Connection, requester: Requester, subjects: Subjects) -> None:
        self._connection = connection
        self._requester = requester
        self._subjects = subjects
        self._unattended = ObjectivesPage(())
        self._asked_at = -UNATTENDED_S

    def by(self, actor: str) -> "Reader":
        """Return what reads for an actor."""
        return Reader(self, actor)

    async def call(self, actor: str, name: str, request: Struct, kind: type[R], *, once: bool = False) -> R:
        """Send a request under the name of an actor and return the answer.

        `once`: who is not there is not waited for.

        Raises:
            Refusal: the service's own error.
            Unavailable: the server is away, which is told at once, or nobody answered in time.
        """
        if not self._connection.is_connected:
            raise Away
        calls = Calls(self._connection, self._requester, self._subjects, actor)
        return await calls.call(name, request, kind, TIMEOUT_MS, once=once)

    async def unattended(self, actor: str) -> ObjectivesPage:
        """Return objectives whose role waits for a runner that nobody is; none where no supervisor runs.

        Asked for once in a while for everybody: each change of anything loads the inbox in every open browser.
        """
        now = asyncio.get_running_loop().time()
        if now - self._asked_at >= UNATTENDED_S:
            request = ListObjectives("", UNATTENDED, None, unattended=True)
            try:
                self._unattended = await self.call(actor, "esm.list", request, ObjectivesPage, once=True)
            except NoResponders:
                self._unattended = ObjectivesPage(())
            self._asked_at = now
        return self._unattended

    async def said(self, sessions: Iterable[str]) -> dict[str, RoleProgressed]:
        """Return the last line of those of these sessions whose agents said one in the last minutes."""
        subjects = [self._subjects.progress(session) for session in sessions]
        if not subjects or not self._connection.is_connected:
            return {}
        try:
            found = await read_newest(self._requester, self._subjects.stream("events"), subjects)
            lines = [codec.decode(stored.body, RoleProgressed, "progress") for stored in found]
        except (Unavailable, InvalidMessage) as error:  # news, of which a page may be without
            log.info("what agents say was not read: %s", error)
            return {}
        return {line.session: line for line in lines}


class Reader:
    """Reads for one actor."""

    def __init__(self, requests: Requests, actor: str) -> None:
        self._requests = requests
        self._actor = actor

    async def inbox(self, cursor: int = 0, limit: int = INBOX_PAGE, kind: str = "") -> InboxPage:
        """Return what waits for a person, oldest first."""
        return await self._call("inbox.list", ListInbox(cursor, limit, kind), InboxPage)

    async def sessions(self, before: int = 0, text: str = "") -> SessionsPage:
        """Return sessions, the last changed first; with a text only those that have it in their name or headline."""
        return await self._some("turn.list", ListSessions(before, LIST_PAGE, text=text), SessionsPage)

    async def turn(self, session: str) -> TurnFound:
        """Return what is known of a session's turns."""
        return await self._call("turn.get", GetTurn(session), TurnFound)

    async def question(self, session: str) -> QuestionFound:
        """Return what is known of a session's questions."""
        return await self._call("question.get", GetQuestion(session), QuestionFound)

    async def objectives(self, cursor: str = "", status: Status | None = None) -> ObjectivesPage:
        """Return objectives by session."""
        return await self._some("esm.list", ListObjectives(cursor, LIST_PAGE, status), ObjectivesPage)

    async def unattended(self) -> tuple[ObjectivesPage, str]:
        """Return objectives whose role waits for a runner that nobody is, or why they are not known.

        There are none where no supervisor runs.
        """
        try:
            return await self._requests.unattended(self._actor), ""
        except TurngateError as error:  # what waits for a person is shown all the same
            return ObjectivesPage(()), error.message

    async def said(self, sessions: Iterable[str]) -> dict[str, RoleProgressed]:
        """Return the last line of those of these sessions whose agents said one in the last minutes."""
        return await self._requests.said(sessions)

    async def objective(self, session: str) -> ObjectiveFound:
        """Return what is known of a session's objective."""
        return await self._call("esm.get", GetObjective(session), ObjectiveFound)

    async def history(self, session: str, before: int) -> HistoryPage:
        """Return what happened last to a session's objectives before a change of it, oldest first."""
        return await self._call("esm.history", GetHistory(session, limit=HISTORY_PAGE, before=before), HistoryPage)

    async def tasks(self, cursor: int = 0, session: str = "") -> ConclusionsPage:
        """Return conclusions, the last changed first."""
        return await self._call("conclusion.list", ListConclusions(cursor, LIST_PAGE, session, True), ConclusionsPage)

    async def task(self, session: str, task: str) -> ConclusionFound:
        """Return what is known of a task that ended."""
        return await self._call("conclusion.get", GetConclusion(session, task), ConclusionFound)

    async def runners(self) -> tuple[RunnerPresence, ...]:
        """Return the runners that are alive, by name."""
        return (await self._call("runner.list", ListRunners("", RUNNERS_PAGE), RunnersPage)).runners

    async def dead(self, cursor: int = 0) -> DeadPage:
        """Return dead letters that wait for a decision."""
        return await self._call("dead.list", ListDead(cursor, LIST_PAGE, status="waiting"), DeadPage)

    async def each(self, sessions: Iterable[str], read: Callable[[str], Awaitable[R]]) -> dict[str, R]:
        """Return what `read` returns for each of some sessions; those that vanished meanwhile are left out.

        Raises:
            TurngateError: one of them failed for another reason.
        """
        wanted = list(dict.fromkeys(sessions))
        found = await asyncio.gather(*(_or_none(read(session)) for session in wanted))
        return {session: each for session, each in zip(wanted, found, strict=True) if each is not None}

    async def _some(self, name: str, request: ListSessions | ListObjectives, kind: type[P]) -> P:
        """Return a page with entries; one without that says that there is more has none for a long way."""
        page = await self._call(name, request, kind)
        for _ in range(EMPTY_PAGES):
            if page.entries or not page.more:
                break
            page = await self._call(name, replace(request, cursor=page.cursor), kind)
        return page

    async def _call(self, name: str, request: Struct, kind: type[R]) -> R:
        return await self._requests.call(self._actor, name, request, kind)


async def _or_none(awaited: Awaitable[R]) -> R | None:
    try:
        return await awaited
    except Refusal as error:
        if error.code is ErrorCode.NOT_FOUND:
            return None
        raise
