"""The wiring of one conclusion process: what it consumes, what it answers, and how it starts and drains."""

from turngate import __version__
from turngate.clock import system_clock
from turngate.conclusion.files import Files, RunnerFiles, SharedFiles
from turngate.conclusion.handler import Intake, Rules
from turngate.conclusion.memory import Memories, MemoryBucket, MemorySubject
from turngate.conclusion.metrics import Counters
from turngate.conclusion.owners import Owners
from turngate.conclusion.projects import ProjectBucket, ProjectFile, Projects
from turngate.conclusion.reconciler import TaskEffects
from turngate.conclusion.requests import Requests
from turngate.jetstream.api import Api
from turngate.jetstream.connect import Connection
from turngate.jetstream.consume import ConsumeLoop
from turngate.jetstream.deadletter import DeadLetters
from turngate.jetstream.keyed import Lanes
from turngate.jetstream.mailbox import Mailboxes
from turngate.jetstream.reconcile import Reconciler
from turngate.jetstream.request import Requester
from turngate.jetstream.store import Store
from turngate.jetstream.suspects import Suspects
from turngate.metrics.observed import Observed
from turngate.settings import EvidenceCheck, Settings
from turngate_contracts import codec
from turngate_contracts.messages import SCHEMAS
from turngate_contracts.subjects import Subjects
from turngate_contracts.topology import CONCLUSION, CONCLUSIONS_RECONCILER
from turngate_protocol.conclusion import GateOptions
from turngate_protocol.conclusion.record import TaskConclusion
from turngate_protocol.report.session import SessionTurns

WINDOW = 64
"""Most finished tasks that one process asks for at once: each may hold half a megabyte of output."""


class ConclusionService:
    """One process's share of the conclusions; start as many as the load wants."""

    def __init__(self, connection: Connection, requester: Requester, settings: Settings) -> None:
        """Make it from its settings.

        Raises:
            ProjectsUnreadable: the file of projects can't be used.
            RootUnusable: the shared directory is none.
        """
        subjects = settings.topology().subjects
        clock = system_clock(settings.clock_offset_ms)
        self.counters = Counters()
        self._store = Store(requester, subjects, "conclusions", SCHEMAS[TaskConclusion])
        self.lanes: Lanes[TaskConclusion] = Lanes(self._store, codec.encode, codec.decoder(TaskConclusion).decode)
        self._connection = connection
        self._subjects = subjects
        rules = Rules(_gate(settings.evidence), settings.synthesize == "on")
        stream = subjects.stream("tasks")
        dead = DeadLetters(requester, subjects, clock)
        owners = Owners(Store(requester, subjects, "turns", SCHEMAS[SessionTurns]))
        intake = Intake(stream, self.lanes, Mailboxes(connection, subjects), dead, rules, clock, self.counters, owners)
        effects = TaskEffects(
            requester,
            subjects,
            self.lanes,
            rules,
            _files(requester, subjects, settings, self.counters),
            clock,
            self.counters,
            memories=_memories(requester, settings),
            projects=_projects(requester, settings),
        )
        self.reconciler = Reconciler(connection, self._store, CONCLUSIONS_RECONCILER, effects.perform, dead)
        careful = Suspects(dead, stream, intake.on_delivery)
        self.loop = ConsumeLoop(connection, stream, CONCLUSION, careful.on_delivery, window=WINDOW)
        self._api: Api | None = None

    async def start(self) -> None:
        """Begin to take finished tasks, to reconcile states and to answer requests."""
        self._api = await Api.start(self._connection, self._subjects, "conclusion", __version__)
        await Requests(self._api, self._store, self.counters).register()
        await self.reconciler.start()
        await self.loop.start()

    def observed(self) -> Observed:
        """Return what is measured here."""
        counted = self.counters
        return Observed(
            loops=(self.loop,),
            lanes=(self.lanes,),
            reconcilers=(self.reconciler,),
            apis=() if self._api is None else (self._api,),
            counts={
                "turngate_conclusions_total": counted.concluded,
                "turngate_evidence_refs_total": counted.refs,
                "turngate_refusals_total": counted.refused,
                "turngate_repeats_total": counted.repeats,
                "turngate_silent_runners_total": counted.silent_runners,
            },
        )

    async def stop(self, timeout_ms: int = 10_000) -> bool:
        """Take no more, finish what is under way, and say whether all of it was finished."""
        taken = await self.loop.stop(timeout_ms)
        reconciled = await self.reconciler.stop(timeout_ms)
        if self._api is not None:
            await self._api.stop()
        return taken and reconciled


def _gate(evidence: EvidenceCheck) -> GateOptions:
    return GateOptions(disabled=evidence == EvidenceCheck.OFF, strict=evidence == EvidenceCheck.CHANGED)


def _files(requester: Requester, subjects: Subjects, settings: Settings, counters: Counters) -> Files:
    if settings.shared_dir:
        return SharedFiles(settings.shared_dir, settings.stat_timeout_ms)

    def on_silence() -> None:
        counters.silent_runners += 1

    return RunnerFiles(requester, subjects, settings.stat_timeout_ms, on_silence)


def _memories(requester: Requester, settings: Settings) -> Memories | None:
    if settings.memory_bucket:
        return MemoryBucket(requester, settings.memory_bucket, settings.stat_timeout_ms)
    if settings.memory_subject:
        return MemorySubject(requester, settings.memory_subject, settings.stat_timeout_ms)
    return None


def _projects(requester: Requester, settings: Settings) -> Projects | None:
    if settings.projects_file:
        return ProjectFile.read(settings.projects_file)
    return ProjectBucket(requester, settings.projects_bucket) if settings.projects_bucket else None
