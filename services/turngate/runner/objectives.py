"""Objectives for people's clients and services, over the client's one connection: `client.objectives.create(…)`.

Every command has an operation id, a random one where none is given, so that a repeat after a lost answer is known and
does nothing twice. Lists and histories come a page at a time, or as async iterators that ask for page after page.
"""

from collections.abc import AsyncGenerator
from typing import Final, TypeVar

from msgspec import Struct

from turngate.runner.calls import Caller, operation_id
from turngate_contracts import esm as m
from turngate_contracts.beats import ListRunners, RunnerPresence, RunnersPage
from turngate_contracts.ids import check_id
from turngate_protocol.esm.objective import Status
from turngate_protocol.esm.state import Cause

R = TypeVar("R", bound=Struct)

TIMEOUT_MS: Final = 30_000


class Objectives:
    """The objectives of one client. Commands raise Refusal with the protocol's code, and Unavailable."""

    def __init__(self, call: Caller, pool: str) -> None:
        self._call = call
        self._pool = pool

    async def create(
        self, session: str, text: str, *, pool: str = "", work_dir: str = "", mode: str = "", op: str = ""
    ) -> m.ObjectiveStands:
        """Give a session an objective; its first run is wanted at once.

        Args:
            session: the session's id.
            text: what is to be achieved, 1 to 65,536 UTF-8 bytes.
            pool: the pool to prefer; empty for the session's.
            work_dir: where the agents work, on the runner's host.
            mode: the mode that they are run in, passed on as it is.
            op: this operation's id.

        Raises:
            Refusal: objective_exists, invalid_objective, invalid_argument.
            Unavailable: nobody answered in time.
        """
        return await self._stands("esm.create", m.CreateObjective(_id(session), text, pool, work_dir, mode, _op(op)))

    async def edit(self, session: str, text: str, *, op: str = "") -> m.ObjectiveStands:
        """Give an objective a new text; what runs for the old one is stopped."""
        return await self._stands("esm.edit", m.EditObjective(_id(session), text, _op(op)))

    async def pause(self, session: str, *, op: str = "") -> m.ObjectiveStands:
        """Stop an objective until it is resumed."""
        return await self._stands("esm.pause", m.PauseObjective(_id(session), _op(op)))

    async def resume(self, session: str, *, op: str = "") -> m.ObjectiveStands:
        """Let an objective go on that is paused, blocked or limited."""
        return await self._stands("esm.resume", m.ResumeObjective(_id(session), _op(op)))

    async def clear(self, session: str, *, op: str = "") -> m.ObjectiveStands:
        """Take a session's objective away."""
        return await self._stands("esm.clear", m.ClearObjective(_id(session), _op(op)))

    async def guide(self, session: str, text: str, *, op: str = "") -> m.ObjectiveStands:
        """Say something to whoever works on the objective next, in at most 16,384 UTF-8 bytes."""
        return await self._stands("esm.guide", m.GuideObjective(_id(session), text, _op(op)))

    async def run(self, session: str, *, run_id: str = "", op: str = "") -> m.ObjectiveStands:
        """Have the next continuation started now, under `run_id` where its base id matters."""
        return await self._stands("esm.run", m.RunObjective(_id(session), run_id, _op(op)))

    async def configure(
        self, session: str, *, pool: str = "", work_dir: str = "", mode: str = "", op: str = ""
    ) -> m.ObjectiveStands:
        """Choose where and how the agents run; what is empty stays as it is."""
        return await self._stands("esm.configure", m.ConfigureObjective(_id(session), pool, work_dir, mode, _op(op)))

    async def update(
        self,
        session: str,
        status: str,
        reason: str,
        *,
        run: str = "",
        generation: int | None = None,
        op: str = "",
        pool: str = "",
    ) -> m.ObjectiveStands:
        """Record what a model says with its tool `update_esm`: `complete` or `blocked`, and why.

        The pool is the objective's, one of this identity's; the one it connected with by default. Raises Refusal with
        pool_mismatch where the objective is of another.
        """
        update = m.UpdateObjective(_id(session), status, reason, run, generation, _op(op))
        return await self._call("esm.update", update, m.ObjectiveStands, TIMEOUT_MS, pool=pool or self._pool)

    async def get(self, session: str) -> m.ObjectiveFound:
        """Return what is known of a session's objective.

        Raises:
            Refusal: not_found where the session never had one.
        """
        return await self._call("esm.get", m.GetObjective(_id(session)), m.ObjectiveFound, TIMEOUT_MS)

    async def page(
        self, cursor: str = "", limit: int = 100, status: Status | None = None, *, unattended: bool = False
    ) -> m.ObjectivesPage:
        """Return a page of objectives by session; go on with its `cursor` while it has `more`.

        `unattended`: only those whose role waits for a runner while no live one takes it.
        """
        asked = m.ListObjectives(cursor, limit, status, unattended)
        return await self._call("esm.list", asked, m.ObjectivesPage, TIMEOUT_MS)

    async def every(self, status: Status | None = None) -> AsyncGenerator[m.ObjectiveEntry, None]:
        """Yield objectives by session, one page after another."""
        page = await self.page(status=status)
        while True:
            for entry in page.entries:
                yield entry
            if not page.more:
                return
            page = await self.page(page.cursor, status=status)

    async def history_page(self, session: str, cursor: str = "", limit: int = 100, *, before: int = 0) -> m.HistoryPage:
        """Return a page of what happened to a session's objectives, oldest first; see GetHistory."""
        request = m.GetHistory(_id(session), cursor, limit, before)
        return await self._call("esm.history", request, m.HistoryPage, TIMEOUT_MS)

    async def history(self, session: str) -> AsyncGenerator[Cause, None]:
        """Yield what happened to a session's objectives so far, oldest first."""
        page = await self.history_page(session)
        while True:
            for entry in page.entries:
                yield entry
            if not page.more:
                return
            page = await self.history_page(session, page.cursor)

    async def runners(self, pool: str = "") -> list[RunnerPresence]:
        """Return the runners that are alive, by name, of one pool or of all."""
        found: list[RunnerPresence] = []
        cursor, more = "", True
        while more:
            page = await self._call("runner.list", ListRunners(cursor, 500, pool), RunnersPage, TIMEOUT_MS)
            found += page.runners
            cursor, more = page.cursor, page.more
        return found

    async def _stands(self, name: str, request: Struct) -> m.ObjectiveStands:
        return await self._call(name, request, m.ObjectiveStands, TIMEOUT_MS)


def _id(session: str) -> str:
    return check_id("session", session)


def _op(op: str) -> str:
    return op or operation_id()
