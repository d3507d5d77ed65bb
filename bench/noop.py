"""The ceilings: services with the same connection and the same consume loop that decide nothing and keep nothing.

The one for turns tells the runner's mailbox one short message and acks, the one for role runs answers a claim and
publishes the next offer: what no service on this client can do without.
"""

from typing import Final

from turngate import __version__
from turngate.jetstream.api import Api, Call
from turngate.jetstream.connect import Connection
from turngate.jetstream.consume import ConsumeLoop, Delivery
from turngate.jetstream.request import Requester
from turngate.settings import Settings
from turngate_contracts import codec
from turngate_contracts.esm import ClaimRole, RoleClaimed, RoleOffer
from turngate_contracts.subjects import Subjects, sender_and_session
from turngate_contracts.topology import SUPERVISOR, VALIDATION
from turngate_protocol.esm.objective import Objective, Role
from turngate_protocol.esm.roles import RoleRequest

_PROMPT: Final = "Work on the objective and report as JSON. " * 100
"""As long as the prompt of a worker is."""


class NoopService:
    """Takes turns as the validation service does, and decides nothing."""

    def __init__(self, connection: Connection, settings: Settings) -> None:
        self._connection = connection
        self._subjects = Subjects(settings.namespace)
        stream = self._subjects.stream("turns")
        self._loop = ConsumeLoop(connection, stream, VALIDATION, self._on_delivery, window=settings.window)

    async def start(self) -> None:
        """Begin to take turns."""
        await self._loop.start()

    async def stop(self, timeout_ms: int = 10_000) -> bool:
        """Take no more, and say whether all that was taken is acked."""
        return await self._loop.stop(timeout_ms)

    def _on_delivery(self, delivery: Delivery) -> None:
        runner, session = sender_and_session(delivery.subject)
        told = f'{{"session":"{session}","outcome":"accepted"}}'
        self._connection.send(self._subjects.mailbox(runner, "verdict"), told.encode())
        delivery.ack()


class NoopSupervisor:
    """Takes results and claims as the supervisor does, keeps no state, and offers the next role run at once."""

    def __init__(self, connection: Connection, requester: Requester, settings: Settings) -> None:
        self._connection = connection
        self._requester = requester
        self._subjects = Subjects(settings.namespace)
        self._runs = 0
        stream = self._subjects.stream("esm")
        self._loop = ConsumeLoop(connection, stream, SUPERVISOR, self._on_delivery, window=settings.window)
        self._api: Api | None = None

    async def start(self) -> None:
        """Begin to take results and claims."""
        self._api = await Api.start(self._connection, self._subjects, "supervisor", __version__)
        await self._api.add("role.claim", ClaimRole, self._on_claim)
        await self._loop.start()
        await self._connection.flush()

    async def stop(self, timeout_ms: int = 10_000) -> bool:
        """Take no more, and say whether all that was taken is acked."""
        ended = await self._loop.stop(timeout_ms)
        if self._api is not None:
            await self._api.stop()
        return ended

    def _on_claim(self, call: Call, claim: ClaimRole) -> None:
        request = RoleRequest(
            session_id=claim.session,
            run_id=claim.role_run,
            base_run_id=claim.role_run,
            generation=claim.generation,
            claim_id=claim.claim,
            role=Role.WORKER,
            prompt=_PROMPT,
            objective=Objective(claim.session, "noop", "Make every test of the parser pass"),
        )
        call.answer(RoleClaimed(request))

    def _on_delivery(self, delivery: Delivery) -> None:
        runner, session = sender_and_session(delivery.subject)
        self._runs += 1
        offer = RoleOffer(session, f"noop-{self._runs}-worker", Role.WORKER, self._runs, runner, 0)
        subject = self._subjects.role_offer(offer.pool, offer.role.value, f"{session}-{offer.role_run}")
        self._requester.publish_nowait(subject, codec.encode(offer), lambda _: delivery.ack())
