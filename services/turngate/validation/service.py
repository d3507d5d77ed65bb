"""The wiring of one validation process: what it consumes, what it answers, and how it starts and drains."""

import logging

from turngate import __version__
from turngate.clock import system_clock
from turngate.jetstream.api import Api
from turngate.jetstream.connect import Connection
from turngate.jetstream.consume import ConsumeLoop
from turngate.jetstream.deadletter import DeadLetters
from turngate.jetstream.inbox import Inbox
from turngate.jetstream.keyed import Lanes
from turngate.jetstream.mailbox import Mailboxes
from turngate.jetstream.reconcile import Reconciler
from turngate.jetstream.request import Requester
from turngate.jetstream.store import Store
from turngate.jetstream.suspects import Suspects
from turngate.metrics.observed import Observed
from turngate.settings import Settings
from turngate.validation.handler import Intake
from turngate.validation.metrics import Counters
from turngate.validation.questions.service import Questions
from turngate.validation.reconciler import TurnEffects
from turngate.validation.requests import Requests
from turngate_contracts import codec
from turngate_contracts.messages import SCHEMAS
from turngate_contracts.topology import TURNS_RECONCILER, VALIDATION, Durability
from turngate_protocol.report.session import SessionTurns
from turngate_protocol.report.turn import GateRules

log = logging.getLogger(__name__)


class ValidationService:
    """One process's share of validation; start as many as the load wants."""

    def __init__(self, connection: Connection, requester: Requester, settings: Settings) -> None:
        topology = settings.topology()
        subjects = topology.subjects
        clock = system_clock(settings.clock_offset_ms)
        grouped = topology.durability is Durability.STRICT
        store = Store(requester, subjects, "turns", SCHEMAS[SessionTurns], grouped=grouped)
        self.lanes: Lanes[SessionTurns] = Lanes(store, codec.encode, codec.decoder(SessionTurns).decode)
        self.counters = Counters()
        self._connection = connection
        self._topology = topology
        self._inbox = Inbox(requester, subjects)
        self._intake = Intake(
            subjects.stream("turns"),
            self.lanes,
            Mailboxes(connection, subjects),
            DeadLetters(requester, subjects, clock),
            GateRules(settings.mode, settings.max_blocks),
            clock,
            self.counters,
        )
        self.questions = Questions(connection, requester, subjects, self._inbox, store, clock, self.counters)
        effects = TurnEffects(requester, subjects, self.lanes, self._inbox, clock)
        self.reconciler = Reconciler(
            connection, store, TURNS_RECONCILER, effects.perform, self._intake.dead, recall=effects.recall
        )
        stream = subjects.stream("turns")
        careful = Suspects(self._intake.dead, stream, self._intake.on_delivery)
        self.loop = ConsumeLoop(connection, stream, VALIDATION, careful.on_delivery, window=settings.window)
        self._api: Api | None = None

    async def start(self) -> None:
        """Begin to take turns and timers, to reconcile states and to answer requests."""
        self._api = await Api.start(self._connection, self._topology.subjects, "validation", __version__)
        await Requests(self._api, self._intake, self._inbox, self._topology).register()
        await self.questions.start(self._api)
        await self.reconciler.start()
        await self.loop.start()

    def observed(self) -> Observed:
        """Return what is measured here."""
        counted = self.counters
        return Observed(
            loops=(self.loop, self.questions.loop),
            lanes=(self.lanes, self.questions.lanes),
            reconcilers=(self.reconciler, self.questions.reconciler),
            apis=() if self._api is None else (self._api,),
            counts={
                "turngate_verdicts_total": counted.verdicts,
                "turngate_problems_total": counted.problems,
                "turngate_endings_total": counted.endings,
                "turngate_questions_total": counted.questions,
                "turngate_refusals_total": counted.refused,
                "turngate_repeats_total": counted.repeats,
            },
        )

    async def stop(self, timeout_ms: int = 10_000) -> bool:
        """Take no more, finish what is under way, and say whether all of it was finished."""
        taken = await self.loop.stop(timeout_ms)
        reconciled = await self.reconciler.stop(timeout_ms)
        questioned = await self.questions.stop(timeout_ms)
        if self._api is not None:
            await self._api.stop()
        return taken and reconciled and questioned
