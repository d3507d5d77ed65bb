"""The requests of runners: claim a role run, give it back, say that one is alive, and the list of those that are.

A claim is a compare-and-set in the objective: one wins, and the winner gets everything that it needs in the answer. A
beat tells who holds what; its answer tells what became of it meanwhile, which is the truth that the mailbox hurries.
"""

import asyncio
from bisect import bisect_right

from msgspec.structs import replace

from turngate.clock import Clock
from turngate.jetstream.api import Api, Call
from turngate.supervisor import checks
from turngate.supervisor.checks import optional_id
from turngate.supervisor.lane import EsmLane
from turngate.supervisor.presence import Presences
from turngate.supervisor.progress import ProgressNews
from turngate.supervisor.requests import raise_refusal
from turngate_contracts import codec
from turngate_contracts import esm as m
from turngate_contracts.beats import (
    MAX_PROGRESS,
    Beat,
    BeatAnswer,
    HeldAnswer,
    HeldRole,
    ListRunners,
    RunnerPresence,
    RunnersPage,
)
from turngate_contracts.ids import check_id
from turngate_protocol.esm.inputs import Claim, Release
from turngate_protocol.esm.objective import counter
from turngate_protocol.esm.roles import role_request
from turngate_protocol.esm.state import EsmState
from turngate_protocol.esm.steering import BeatAction, beat


class RoleRequests:
    """Answers the requests of runners; `register` puts them on the wire."""

    def __init__(self, api: Api, lane: EsmLane, presences: Presences, news: ProgressNews, clock: Clock) -> None:
        self._api = api
        self._lane = lane
        self._presences = presences
        self._news = news
        self._clock = clock

    async def register(self) -> None:
        """Listen for every request of runners."""
        add = self._api.add
        await add("role.claim", m.ClaimRole, self.claim, by_pool=True)
        await add("role.release", m.ReleaseRole, self.release)
        await add("runner.beat", Beat, self.beat)
        await add("runner.list", ListRunners, self.list_runners)

    def claim(self, call: Call, request: m.ClaimRole) -> None:
        """Give a role run to a runner, once."""
        self._count("role.claim")
        session = check_id("session", request.session)
        claim = Claim(
            role_run_id=check_id("role_run", request.role_run),
            generation=request.generation,
            claim_id=check_id("claim", request.claim),
            runner=call.caller,
            pool=call.pool,
        )

        async def claimed() -> m.RoleClaimed:
            advanced = await self._lane.tell(session, claim)
            raise_refusal(advanced)
            built = role_request(advanced.after, self._lane.policy)
            if built is None:
                raise RuntimeError("a claimed role run has no request")
            return m.RoleClaimed(built)

        self._api.run(call, claimed())

    def release(self, call: Call, request: m.ReleaseRole) -> None:
        """Take a role run back."""
        self._count("role.release")
        session = check_id("session", request.session)
        release = Release(
            role_run_id=check_id("role_run", request.role_run),
            generation=request.generation,
            claim_id=check_id("claim", request.claim),
            runner=call.caller,
        )

        async def released() -> m.RoleReleased:
            advanced = await self._lane.tell(session, release)
            raise_refusal(advanced)
            return m.RoleReleased(advanced.changed)

        self._api.run(call, released())

    def beat(self, call: Call, request: Beat) -> None:
        """Note that a runner is alive, and say what to do about each role run that it holds."""
        self._count("runner.beat")
        told = checks.beat(request)

        async def answered() -> BeatAnswer:
            presence = presence_of(call.caller, told, self._clock())
            answers = (self._answer(call.caller, held) for held in told.held)
            _, *found = await asyncio.gather(self._presences.keep(presence), *answers)
            return BeatAnswer(tuple(answer for answer in found if answer is not None))

        self._api.run(call, answered())

    def list_runners(self, call: Call, request: ListRunners) -> None:
        """List the runners that are alive, by name."""
        self._count("runner.list")
        cursor, pool = optional_id("cursor", request.cursor), optional_id("pool", request.pool)
        limit = max(1, min(request.limit, m.MAX_PAGE))

        async def page() -> RunnersPage:
            alive = [runner for runner in await self._presences.alive() if pool in ("", *runner.pools)]
            first = bisect_right([runner.runner for runner in alive], cursor) if cursor else 0
            shown = tuple(alive[first : first + limit])
            return RunnersPage(shown, shown[-1].runner if shown else cursor, first + limit < len(alive))

        self._api.run(call, page())

    async def _answer(self, runner: str, held: HeldRole) -> HeldAnswer:
        entry = await self._lane.lanes.store.load(held.session)
        state = EsmState(held.session)
        if entry.value is not None:
            state = codec.decode(entry.value, EsmState, "a session's objective")
        reply = beat(state, held.role_run, held.generation, held.claim, runner, held.version)
        if reply.action is not BeatAction.CANCEL and not held.ended:
            self._news.tell(runner, held, self._clock())
        return HeldAnswer(held.role_run, held.claim, reply.action, reply.message, reply.version)

    def _count(self, name: str) -> None:
        self._lane.counters.requests[name] += 1


def presence_of(runner: str, told: Beat, now: int) -> RunnerPresence:
    """Return what is kept of a beat: a runner may say any number, and people and programs read what it said."""
    held = tuple(
        replace(
            each,
            since=counter(each.since),
            version=counter(each.version),
            progress=each.progress[:MAX_PROGRESS],
            tool_calls=counter(each.tool_calls),
        )
        for each in told.held
    )
    slots, started_at = counter(told.slots), counter(told.started_at)
    return RunnerPresence(runner, now, told.incarnation, told.pools, told.roles, slots, held, started_at, told.draining)
