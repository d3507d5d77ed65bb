"""One timer that is due: the next continuation, or a look after a role run that is under way.

A timer decides nothing by itself: it names a generation and the time that it was set for, and the state knows whether
those are still wanted. One that fires twice, late, or beside its replacement changes nothing (see `alarms`). The
watchdog asks who is alive before it tells the machine; where nobody can know, the timer comes again.
"""

import asyncio
import logging
from typing import Final

from msgspec import Struct

from turngate.jetstream.consume import Delivery
from turngate.jetstream.deadletter import DeadLetters
from turngate.supervisor.alarms import Alarms
from turngate.supervisor.lane import EsmLane
from turngate.supervisor.presence import Presences
from turngate_contracts import codec
from turngate_contracts.errors import TurngateError, Unavailable
from turngate_contracts.esm import ObjectiveDue
from turngate_contracts.ids import check_id
from turngate_protocol.esm.inputs import Timer, TimerKind
from turngate_protocol.esm.state import EsmState

log = logging.getLogger(__name__)

RETRY_MS: Final = (100, 250, 500, 1_000, 2_000, 5_000)


class _Deaf(Unavailable):
    """This process would not have heard a runner that is alive."""

    def __init__(self, again_ms: int) -> None:
        super().__init__("this process has not listened for long enough to miss a runner")
        self.again_ms = again_ms


class Due(Struct, frozen=True):
    """What taking timers needs."""

    stream: str
    lane: EsmLane
    presences: Presences
    alarms: Alarms
    dead: DeadLetters
    tasks: set[asyncio.Task[None]]

    def on_delivery(self, delivery: Delivery) -> None:
        """Take one timer that is due; it is ended once what follows is stored."""
        try:
            due = codec.decode(delivery.body, ObjectiveDue, "an ObjectiveDue")
            check_id("session", due.session)
        except TurngateError as error:
            self.dead.bury(delivery, self.stream, error.body())
            return
        task = asyncio.create_task(self._fire(delivery, due))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _fire(self, delivery: Delivery, due: ObjectiveDue) -> None:
        try:
            present = due.kind is not TimerKind.WATCHDOG or await self._is_present(due)
            timer = Timer(kind=due.kind, generation=due.generation, at=due.at, runner_present=present)
            advanced = await self.lane.tell(due.session, timer)
            if not advanced.changed:
                await self.alarms.replace(due, await self.lane.lanes.store.load(due.session))
        except _Deaf as deaf:
            delivery.nak(deaf.again_ms)
        except Exception as error:  # noqa: BLE001  whatever it is: the timer is kept until it is decided
            delay = RETRY_MS[min(delivery.deliveries, len(RETRY_MS)) - 1]
            log.warning("a timer of %s is not taken yet (again in %d ms): %s", due.session, delay, error)
            delivery.nak(delay)
        else:
            delivery.ack()

    async def _is_present(self, due: ObjectiveDue) -> bool:
        """Say whether the runner that holds the role run was lately heard to hold it, or nobody holds it."""
        entry = await self.lane.lanes.store.load(due.session)
        if entry.value is None:
            return True
        state = codec.decode(entry.value, EsmState, "a session's objective")
        run = state.continuation.role_run if state.continuation else None
        wanted = state.generation == due.generation and run is not None and run.check_at == due.at
        if run is None or not wanted or not run.claim_id:
            return True
        presence = await self.presences.find(run.runner)
        if presence is not None and any(held.claim == run.claim_id for held in presence.held):
            return True
        deaf_ms = self.presences.deaf_ms
        if deaf_ms:
            raise _Deaf(deaf_ms)
        return False
