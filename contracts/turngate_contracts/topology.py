"""The streams, buckets and consumers as data. Provisioning makes the server agree with this; nothing else creates any.

Source: the configurations that were measured to work (design, section 11). The topology has a version: it is raised
whenever an existing stream or consumer changes in a way that older processes would not expect.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct

from turngate_contracts.subjects import Subjects
from turngate_protocol.esm.inputs import TimerKind

TOPOLOGY_VERSION: Final = 3
VERSION_KEY: Final = "turngate_topology"
"""The stream metadata that carries the version."""

_SECOND: Final = 1_000_000_000
_DAY: Final = 86_400 * _SECOND
_MIB: Final = 1024 * 1024

TURNS_HISTORY: Final = 128
CONCLUSIONS_HISTORY: Final = 16
QUESTIONS_HISTORY: Final = 64
OBJECTIVES_HISTORY: Final = 512
VALIDATION: Final = "validation"
TURNS_RECONCILER: Final = "turns-reconciler"
CONCLUSION: Final = "conclusion"
CONCLUSIONS_RECONCILER: Final = "conclusions-reconciler"
QUESTIONS_RECONCILER: Final = "questions-reconciler"
SUPERVISOR: Final = "supervisor"
OBJECTIVES_RECONCILER: Final = "objectives-reconciler"
DEADLETTER: Final = "deadletter"
QUESTION_TIMER: Final = "question"
"""The kind of the timers that let questions expire."""
MAX_DELIVER: Final = 20
"""How often a message may fail for reasons of its own before it is given up; a server that is away does not count."""
MOST_DELIVERIES: Final = 1_000
"""How often the server itself delivers a message of a work queue: far above what handlers allow, so that it only ends
what no handler ever sees."""
QUEUED_PER_SUBJECT: Final = 256
"""Most messages of one runner and session that wait in a work queue: others never wait behind more."""
RETENTION_DAYS: Final = 90
"""How long a state stays that nobody changes and that wants nothing."""
MAX_DELIVERIES: Final = "MAX_DELIVERIES"
TERMINATED: Final = "MSG_TERMINATED"
"""The kinds of advisories that tell of messages which nobody will be given again."""
ACK_WAIT_MS: Final = 30_000
TIMER_ACK_WAIT_MS: Final = 2_000
"""A timer is due already: whoever is killed with it in hand must not make it much later. It may fire twice anyway."""
PRESENCE_MS: Final = 30_000
"""For how long a runner counts as alive after it was last heard of."""


class Durability(StrEnum):
    """What an acknowledged save survives: `strict` a power cut, `relaxed` the end of every process."""

    STRICT = "strict"
    RELAXED = "relaxed"


class Topology(Struct, frozen=True):
    """One namespace's topology on one server or cluster."""

    subjects: Subjects = Subjects()
    durability: Durability = Durability.STRICT
    replicas: int = 1
    presence_ms: int = PRESENCE_MS
    retention_ms: int = RETENTION_DAYS * 86_400_000
    bucket_bytes: int = 0

    def streams(self) -> list[dict[str, Any]]:
        """Return the configuration of every stream, in the order in which they are made."""
        return [
            self._queue(
                "turns", ["turn.report.*.*.*", "turn.ended.*.*.*"], "What runners end turns with", may_be_lost=True
            ),
            self._queue("tasks", ["task.finished.*.*.*"], "Delegated tasks that ended"),
            self._queue("esm", ["esm.result.*.*", "esm.start.*"], "Role runs that ended"),
            self._work(),
            self._presence(),
            self._timers(),
            self._bucket("turns", TURNS_HISTORY),
            self._bucket("questions", QUESTIONS_HISTORY),
            self._bucket("conclusions", CONCLUSIONS_HISTORY),
            self._bucket("objectives", OBJECTIVES_HISTORY),
            self._bucket("inbox", 1),
            self._events(["turns", "questions", "conclusions", "objectives"]),
            self._dead(),
            self._advisories(),
            self._suspects(),
            self._marks(),
        ]

    def consumers(self) -> list[tuple[str, dict[str, Any]]]:
        """Return (stream name, configuration) of every durable consumer but those of pools."""
        s = self.subjects
        return [
            (s.stream("turns"), _consumer(VALIDATION, max_deliver=MOST_DELIVERIES)),
            (
                s.bucket_stream("turns"),
                _consumer(TURNS_RECONCILER, filter_subject=s.revision("turns", ">", wants=True), headers_only=True),
            ),
            (s.bucket_stream("questions"), _consumer(QUESTIONS_RECONCILER, headers_only=True)),
            self.timer_consumer(QUESTION_TIMER),
            (s.stream("tasks"), _consumer(CONCLUSION, max_deliver=MOST_DELIVERIES)),
            (s.bucket_stream("conclusions"), _consumer(CONCLUSIONS_RECONCILER, headers_only=True)),
            (s.stream("esm"), _consumer(SUPERVISOR, max_deliver=MOST_DELIVERIES)),
            (s.bucket_stream("objectives"), _consumer(OBJECTIVES_RECONCILER, headers_only=True)),
            (s.stream("advisories"), _consumer(DEADLETTER)),
            *(self.timer_consumer(kind.value) for kind in TimerKind),
        ]

    def pool_consumers(self, pool: str, roles: Iterable[str] = ()) -> list[tuple[str, dict[str, Any]]]:
        """Return (stream name, configuration) of the consumers that a pool's runners share, for prompts and roles."""
        s = self.subjects
        shared = [_consumer(s.prompt_consumer(pool), filter_subject=s.prompts(pool))]
        shared += [_consumer(s.role_consumer(pool, role), filter_subject=s.role_offers(pool, role)) for role in roles]
        return [(s.stream("work"), consumer) for consumer in shared]

    def timer_consumer(self, kind: str) -> tuple[str, dict[str, Any]]:
        """Return (stream name, configuration) of the consumer of one kind of timers."""
        s = self.subjects
        due = s.timer_due(kind, "x")[:-1] + "*"
        config = _consumer(s.timer_consumer(kind), filter_subject=due, max_deliver=MOST_DELIVERIES)
        return s.stream("timers"), {**config, "ack_wait": TIMER_ACK_WAIT_MS * 1_000_000}

    def _base(self, name: str, subjects: list[str], text: str) -> dict[str, Any]:
        return {
            "name": name,
            "description": text,
            "subjects": subjects,
            "storage": "file",
            "num_replicas": self.replicas,
            "retention": "limits",
            "discard": "new",
            "allow_direct": True,
            "metadata": {VERSION_KEY: str(TOPOLOGY_VERSION)},
        }

    def _asynchronous(self) -> dict[str, Any]:
        # What can be made again is not worth a write, or a sync, of its own. With replicas it is on several disks.
        return {"persist_mode": "async"} if self.replicas == 1 else {}

    def _named(self, parts: list[str]) -> list[str]:
        return [f"{self.subjects.namespace}.{part}" for part in parts]

    def _queue(self, name: str, parts: list[str], text: str, *, may_be_lost: bool = False) -> dict[str, Any]:
        # The verdict is the commit: a turn that the end of a server loses is published again by its runner. Nobody
        # waits like that for the outcome of a task: once stored, it would never be sent again. Where writes are not
        # synced it gains nothing.
        # No age: an outage must not drop what waited. Refuse when full: loss would be silent.
        return {
            **self._base(self.subjects.stream(name), self._named(parts), text),
            "retention": "workqueue",
            "max_bytes": 1024 * _MIB,
            "max_msgs_per_subject": QUEUED_PER_SUBJECT,
            "discard_new_per_subject": True,
            **(self._asynchronous() if may_be_lost and self.durability is Durability.STRICT else {}),
        }

    def _work(self) -> dict[str, Any]:
        return {
            **self._base(self.subjects.stream("work"), self._named(["work.>"]), "Prompts and role runs for pools"),
            "max_msgs_per_subject": 1,
            "discard_new_per_subject": True,
            "allow_msg_ttl": True,  # an offer of a role is made again while it is wanted, so it need not stay
            "max_age": 14 * _DAY,
            "max_bytes": 1024 * _MIB,
        }

    def _presence(self) -> dict[str, Any]:
        return {
            **self._base(self.subjects.stream("presence"), [self.subjects.presences()], "Runners that are alive"),
            "storage": "memory",
            "discard": "old",
            "max_msgs_per_subject": 1,
            "max_age": self.presence_ms * 1_000_000,
        }

    def _timers(self) -> dict[str, Any]:
        subjects = self._named(["timer.at.*.*", "timer.due.*.*"])
        return {
            **self._base(self.subjects.stream("timers"), subjects, "Message schedules and what they fire"),
            "retention": "workqueue",
            "discard": "old",  # schedules refuse "new"; without a limit nothing is ever discarded
            "allow_msg_schedules": True,
            "allow_msg_ttl": True,
            "allow_rollup_hdrs": True,
        }

    def _bucket(self, name: str, history: int) -> dict[str, Any]:
        # Rollup off and purge denied: a header on one permitted subject could otherwise wipe the bucket.
        return {
            **self._base(self.subjects.bucket_stream(name), [self.subjects.key(name, ">")], f"State: {name}"),
            "max_msgs_per_subject": history,
            "max_age": 0 if name == "inbox" else self.retention_ms * 1_000_000,
            "max_bytes": self.bucket_bytes or -1,
            "allow_atomic": True,
            "allow_msg_ttl": True,
            "deny_delete": True,
            "deny_purge": True,
            "allow_rollup_hdrs": False,
        }

    def _events(self, buckets: list[str]) -> dict[str, Any]:
        s = self.subjects
        return {
            **self._base(s.stream("events"), self._named(["event.progress.>"]), "Every revision of every state"),
            "discard": "old",
            "allow_msg_ttl": True,  # what agents say while they work must not push states out
            "max_age": 7 * _DAY,
            "max_bytes": 2048 * _MIB,
            "sources": [
                {
                    "name": s.bucket_stream(name),
                    "subject_transforms": [{"src": s.key(name, ">"), "dest": s.event(name, ">")}],
                }
                for name in buckets
            ],
            "republish": {"src": s.events(), "dest": s.live()},
            **self._asynchronous(),
        }

    def _dead(self) -> dict[str, Any]:
        return {
            **self._base(
                self.subjects.stream("dead"), self._named(["dead.>"]), "Messages that nothing can be done with"
            ),
            "discard": "old",
            "max_age": 30 * _DAY,
            "max_bytes": 256 * _MIB,
            "allow_rollup_hdrs": True,  # only services write here; a decision replaces its letter, with what was in it
        }

    def _advisories(self) -> dict[str, Any]:
        # The streams are named one by one: namespaces that share a server must not share advisories.
        told = ("turns", "tasks", "esm", "timers", "work")
        buckets = ("turns", "questions", "conclusions", "objectives")
        streams = [*map(self.subjects.stream, told), *map(self.subjects.bucket_stream, buckets)]
        kinds = (MAX_DELIVERIES, TERMINATED)
        subjects = [self.subjects.advisories(kind, stream) for kind in kinds for stream in streams]
        return {
            **self._base(self.subjects.stream("advisories"), subjects, "Messages that are not delivered any more"),
            "discard": "old",
            "max_age": 7 * _DAY,
            "max_bytes": 64 * _MIB,
        }

    def _suspects(self) -> dict[str, Any]:
        return {
            **self._base(self.subjects.stream("suspects"), [self.subjects.suspects()], "What may kill its process"),
            "storage": "memory",
            "discard": "old",
            "max_msgs_per_subject": 1,
            "max_age": 3_600 * _SECOND,
            "max_bytes": 16 * _MIB,
        }

    def _marks(self) -> dict[str, Any]:
        return {
            **self._base(self.subjects.stream("marks"), [self.subjects.marks()], "The highest sequences ever seen"),
            "discard": "old",
            "max_msgs_per_subject": 1,
        }


def _consumer(
    name: str, *, filter_subject: str = "", headers_only: bool = False, max_deliver: int = -1
) -> dict[str, Any]:
    config: dict[str, Any] = {
        "durable_name": name,
        "ack_policy": "explicit",
        "ack_wait": ACK_WAIT_MS * 1_000_000,
        "deliver_policy": "all",
        "max_ack_pending": 20_000,
        # Unlimited for states, which want something until it is done. A message that the server gives up is invisible
        # and keeps its place, until its advisory or the reaper has it buried.
        "max_deliver": max_deliver,
        "max_waiting": 1024,
        "replay_policy": "instant",
    }
    if filter_subject:
        config["filter_subject"] = filter_subject
    if headers_only:
        config["headers_only"] = True
    return config
