"""`RunnerHost`: takes roles of objectives, runs an agent for each, and says how it ended.

The story of a role run: a ticket comes, when a slot is free; the role run is claimed, and only a claim that was won
starts an agent; the agent runs, beats tell that it does, and bring cancels and steering; the result is stored, then the
ticket is acknowledged. Killed anywhere, the supervisor misses the beats and has somebody look at what was left behind.
Told to end, the host takes nothing more, gives its agents some seconds, and hands back what they could not finish.
"""

import asyncio
import logging
import secrets
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from turngate.clock import Clock, system_clock
from turngate.jetstream.consume import Delivery
from turngate.login import NOBODY, Login
from turngate.runner.adapters.base import Adapter, RoleResult, failed
from turngate.runner.beats import Beats
from turngate.runner.client import TurnClient
from turngate.runner.mail import is_mail
from turngate.runner.results import publish_result, result_of
from turngate.runner.role_run import HANDED_BACK, RoleRun, find_work_dir
from turngate.runner.slots import Slots
from turngate.settings import DEFAULT_URL
from turngate.tracing import Span, trace_parent_of
from turngate_contracts import codec
from turngate_contracts.errors import ErrorCode, InvalidMessage, Refusal, Unavailable
from turngate_contracts.esm import ClaimRole, ReleaseRole, RoleCancelled, RoleClaimed, RoleOffer, RoleReleased
from turngate_contracts.ids import check_id
from turngate_contracts.subjects import DEFAULT_NAMESPACE
from turngate_protocol.esm.objective import Role
from turngate_protocol.esm.roles import RoleRequest

log = logging.getLogger(__name__)

BEAT_S: Final = 5.0
DRAIN_MS: Final = 10_000
"""How long agents may go on when the host is told to end."""
LAST_S: Final = 30
"""How long stopping agents, storing results and handing back may take after that, in seconds."""
RELEASE_MS: Final = 5_000
AGAIN_MS: Final = 2_000
"""After what an offer is delivered again that could not be claimed for reasons of the system."""

ALL_ROLES: Final = tuple(Role)


class RunnerHost:
    """One runner's share of the roles of its pools. `start` it, later `stop` it; or use it as a context manager.

    Args:
        identity: this runner's id, its own: two hosts of one id would be taken for one.
        adapter: runs the agents.
        pools: the pools that it takes work of.
        roles: the roles that it takes.
        roots: directories below which agents may work; any, where none are given.
        slots: most agents at once.
        url: the NATS server or, separated by commas, servers.
        namespace: the system's namespace.
        connect_timeout_ms: how long the first connection may take.
        login: the key that proves its id, and whom to trust, where the server wants that.
        beat_s: how often it says that it is alive, in seconds.
        drain_ms: how long agents may go on when it is told to end, in milliseconds.
        clock: milliseconds since the epoch.

    Raises:
        InvalidId, InvalidMessage: an id can't be part of a subject, or there is nothing to take.
    """

    def __init__(
        self,
        identity: str,
        adapter: Adapter,
        *,
        pools: Iterable[str] = ("default",),
        roles: Iterable[Role] = ALL_ROLES,
        roots: Iterable[str | Path] = (),
        slots: int = 1,
        url: str = DEFAULT_URL,
        namespace: str = DEFAULT_NAMESPACE,
        login: Login = NOBODY,
        connect_timeout_ms: int = 5_000,
        beat_s: float = BEAT_S,
        drain_ms: int = DRAIN_MS,
        clock: Clock | None = None,
    ) -> None:
        self.identity = check_id("identity", identity)
        self.pools = tuple(check_id("pool", pool) for pool in pools)
        self.roles = tuple(roles)
        self.incarnation = secrets.token_hex(6)
        self.draining = False
        self.finished = 0
        if not self.pools or not self.roles or slots < 1:
            raise InvalidMessage("a runner takes at least one role of one pool in one slot")
        self.slot_count = slots
        self._adapter = adapter
        self._roots = tuple(Path(root) for root in roots)
        self._url = url
        self._namespace = namespace
        self._connect_timeout_ms = connect_timeout_ms
        self._login = login
        self._drain_ms = drain_ms
        self._clock = clock or system_clock()
        self._claims = 0
        self._held: dict[tuple[str, str], RoleRun] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._beats = Beats(self, beat_s, self._clock)
        self._client: TurnClient | None = None
        self._slots: Slots | None = None

    @property
    def held(self) -> tuple[RoleRun, ...]:
        """The role runs that it has claimed or is claiming."""
        return tuple(self._held.values())

    @property
    def running(self) -> bool:
        """Whether it was started and not stopped since."""
        return self._client is not None

    @property
    def client(self) -> TurnClient:
        """The connection; there is one between `start` and `stop`."""
        if self._client is None:
            raise RuntimeError("the runner host was not started")
        return self._client

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        """Connect, join the pools and begin to take roles.

        Raises:
            NoServer, Unavailable: no server, or no service answers.
        """
        client = await TurnClient.connect(
            self.identity,
            pool=self.pools[0],
            url=self._url,
            namespace=self._namespace,
            timeout_ms=self._connect_timeout_ms,
            login=self._login,
        )
        self._client = client
        try:
            await client.connection.listen(client.subjects.mailbox(self.identity, "cancel"), self._on_cancel)
            joined = [await client.join(pool, self.roles, 30_000) for pool in self.pools]
            consumers = [name for each in joined for by_role in each.roles.values() for name in by_role.values()]
            stream = client.subjects.stream("work")
            self._slots = Slots(client.connection, stream, consumers, self.slot_count, self._on_ticket)
            await self._beats.start()
            await self._slots.start()
        except BaseException:
            await self._beats.stop()
            self._client = None
            await client.close()
            raise

    async def stop(self) -> bool:
        """Take nothing more, finish or hand back what runs, and say whether every role run was ended so."""
        self.draining = True
        slots, client = self._slots, self.client
        self._beats.soon()
        stopping = asyncio.create_task(slots.stop(self._drain_ms + 30_000)) if slots else None
        # Where the connection is closed for good nothing can be told any more: the watchdog finds what was held.
        told_s = 0 if client.connection.closed_for_good.is_set() else LAST_S
        if self._tasks and told_s:
            await asyncio.wait(self._tasks, timeout=self._drain_ms / 1000)
        for run in self.held:
            run.stop(HANDED_BACK)
        left: set[asyncio.Task[None]] = set()
        if self._tasks:
            _, left = await asyncio.wait(self._tasks, timeout=told_s)
        for task in left:
            task.cancel()
        if left:
            await asyncio.gather(*left, return_exceptions=True)
        if stopping is not None:
            await stopping
        await self._beats.stop()
        self._client = None
        await client.close()
        return not left

    async def run_until(self, ending: asyncio.Event) -> None:
        """Start, take roles until `ending` is set or the connection is closed for good, then stop."""
        await self.start()
        waits = [asyncio.create_task(event.wait()) for event in (ending, self.client.connection.closed_for_good)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
            await self.stop()

    # One role run

    def _on_ticket(self, delivery: Delivery) -> None:
        """Take a ticket that has a slot."""
        try:
            offer = codec.decode(delivery.body, RoleOffer, "a RoleOffer")
        except InvalidMessage as error:
            log.warning("an offer can't be read: %s", error)
            delivery.term("invalid_message")
            self._give_back()
            return
        name = (offer.session, offer.role_run)
        if name in self._held:
            # Delivered again while it runs: the claim holds it, the ticket has done its work.
            delivery.ack()
            self._give_back()
            return
        self._claims += 1
        run = RoleRun(offer, f"{self.incarnation}-{self._claims}", delivery)
        self._held[name] = run
        task = asyncio.create_task(self._serve(run), name=f"turngate-role-{offer.role_run}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, run: RoleRun) -> None:
        facts = {"session": run.offer.session, "run": run.offer.role_run, "role": run.offer.role.value}
        with Span("turngate.role", trace_parent_of(run.delivery.head), "consumer", **facts):
            await self._work_on(run)

    async def _work_on(self, run: RoleRun) -> None:
        try:
            request = await self._claim(run)
            if request is None:
                return
            self._beats.soon()
            result = None if self.draining else await self._run(run, request)
            handed_back = result is not None and result.failure is not None and run.stop_reason == HANDED_BACK
            if result is None or handed_back:
                await self._release(run)
            else:
                await publish_result(self.client, result_of(run, self.identity, result))
                self.finished += 1
                self._beats.ended(run)
            run.delivery.ack()
        finally:
            self._held.pop((run.offer.session, run.offer.role_run), None)
            run.delivery.nak(AGAIN_MS)  # does nothing where it was ended
            self._give_back()

    async def _claim(self, run: RoleRun) -> RoleRequest | None:
        """Claim a role run; None when it is not ours, and its ticket is ended."""
        offer = run.offer
        claim = ClaimRole(offer.session, offer.role_run, offer.generation, run.claim)
        while True:
            try:
                claimed = await self.client.call("role.claim", claim, RoleClaimed, 10_000, pool=offer.pool)
            except Refusal as error:
                if error.code is ErrorCode.CLAIM_REFUSED:
                    run.delivery.ack()
                else:
                    log.warning("role run %s was not claimed: %s", offer.role_run, error)
                    run.delivery.nak(AGAIN_MS)
                return None
            except Unavailable:
                # It may be ours already: the same claim finds out.
                if run.stop_reason:
                    run.delivery.nak(0)
                    return None
                run.delivery.in_progress()
                continue
            run.claimed(claimed.request, self._clock())
            return claimed.request

    async def _run(self, run: RoleRun, request: RoleRequest) -> RoleResult:
        try:
            work_dir = await asyncio.to_thread(find_work_dir, request.work_dir, self._roots)
        except ValueError as error:
            return failed(str(error))
        return await run.run(self._adapter, request, work_dir, self._beats.soon_for_news)

    async def _release(self, run: RoleRun) -> None:
        offer = run.offer
        release = ReleaseRole(offer.session, offer.role_run, offer.generation, run.claim)
        try:
            await self.client.call("role.release", release, RoleReleased, RELEASE_MS)
        except (Refusal, Unavailable) as error:
            # The watchdog finds that nobody holds it.
            log.warning("role run %s could not be handed back: %s", offer.role_run, error)

    def _on_cancel(self, _subject: bytes, _reply: bytes, body: bytes, head: bytes) -> None:
        if not is_mail(b"cancel", head):
            return
        try:
            cancelled = codec.decode(body, RoleCancelled, "a RoleCancelled")
        except InvalidMessage:
            return
        run = self._held.get((cancelled.session, cancelled.role_run))
        if run is not None and run.claim == cancelled.claim:
            run.stop(cancelled.reason)

    def _give_back(self) -> None:
        if self._slots is not None:
            self._slots.give_back()
