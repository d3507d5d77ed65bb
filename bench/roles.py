"""The instant runner: it claims each role run that it is offered and reports at once, so only the rest is measured.

Each slot is one session whose worker always gets on, so that its next continuation is wanted at once. The runner speaks
the wire as any other does and on the product's own client; for the no-op and for the real supervisor it does exactly
the same.
"""

import asyncio
import json
import secrets
import time
from typing import Final

from bench.load import Span, until_idle
from bench.rig import BenchmarkFailed
from turngate.jetstream.consume import ConsumeLoop, Delivery
from turngate.jetstream.provision import ensure_consumer
from turngate.jetstream.request import PubAck, Reply, Requester
from turngate_contracts import codec
from turngate_contracts.esm import ClaimRole, CreateObjective, RoleClaimed, RoleEnded, RoleOffer
from turngate_contracts.headers import SCHEMA, block
from turngate_contracts.messages import SCHEMAS
from turngate_contracts.topology import Topology
from turngate_protocol.esm.evidence import Evidence
from turngate_protocol.esm.objective import Role

RUNNER: Final = "bench"
POOL: Final = "bench"
NOOP_RUN: Final = "noop-worker"

_WAIT_MS: Final = 20_000
_PROBE: Final = b"x" * 500
_HEAD: Final = block({SCHEMA: SCHEMAS[RoleEnded]})


class Roles:
    """One client's runner and sessions; make it with `Roles.start`.

    Attributes:
        done: how many continuations were reported so far.
        dispatched_ms: in the last stretch, from the publish of each result until the next offer was stored.
        trips_ms: in the last stretch, where agents work: how long a message of that size took to be confirmed.
    """

    def __init__(self, requester: Requester, topology: Topology) -> None:
        self.done = 0
        self._requester = requester
        self._subjects = topology.subjects
        self._claim = topology.subjects.api("role.claim", RUNNER, POOL)
        self._prefix = secrets.token_hex(4)
        self._sessions = 0
        self._resting: list[RoleOffer] = []
        self._under_way = 0
        self._budget = 0
        self._works_s = 0.0
        self._reported: dict[str, int] = {}
        self._latencies: list[float] = []
        self.dispatched_ms: list[float] = []
        self.trips_ms: list[float] = []
        self._failure = ""
        self._idle = asyncio.Event()
        self._loop: ConsumeLoop | None = None

    @classmethod
    async def start(cls, requester: Requester, topology: Topology, sessions: int, *, real: bool) -> "Roles":
        """Make the pool and the sessions, each with its first offer in the runner's hands.

        Args:
            requester: where to publish.
            topology: the namespace's.
            sessions: how many objectives there are.
            real: whether a supervisor makes the offers; the no-op is told where to begin.
        """
        self = cls(requester, topology)
        for stream, config in topology.pool_consumers(POOL, [Role.WORKER.value]):
            await ensure_consumer(requester, stream, config)
        consumer = topology.subjects.role_consumer(POOL, Role.WORKER.value)
        loop = ConsumeLoop(requester.connection, topology.subjects.stream("work"), consumer, self._on_offer, window=512)
        await loop.start()
        self._loop = loop
        for number in range(sessions):
            session = f"s-{self._prefix}-{number}"
            self._under_way += 1
            if real:
                create = codec.encode(CreateObjective(session, "Make every test of the parser pass", POOL))
                reply = await requester.request(topology.subjects.api("esm.create", RUNNER), create)
                if b"Nats-Service-Error" in reply.head:
                    raise BenchmarkFailed(f"an objective was refused: {reply.body[:300]!r}")
            else:
                self._report(RoleOffer(session, NOOP_RUN, Role.WORKER, 0, POOL, 0))
        await self._drained()
        return self

    async def stop(self) -> None:
        """Take no more offers, so that another runner on this connection gets them."""
        if self._loop is not None:
            await self._loop.stop()

    async def for_seconds(self, warm_up_s: float, seconds: float) -> Span:
        """Keep all sessions going for a time, and count the continuations that are reported after the warm-up.

        Raises:
            BenchmarkFailed: a role run was refused, or no offer came.
        """
        self._begin(1 << 60)
        await asyncio.sleep(warm_up_s)
        before, began, skipped = self.done, time.perf_counter(), len(self._latencies)
        await asyncio.sleep(seconds)
        count, took = self.done - before, time.perf_counter() - began
        self._budget = 0
        await self._drained()
        return Span(count, took, tuple(self._latencies[skipped:]))

    async def for_continuations(self, count: int, works_s: float = 0) -> Span:
        """Have a number of continuations reported; raises as `for_seconds`.

        Args:
            count: how many.
            works_s: how long an agent works, so that what follows a claim is done before its result comes.
        """
        began = time.perf_counter()
        self._begin(count, works_s)
        await self._drained()
        return Span(count, time.perf_counter() - began, tuple(self._latencies))

    def _begin(self, budget: int, works_s: float = 0) -> None:
        self._budget = budget
        self._works_s = works_s
        self._latencies, self.dispatched_ms, self.trips_ms = [], [], []
        self._idle.clear()
        resting, self._resting = self._resting, []
        self._under_way = len(resting)
        for offer in resting:
            self._take(offer)

    async def _drained(self) -> None:
        await until_idle(self._idle, lambda: self.done, lambda: f"{self._under_way} sessions were offered nothing")
        if self._failure:
            raise BenchmarkFailed(self._failure)

    def _on_offer(self, delivery: Delivery) -> None:
        now = time.time_ns()
        # A runner acks when its agent ends; here none is lost, and what rests between two stretches is not to return.
        delivery.ack()
        offer = codec.decode(delivery.body, RoleOffer, "a RoleOffer")
        if not offer.session.startswith(f"s-{self._prefix}-"):
            return  # an earlier round's
        reported = self._reported.pop(offer.session, None)
        if reported is not None:
            self._latencies.append((now - reported) / 1e6)
            # The server is on this machine, so its clock is ours.
            self.dispatched_ms.append((delivery.stored_ns - reported) / 1e6)
        self._take(offer)

    def _take(self, offer: RoleOffer) -> None:
        """Claim a role run and report it, or leave it for the next stretch."""
        if self._budget <= 0:
            self._resting.append(offer)
            self._under_way -= 1
            if self._under_way == 0:
                self._idle.set()
            return
        self._budget -= 1
        claim = ClaimRole(offer.session, offer.role_run, offer.generation, offer.role_run)

        def on_claimed(reply: Reply | Exception) -> None:
            if isinstance(reply, Exception) or b"Nats-Service-Error" in reply.head:
                self._fail(f"a claim was refused: {reply if isinstance(reply, Exception) else reply.body[:300]!r}")
                return
            codec.decode(reply.body, RoleClaimed, "a RoleClaimed")
            if self._works_s:
                loop = asyncio.get_running_loop()
                loop.call_later(self._works_s / 2, self._probe)
                loop.call_later(self._works_s, self._report, offer)
            else:
                self._report(offer)

        self._requester.request_nowait(self._claim, codec.encode(claim), on_claimed, timeout_ms=_WAIT_MS)

    def _probe(self) -> None:
        """Measure a round trip of the server, while it does nothing else for us."""
        began = time.perf_counter()

        def on_stored(ack: PubAck | Exception) -> None:
            if isinstance(ack, PubAck):
                self.trips_ms.append((time.perf_counter() - began) * 1000)

        self._requester.publish_nowait(self._subjects.dead("BENCH"), _PROBE, on_stored)

    def _report(self, offer: RoleOffer) -> None:
        def on_stored(ack: PubAck | Exception) -> None:
            if isinstance(ack, Exception):
                self._fail(f"a result could not be stored: {ack}")
            else:
                self.done += 1

        self._reported[offer.session] = time.time_ns()
        subject = self._subjects.esm_result(RUNNER, offer.session)
        body, head = encoded_result(offer)
        self._requester.publish_nowait(subject, body, on_stored, head, _WAIT_MS)

    def _fail(self, reason: str) -> None:
        self._failure = self._failure or reason
        self._budget = 0
        self._idle.set()


def encoded_result(offer: RoleOffer) -> tuple[bytes, bytes]:
    """Return the body and the headers of an offered role run's result."""
    ended = RoleEnded(
        offer.session, RUNNER, offer.role_run, offer.generation, offer.role_run,
        response=_answer(offer.role_run), tokens=100, duration_ms=10, evidence=Evidence(2, {"bash": 2}, 0),
    )  # fmt: skip
    return codec.encode(ended), _HEAD


def _answer(role_run: str) -> str:
    """Return a worker's report; a report that says nothing new would be no progress, and the next run late."""
    report = {
        "status": "continue",
        "summary": f"{role_run}: the parser reads every sample but the two with nested comments",
        "evidence": ["make test: 212 passed, 2 failed"],
        "remaining_work": ["nested comments", "the printer"],
    }
    return json.dumps(report)
