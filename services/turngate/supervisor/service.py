"""The wiring of one supervisor process: what it consumes, what it answers, and how it starts and drains."""

import asyncio

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
from turngate.jetstream.timers import Timers
from turngate.metrics.observed import Observed
from turngate.settings import Settings
from turngate.supervisor.alarms import Alarms
from turngate.supervisor.handler import Intake
from turngate.supervisor.history import History
from turngate.supervisor.lane import EsmLane
from turngate.supervisor.listing import Listing
from turngate.supervisor.metrics import Counters
from turngate.supervisor.offers import Offers
from turngate.supervisor.presence import Presences
from turngate.supervisor.progress import ProgressNews
from turngate.supervisor.reconciler import ObjectiveEffects
from turngate.supervisor.requests import Requests
from turngate.supervisor.roles import RoleRequests
from turngate.supervisor.timers import Due
from turngate_contracts import codec
from turngate_contracts.messages import SCHEMAS
from turngate_contracts.topology import OBJECTIVES_RECONCILER, SUPERVISOR, Durability
from turngate_protocol.esm.inputs import TimerKind
from turngate_protocol.esm.state import EsmState


class SupervisorService:
    """One process's share of supervising; start as many as the load wants."""

    def __init__(self, connection: Connection, requester: Requester, settings: Settings) -> None:
        topology = settings.topology()
        subjects = topology.subjects
        policy = settings.policy()
        clock = system_clock(settings.clock_offset_ms)
        self.counters = Counters()
        grouped = topology.durability is Durability.STRICT
        store = Store(requester, subjects, "objectives", SCHEMAS[EsmState], grouped=grouped)
        lanes: Lanes[EsmState] = Lanes(store, codec.encode, codec.decoder(EsmState).decode)
        offers = Offers(requester, subjects, policy, settings.pool)
        self.lane = EsmLane(lanes, policy, clock, self.counters, offers.nudge)
        self.presences = Presences(connection, requester, topology)
        self._connection = connection
        self._requester = requester
        self._subjects = subjects
        self._clock = clock
        self._pool = settings.pool
        self._tasks: set[asyncio.Task[None]] = set()
        mailboxes = Mailboxes(connection, subjects)
        dead = DeadLetters(requester, subjects, clock)
        timers, alarms = subjects.stream("timers"), Alarms(Timers(requester, subjects), policy)
        effects = ObjectiveEffects(
            self.lane, mailboxes, Inbox(requester, subjects), alarms, offers, default_pool=settings.pool
        )
        self.reconciler = Reconciler(connection, store, OBJECTIVES_RECONCILER, effects.perform, dead)
        intake = Intake(subjects.stream("esm"), self.lane, mailboxes, dead, self._tasks)
        due = Due(timers, self.lane, self.presences, alarms, dead, self._tasks)
        results = Suspects(dead, subjects.stream("esm"), intake.on_delivery)
        fired = Suspects(dead, timers, due.on_delivery)
        self.loops = [
            ConsumeLoop(connection, subjects.stream("esm"), SUPERVISOR, results.on_delivery, window=settings.window),
            *(
                ConsumeLoop(connection, timers, subjects.timer_consumer(kind.value), fired.on_delivery)
                for kind in TimerKind
            ),
        ]
        self._api: Api | None = None

    async def start(self) -> None:
        """Begin to take results and timers, to reconcile states and to answer requests."""
        self._api = await Api.start(self._connection, self._subjects, "supervisor", __version__)
        store = self.lane.lanes.store
        listing = Listing(store, self.presences, self._pool, self._subjects)
        turns = Store(self._requester, self._subjects, "turns", "")
        history = History(store, self._subjects)
        await Requests(self._api, self.lane, listing, history, turns, self._pool).register()
        news = ProgressNews(self._requester, self._subjects)
        await RoleRequests(self._api, self.lane, self.presences, news, self._clock).register()
        await self.reconciler.start()
        for loop in self.loops:
            await loop.start()
        # Whoever is told that this process is ready may ask at once, over a connection of its own.
        await self._connection.flush()

    def observed(self) -> Observed:
        """Return what is measured here."""
        counted = self.counters
        return Observed(
            loops=tuple(self.loops),
            lanes=(self.lane.lanes,),
            reconcilers=(self.reconciler,),
            apis=() if self._api is None else (self._api,),
            counts={
                "turngate_objective_causes_total": counted.causes,
                "turngate_role_verdicts_total": counted.verdicts,
                "turngate_ignored_results_total": counted.ignored,
                "turngate_refusals_total": counted.refused,
            },
            histograms={"turngate_role_seconds": counted.role_times},
        )

    async def stop(self, timeout_ms: int = 10_000) -> bool:
        """Take no more, finish what is under way, and say whether all of it was finished."""
        stops = [loop.stop(timeout_ms) for loop in self.loops]
        ended = await asyncio.gather(*stops, self.reconciler.stop(timeout_ms))
        if self._api is not None:
            await self._api.stop()
        self.presences.stop()
        return all(ended)
