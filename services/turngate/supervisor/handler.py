"""One message of the intake: decode, check who sends it, advance, ack.

A result is applied once, and only while its claim holds the role run; every other result changes nothing but the usage
counters and is acknowledged all the same. What can't be decoded is told to its runner's mailbox and goes to the dead
letters; the watchdog then finds that nobody holds the role run any more. What can't be saved for now comes again.
"""

import asyncio
import logging
from typing import Final

from msgspec import Struct

from turngate.jetstream.consume import Delivery
from turngate.jetstream.deadletter import DeadLetters
from turngate.jetstream.mailbox import Mailboxes
from turngate.supervisor.lane import EsmLane, error_of
from turngate.tracing import Span, trace_parent_of
from turngate_contracts import codec
from turngate_contracts.errors import (
    ErrorBody,
    IdentityMismatch,
    InvalidMessage,
    Overloaded,
    TurngateError,
    Unavailable,
)
from turngate_contracts.esm import MAX_RUN_ID, RoleEnded, StartObjective
from turngate_contracts.ids import check_id
from turngate_contracts.messages import Refusal
from turngate_contracts.subjects import last_token, sender_and_session
from turngate_contracts.topology import MAX_DELIVER
from turngate_protocol.esm.inputs import RoleFailed, RoleReported, Start

log = logging.getLogger(__name__)

RETRY_MS: Final = (100, 250, 500, 1_000, 2_000, 5_000)
MAX_MESSAGE: Final = 16 * 1024
"""Longest error text of a runner that is looked at, in characters."""


class Intake(Struct, frozen=True):
    """What handling an intake message needs."""

    stream: str
    lane: EsmLane
    mailboxes: Mailboxes
    dead: DeadLetters
    tasks: set[asyncio.Task[None]]

    def on_delivery(self, delivery: Delivery) -> None:
        """Take one message of the intake stream; it is ended now or once what follows is stored."""
        is_start = delivery.subject.split(".", 3)[2] == "start"
        try:
            session, told = _start(delivery) if is_start else _result(delivery)
        except TurngateError as error:
            if not is_start:
                self._refuse(delivery, error.body())
            self.dead.bury(delivery, self.stream, error.body())
            return
        task = asyncio.create_task(self._advance(delivery, session, told))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _advance(self, delivery: Delivery, session: str, told: Start | RoleReported | RoleFailed) -> None:
        run = "" if isinstance(told, Start) else told.role_run_id
        with Span("turngate.supervise", trace_parent_of(delivery.head), "consumer", session=session, run=run):
            await self._tell(delivery, session, told)

    async def _tell(self, delivery: Delivery, session: str, told: Start | RoleReported | RoleFailed) -> None:
        try:
            advanced = await self.lane.tell(session, told)
        except Exception as error:  # noqa: BLE001  whatever it is: the message is kept until it is decided
            self._retry(delivery, error)
            return
        if advanced.refused is not None:
            # A start of an objective that is gone; results are never refused.
            self.dead.bury(delivery, self.stream, error_of(advanced.refused))
        else:
            delivery.ack()

    def _retry(self, delivery: Delivery, error: Exception) -> None:
        tries = delivery.deliveries
        if tries >= MAX_DELIVER and not isinstance(error, (Unavailable, Overloaded)):
            reason = error.body() if isinstance(error, TurngateError) else InvalidMessage(type(error).__name__).body()
            self.dead.bury(delivery, self.stream, reason)
            return
        delay = RETRY_MS[min(tries, len(RETRY_MS)) - 1]
        log.warning("message %d is not applied yet (again in %d ms): %s", delivery.sequence, delay, error)
        delivery.nak(delay)

    def _refuse(self, delivery: Delivery, error: ErrorBody) -> None:
        self.lane.counters.refused[error.code.value] += 1
        runner, session = sender_and_session(delivery.subject)
        self.mailboxes.nudge(runner, "refused", Refusal(self.stream, delivery.sequence, error, session))


def _start(delivery: Delivery) -> tuple[str, Start]:
    message = codec.decode(delivery.body, StartObjective, "a StartObjective")
    session = check_id("session", last_token(delivery.subject))
    if message.session != session:
        raise IdentityMismatch("session", message.session, session)
    run_id = checked_run_id(message.run_id)
    return session, Start(run_id=run_id, id=check_id("op", message.op), actor=check_id("actor", message.actor))


def _result(delivery: Delivery) -> tuple[str, RoleReported | RoleFailed]:
    runner, session = sender_and_session(delivery.subject)
    check_id("runner", runner)
    check_id("session", session)
    ended = codec.decode(delivery.body, RoleEnded, "a RoleEnded")
    if ended.runner != runner:
        raise IdentityMismatch("runner", ended.runner, runner)
    if ended.session != session:
        raise IdentityMismatch("session", ended.session, session)
    check_id("role_run", ended.role_run)
    check_id("claim", ended.claim)
    return session, input_of(ended)


def input_of(ended: RoleEnded) -> RoleReported | RoleFailed:
    """Return what the machine is told when a role run ended."""
    if ended.failure is None:
        return RoleReported(
            role_run_id=ended.role_run,
            generation=ended.generation,
            claim_id=ended.claim,
            runner=ended.runner,
            response=ended.response,
            tokens=ended.tokens,
            duration_ms=ended.duration_ms,
            evidence=ended.evidence,
        )
    return RoleFailed(
        role_run_id=ended.role_run,
        generation=ended.generation,
        claim_id=ended.claim,
        runner=ended.runner,
        kind=ended.failure,
        message=ended.message[:MAX_MESSAGE],
        tokens=ended.tokens,
        duration_ms=ended.duration_ms,
        evidence=ended.evidence,
    )


def checked_run_id(run_id: str) -> str | None:
    """Return a base run id that somebody asks for, None where it is empty.

    Raises:
        InvalidId, InvalidMessage: it can't be part of a subject with its role behind it.
    """
    if not run_id:
        return None
    if len(check_id("run_id", run_id)) > MAX_RUN_ID:
        raise InvalidMessage(f"run_id may have at most {MAX_RUN_ID} characters, not {len(run_id)}", field="run_id")
    return run_id
