"""One finished task: decode, check, take, save, ack.

The story of a message reads top to bottom: `on_delivery` decodes it, checks that it says who its subject says it is and
that the task may be concluded; `owned` checks that the session is of the sender's pool; `decide` takes the task, its
conclusion enriched; the lanes save the new state; `done` acks. What the state then wants is the reconciler's. A message
that can't be used is told to its runner's mailbox and goes to the dead letters; one for a session of another pool is
told too, and forgotten; one that can't be saved for now comes again.
"""

import logging
from typing import Final

from msgspec import Struct

from turngate.clock import Clock
from turngate.conclusion.metrics import Counters
from turngate.conclusion.owners import Owners
from turngate.jetstream.consume import Delivery
from turngate.jetstream.deadletter import DeadLetters
from turngate.jetstream.keyed import Lanes, Save
from turngate.jetstream.mailbox import Mailboxes
from turngate.jetstream.store import Event
from turngate.tracing import Span, trace_parent_of
from turngate_contracts import codec
from turngate_contracts.errors import (
    ErrorBody,
    ErrorCode,
    IdentityMismatch,
    InvalidMessage,
    Overloaded,
    TurngateError,
    Unavailable,
)
from turngate_contracts.ids import check_id, is_id
from turngate_contracts.messages import Refusal
from turngate_contracts.subjects import pool_sender_session, sender_and_session
from turngate_contracts.tasks import TaskFinished, check_finished
from turngate_contracts.topology import MAX_DELIVER
from turngate_protocol.conclusion import GateOptions
from turngate_protocol.conclusion.record import (
    Finished,
    Taken,
    TaskConclusion,
    key_of,
    receive,
    wants_something,
)

log = logging.getLogger(__name__)

RETRY_MS: Final = (100, 250, 500, 1_000, 2_000, 5_000)


class Rules(Struct, frozen=True):
    """What the operator chose: how the gate works, and whether tasks without a block get a conclusion."""

    gate: GateOptions = GateOptions()
    synthesize_fallback: bool = True


class Intake(Struct, frozen=True):
    """What handling a finished task needs."""

    stream: str
    lanes: Lanes[TaskConclusion]
    mailboxes: Mailboxes
    dead: DeadLetters
    rules: Rules
    clock: Clock
    counters: Counters
    owners: Owners

    def on_delivery(self, delivery: Delivery) -> None:
        """Take one message of the intake stream; it is ended now or once its outcome is stored."""
        pool, runner, session = pool_sender_session(delivery.subject)
        message: TaskFinished | None = None
        try:
            message = codec.decode(delivery.body, TaskFinished, "a TaskFinished")
            work = _TaskWork(self, delivery, _finished(message, pool, runner, session))
        except TurngateError as error:
            task = message.record.id if message is not None else ""
            self.refuse(delivery, runner, session, task, error.body())
            self.dead.bury(delivery, self.stream, error.body())
            return
        self.owners.find(session, pool, work.owned)

    def refuse(self, delivery: Delivery, runner: str, session: str, task: str, error: ErrorBody) -> None:
        """Tell a runner that its message changed nothing, and why."""
        self.counters.refused[error.code.value] += 1
        refusal = Refusal(self.stream, delivery.sequence, error, session, task=task if is_id(task) else "")
        self.mailboxes.nudge(runner, "refused", refusal)

    def retry(self, delivery: Delivery, error: Exception) -> None:
        """Have a message again later, or give it up when it was tried often enough for reasons of its own."""
        tries = delivery.deliveries
        if tries >= MAX_DELIVER and not isinstance(error, (Unavailable, Overloaded)):
            reason = error.body() if isinstance(error, TurngateError) else InvalidMessage(type(error).__name__).body()
            self.dead.bury(delivery, self.stream, reason)
            return
        delay = RETRY_MS[min(tries, len(RETRY_MS)) - 1]
        runner, session = sender_and_session(delivery.subject)
        facts = {"stream": self.stream, "sequence": delivery.sequence, "runner": runner, "session": session}
        text = "task message %d is not saved yet (again in %d ms): %s"
        log.warning(text, delivery.sequence, delay, error, extra={"facts": facts})
        delivery.nak(delay)


class _TaskWork:
    """A finished task on its way through the lanes."""

    __slots__ = ("_delivery", "_finished", "_foreign", "_intake", "_span", "_taken", "key", "likely_new")

    def __init__(self, intake: Intake, delivery: Delivery, finished: Finished) -> None:
        self.key = key_of(finished.session, finished.record.id)
        self.likely_new = True
        self._intake = intake
        self._delivery = delivery
        self._finished = finished
        self._taken: Taken | None = None
        self._foreign = ""
        facts = {"session": finished.session, "task": finished.record.id, "runner": finished.runner}
        self._span = Span("turngate.conclude", trace_parent_of(delivery.head), "consumer", **facts)

    def owned(self, owner: str | Exception) -> None:
        """Go on, now that the pool of the session is known, empty where it has none."""
        if isinstance(owner, Exception):
            self.failed(owner)
        elif owner not in ("", self._finished.pool):
            self._foreign = owner
            self.done(None, 0)
        else:
            self._intake.lanes.submit(self, self._delivery.park)

    def decide(self, state: TaskConclusion | None) -> Save[TaskConclusion] | None:
        if state is not None and state.pool != self._finished.pool:
            self._foreign = state.pool
            return None
        rules = self._intake.rules
        self._taken = receive(
            state,
            self._finished,
            self._intake.clock(),
            options=rules.gate,
            synthesize_fallback=rules.synthesize_fallback,
        )
        new = self._taken.state
        if new is None:
            return None
        return Save(new, Event(new.cause.type, new.cause.at, wants_something(new), self._span.trace_parent))

    def done(self, state: TaskConclusion | None, _revision: int) -> None:
        with self._span:
            self._told(state)
        self._delivery.ack()

    def _told(self, state: TaskConclusion | None) -> None:
        intake, taken, finished = self._intake, self._taken, self._finished
        if self._foreign:
            error = _foreign(finished, self._foreign)
            intake.refuse(self._delivery, finished.runner, finished.session, finished.record.id, error)
        elif taken is not None and taken.conflict and state is not None:
            intake.counters.conflicts += 1
            intake.refuse(self._delivery, finished.runner, finished.session, finished.record.id, _conflict(state))
        elif taken is not None and taken.state is None:
            intake.counters.repeats += 1
        else:
            intake.counters.received[finished.record.status] += 1

    def failed(self, error: Exception) -> None:
        self._intake.retry(self._delivery, error)
        self._span.end(error)


def _finished(message: TaskFinished, pool: str, runner: str, session: str) -> Finished:
    check_id("pool", pool)
    check_id("runner", runner)
    check_id("session", session)
    if message.pool != pool:
        raise IdentityMismatch("pool", message.pool, pool)
    if message.runner != runner:
        raise IdentityMismatch("runner", message.runner, runner)
    if message.session != session:
        raise IdentityMismatch("session", message.session, session)
    check_finished(message)
    return Finished(session, pool, runner, message.record, message.start)


def _foreign(finished: Finished, owner: str) -> ErrorBody:
    return ErrorBody(
        ErrorCode.POOL_MISMATCH,
        f"session {finished.session} belongs to pool {owner}, not {finished.pool}; use a runner of that pool",
        {"session": finished.session, "pool": owner},
    )


def _conflict(state: TaskConclusion) -> ErrorBody:
    return ErrorBody(
        ErrorCode.TASK_CONFLICT,
        f"task {state.task} was finished by {state.runner} with other content; the first ending stands, "
        "this one was recorded as a conflict",
        {"task": state.task, "runner": state.runner, "received_at": state.received_at, "status": state.record.status},
    )
