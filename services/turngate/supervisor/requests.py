"""The requests of people and models: create, edit, pause, resume, clear, guide, run, configure, update, get, list.

All of them are idempotent: a client that got no answer asks again with the same `op`. Who asks is in the subject; a
body can't claim it. A command that the protocol refuses is answered with the protocol's own error.
"""

import secrets

from msgspec import Struct

from turngate.jetstream.api import Api, Call
from turngate.jetstream.store import Store
from turngate.supervisor.checks import optional_id, work_dir
from turngate.supervisor.handler import checked_run_id
from turngate.supervisor.history import History
from turngate.supervisor.lane import Advanced, EsmLane, Told, error_of
from turngate.supervisor.listing import Listing
from turngate_contracts import codec
from turngate_contracts import esm as m
from turngate_contracts.errors import ErrorCode, InvalidMessage, Refusal
from turngate_contracts.ids import check_id
from turngate_protocol.esm.activity import activity_of
from turngate_protocol.esm.inputs import (
    Clear,
    Configure,
    Create,
    Edit,
    Guide,
    Input,
    Pause,
    Resume,
    Start,
    Update,
)
from turngate_protocol.esm.state import EsmState


class _Owner(Struct):
    """The part of a session's turns, or of its objective, that says whose it is."""

    pool: str = ""


class Requests:
    """Answers the requests; `register` puts them on the wire."""

    def __init__(
        self, api: Api, lane: EsmLane, listing: Listing, history: History, turns: Store, default_pool: str
    ) -> None:
        self._api = api
        self._lane = lane
        self._listing = listing
        self._history = history
        self._turns = turns
        self._default_pool = default_pool

    async def register(self) -> None:
        """Listen for every request of people and models."""
        add = self._api.add
        await add("esm.create", m.CreateObjective, self.create)
        await add("esm.edit", m.EditObjective, self.edit)
        await add("esm.pause", m.PauseObjective, self.pause)
        await add("esm.resume", m.ResumeObjective, self.resume)
        await add("esm.clear", m.ClearObjective, self.clear)
        await add("esm.guide", m.GuideObjective, self.guide)
        await add("esm.run", m.RunObjective, self.run)
        await add("esm.configure", m.ConfigureObjective, self.configure)
        await add("esm.update", m.UpdateObjective, self.update, by_pool=True)
        await add("esm.get", m.GetObjective, self.get)
        await add("esm.list", m.ListObjectives, self.list_objectives)
        await add("esm.history", m.GetHistory, self.history)

    def create(self, call: Call, request: m.CreateObjective) -> None:
        """Give a session an objective."""
        session = check_id("session", request.session)
        pool, mode = optional_id("pool", request.pool), optional_id("mode", request.mode)
        folder, op = work_dir(request.work_dir), optional_id("op", request.op)
        esm_id = secrets.token_hex(8)

        async def created() -> Struct:
            first = pool or await self._first_pool(session)

            def told(state: EsmState) -> Input:
                chosen = pool or ("" if state.pool else first)
                return Create(
                    text=request.text, esm_id=esm_id, pool=chosen, work_dir=folder, mode=mode, id=op, actor=call.caller
                )

            return await self._told(session, told)

        self._count("esm.create")
        self._api.run(call, created())

    def edit(self, call: Call, request: m.EditObjective) -> None:
        """Give an objective a new text."""
        op = optional_id("op", request.op)
        self._command(call, "esm.edit", request.session, Edit(text=request.text, id=op, actor=call.caller))

    def pause(self, call: Call, request: m.PauseObjective) -> None:
        """Stop an objective for now."""
        op = optional_id("op", request.op)
        self._command(call, "esm.pause", request.session, Pause(id=op, actor=call.caller))

    def resume(self, call: Call, request: m.ResumeObjective) -> None:
        """Let a stopped objective go on."""
        op = optional_id("op", request.op)
        self._command(call, "esm.resume", request.session, Resume(id=op, actor=call.caller))

    def clear(self, call: Call, request: m.ClearObjective) -> None:
        """Take an objective away."""
        op = optional_id("op", request.op)
        self._command(call, "esm.clear", request.session, Clear(id=op, actor=call.caller))

    def guide(self, call: Call, request: m.GuideObjective) -> None:
        """Say something to whoever works on the objective next."""
        op = optional_id("op", request.op)
        self._command(call, "esm.guide", request.session, Guide(text=request.text, id=op, actor=call.caller))

    def run(self, call: Call, request: m.RunObjective) -> None:
        """Have the next continuation started now."""
        start = Start(run_id=checked_run_id(request.run_id), id=optional_id("op", request.op), actor=call.caller)
        self._command(call, "esm.run", request.session, start)

    def configure(self, call: Call, request: m.ConfigureObjective) -> None:
        """Choose where and how the agents run."""
        configure = Configure(
            pool=optional_id("pool", request.pool),
            work_dir=work_dir(request.work_dir),
            mode=optional_id("mode", request.mode),
            id=optional_id("op", request.op),
            actor=call.caller,
        )
        self._command(call, "esm.configure", request.session, configure)

    def update(self, call: Call, request: m.UpdateObjective) -> None:
        """Record what a model says with its tool."""
        update = Update(
            status=request.status,
            reason=request.reason,
            run_id=optional_id("run", request.run),
            generation=request.generation,
            id=optional_id("op", request.op),
            actor=call.caller,
        )
        session = check_id("session", request.session)

        async def updated() -> Struct:
            await self._check_pool(session, call.pool)
            return await self._told(session, update)

        self._count("esm.update")
        self._api.run(call, updated())

    def get(self, call: Call, request: m.GetObjective) -> None:
        """Give what is known of an objective, read from the bucket and not from a cache."""
        self._count("esm.get")
        self._api.run(call, self._listing.get(check_id("session", request.session)))

    def list_objectives(self, call: Call, request: m.ListObjectives) -> None:
        """List objectives by session, a page at a time."""
        self._count("esm.list")
        cursor = optional_id("cursor", request.cursor)
        page = self._listing.page(cursor, request.limit, request.status, unattended=request.unattended)
        self._api.run(call, page)

    def history(self, call: Call, request: m.GetHistory) -> None:
        """Read what happened to a session's objectives."""
        self._count("esm.history")
        session = check_id("session", request.session)
        if request.before < 0 or (request.before and request.cursor):
            raise InvalidMessage(
                f"before is {request.before}; give the number of a change and no cursor with it", field="before"
            )
        if request.before:
            self._api.run(call, self._history.before(session, request.before, request.limit))
        else:
            self._api.run(call, self._history.page(session, request.cursor, request.limit))

    def _command(self, call: Call, name: str, session: str, told: Input) -> None:
        self._count(name)
        self._api.run(call, self._told(check_id("session", session), told))

    async def _told(self, session: str, told: Input | Told) -> m.ObjectiveStands:
        advanced = await self._lane.tell(session, told)
        raise_refusal(advanced)
        state = advanced.after
        return m.ObjectiveStands(
            session, state.revision, activity_of(state), state.objective, repeated=not advanced.changed
        )

    async def _check_pool(self, session: str, pool: str) -> None:
        # People may give an objective to another pool meanwhile; then this one was its own until just now.
        entry = await self._lane.lanes.store.load(session)
        owner = codec.decode(entry.value, _Owner, "a session's objective").pool if entry.value is not None else ""
        if owner not in ("", pool):
            raise Refusal(
                ErrorCode.POOL_MISMATCH,
                f"the objective of session {session} is of pool {owner}, not {pool}; use a runner of that pool",
                session=session,
                pool=owner,
            )

    async def _first_pool(self, session: str) -> str:
        # A session belongs to the pool that first used it.
        entry = await self._turns.load(session)
        if entry.value is None:
            return self._default_pool
        return codec.decode(entry.value, _Owner, "a session's state").pool

    def _count(self, name: str) -> None:
        self._lane.counters.requests[name] += 1


def raise_refusal(advanced: Advanced) -> None:
    """Raise what the protocol refused an input with, if it did.

    Raises:
        Refusal: with the protocol's own code, sentence and details.
    """
    if advanced.refused is not None:
        body = error_of(advanced.refused)
        raise Refusal(ErrorCode(body.code), body.message, **body.details)
