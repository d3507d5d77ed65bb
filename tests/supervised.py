"""A running system with supervisors, and what tests of objectives need: hosts, a person, a runner played by hand."""

import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

from msgspec import Struct

from tests.running import System, running
from tests.waiting import wait_until
from turngate.jetstream.connect import connect
from turngate.jetstream.request import Requester
from turngate.runner import TurnClient
from turngate.runner.adapters.base import Adapter
from turngate.runner.adapters.scripted import ScriptedAdapter
from turngate.runner.host import RunnerHost
from turngate.runner.objectives import Objectives
from turngate.supervisor.service import SupervisorService
from turngate_contracts import codec
from turngate_contracts.beats import Beat, BeatAnswer, HeldRole
from turngate_contracts.errors import ErrorCode, Refusal
from turngate_contracts.esm import ClaimRole, ReleaseRole, RoleClaimed, RoleEnded, RoleReleased
from turngate_contracts.headers import SCHEMA, block
from turngate_contracts.messages import SCHEMAS
from turngate_protocol.esm.continuation import wants
from turngate_protocol.esm.effects import DispatchRole
from turngate_protocol.esm.evidence import Evidence
from turngate_protocol.esm.objective import Role
from turngate_protocol.esm.roles import RoleRequest
from turngate_protocol.esm.state import EsmState
from turngate_protocol.esm.steering import BeatAction

QUICK: dict[str, Any] = {
    "presence_ms": 1_200,
    "watchdog_ms": 300,
    "first_delay_ms": 20,
    "longest_delay_ms": 200,
    "redispatch_ms": 60_000,
    "observer_ms": 5_000,
}
"""An impatient supervisor."""

POOL = "pool-1"


class Supervised:
    """What `supervising` gives a test."""

    def __init__(self, system: System, stack: contextlib.AsyncExitStack) -> None:
        self.system = system
        self.subjects = system.subjects
        self.requester = system.requester
        self.supervisors: list[SupervisorService] = []
        self._stack = stack

    @property
    def supervisor(self) -> SupervisorService:
        return self.supervisors[0]

    async def add_supervisor(self, **changed: Any) -> SupervisorService:
        """Start one more supervisor, on a connection of its own."""
        settings = codec.to_builtins(self.system.settings) | changed
        given = type(self.system.settings)(**settings)
        connection = await connect(given.nats_url, name="supervisor", login=self.system.login("supervisor"))
        self._stack.push_async_callback(connection.close)
        requester = await Requester.start(connection)
        self._stack.push_async_callback(requester.stop)
        service = SupervisorService(connection, requester, given)
        await service.start()
        self._stack.push_async_callback(_drain, service)
        self.supervisors.append(service)
        return service

    async def person(self, name: str = "ann") -> Objectives:
        client = await self.system.client(name, POOL)
        return client.objectives

    async def host(self, adapter: Adapter | dict[str, Any], identity: str = "runner-1", **given: Any) -> RunnerHost:
        """Start a runner host that is stopped with the system."""
        played = ScriptedAdapter(adapter) if isinstance(adapter, dict) else adapter
        given = {"pools": (POOL,), "slots": 4, "beat_s": 0.2, "drain_ms": 2_000, **given}
        settings = self.system.settings
        where: dict[str, Any] = {
            "url": settings.nats_url,
            "namespace": settings.namespace,
            "login": self.system.login(identity),
        }
        host = RunnerHost(identity, played, **where, **given)
        await host.start()
        self._stack.push_async_callback(_stop, host)
        return host

    async def runner(self, identity: str = "hand-1") -> "Hand":
        """A runner that is played by hand."""
        return Hand(self, await self.system.client(identity, POOL))

    async def state(self, session: str) -> EsmState:
        """The newest state of a session, as the bucket has it."""
        entry = await self.supervisor.lane.lanes.store.load(session)
        return codec.decode(entry.value, EsmState, "a state") if entry.value else EsmState(session)

    async def until(self, session: str, condition: Callable[[EsmState], Any], why: str = "", s: float = 20) -> EsmState:
        """Wait until the state of a session is so, and return it."""
        found = EsmState(session)

        async def holds() -> bool:
            nonlocal found
            found = await self.state(session)
            return bool(condition(found))

        try:
            await wait_until(holds, s, why)
        except AssertionError as error:
            raise AssertionError(f"{error}; the state is {found}") from None
        return found

    async def until_status(self, session: str, status: str, s: float = 20) -> EsmState:
        return await self.until(
            session, lambda state: state.objective is not None and state.objective.status == status, status, s
        )

    async def until_offered(self, session: str, role: str = "worker") -> EsmState:
        """Wait until a role waits for a runner."""
        return await self.until(
            session, lambda state: any(offer.role == role for offer in offers(state)), f"a {role} is wanted"
        )


class Hand:
    """A runner whose every step the test makes."""

    def __init__(self, supervised: Supervised, client: TurnClient) -> None:
        self.client = client
        self.identity = client.identity
        self._supervised = supervised
        self._claims = 0

    async def claim(self, of: str, /, **changed: Any) -> RoleRequest:
        """Claim the role run that a session wants, or what is asked for instead."""
        state = await self._supervised.until(of, offers, "a role is wanted")
        (offer,) = offers(state)
        self._claims += 1
        asked: dict[str, Any] = {
            "session": of,
            "role_run": offer.role_run_id,
            "generation": offer.generation,
            "claim": f"{self.identity}-c{self._claims}",
        }
        pool = changed.pop("pool", state.pool)
        claimed = await self.client.call("role.claim", ClaimRole(**asked | changed), RoleClaimed, pool=pool)
        return claimed.request

    async def release(self, request: RoleRequest) -> bool:
        asked = ReleaseRole(request.session_id, request.run_id, request.generation, request.claim_id)
        return (await self.client.call("role.release", asked, RoleReleased)).released

    def ended(self, request: RoleRequest, response: str = "", **more: Any) -> RoleEnded:
        """The result of a role run that this runner holds."""
        ids: dict[str, Any] = {
            "session": request.session_id,
            "runner": self.identity,
            "role_run": request.run_id,
            "generation": request.generation,
            "claim": request.claim_id,
            "response": response,
            "tokens": 7,
            "duration_ms": 11,
            "evidence": Evidence(2, {"bash": 2}, 0),
        }
        return RoleEnded(**ids | more)

    async def publish(self, ended: RoleEnded | bytes, session: str = "") -> None:
        body = ended if isinstance(ended, bytes) else codec.encode(ended)
        session = session or (ended.session if isinstance(ended, RoleEnded) else "")
        subject = self._supervised.subjects.esm_result(self.identity, session)
        await self._supervised.requester.publish(subject, body, block({SCHEMA: SCHEMAS[RoleEnded]}))

    async def report(self, request: RoleRequest, response: str, **more: Any) -> None:
        await self.publish(self.ended(request, response, **more))

    async def beat(self, *requests: RoleRequest, version: int = 0, progress: str = "", **more: Any) -> BeatAnswer:
        """Beat, holding these role runs, whose agents say a line."""
        held = tuple(
            HeldRole(r.session_id, r.run_id, r.role, r.generation, r.claim_id, version=version, progress=progress)
            for r in requests
        )
        beat = Beat("incarnation-1", (POOL,), tuple(Role), 1, held, **more)
        return await self.client.call("runner.beat", beat, BeatAnswer)

    async def action(self, request: RoleRequest) -> BeatAction:
        return (await self.beat(request)).answers[0].action


@contextlib.asynccontextmanager
async def supervising(url: str, namespace: str, supervisors: int = 1, **settings: Any) -> AsyncIterator[Supervised]:
    """Run validation and supervisors in a namespace."""
    async with (
        running(url, namespace, **QUICK | {"pool": POOL} | settings) as system,
        contextlib.AsyncExitStack() as stack,
    ):
        made = Supervised(system, stack)
        for _ in range(supervisors):
            await made.add_supervisor()
        yield made


def offers(state: EsmState) -> list[DispatchRole]:
    """The role run that a state offers, if it does."""
    return [effect for effect in wants(state) if isinstance(effect, DispatchRole)]


async def refusal(awaited: Any) -> ErrorCode:
    """The code of the error that a request is refused with."""
    try:
        answer: Struct = await awaited
    except Refusal as error:
        return error.code
    raise AssertionError(f"not refused: {answer}")


async def _drain(service: SupervisorService) -> None:
    assert await service.stop(), "a supervisor did not drain"


async def _stop(host: RunnerHost) -> None:
    if host.running:
        await host.stop()
