"""What only the server knows, asked now and then in the background: streams, lag, and what waits for people.

Every process samples, so that no choice among processes can fail; whoever reads takes the maximum. Figures that are too
old are not shown: a stale lag would calm where an alarm is due. How many objectives have which status is in their
states alone. They are read once and then followed by their revisions, so that objectives at rest cost nothing but a
place in a table, in processes that supervise and are asked for metrics.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

import msgspec
from msgspec import Struct

from turngate.jetstream.direct import read_newest, read_page, read_subjects
from turngate.jetstream.inbox import Inbox
from turngate.jetstream.request import JetStreamError, Requester
from turngate.metrics.letters import WaitingLetters
from turngate_contracts.errors import Unavailable
from turngate_contracts.topology import Topology
from turngate_protocol.esm.objective import Status

log = logging.getLogger(__name__)

INTERVAL_S: Final = 15.0
STALE_S: Final = 60.0
INBOX_AT_MOST: Final = 10_000
"""Most entries of the inbox that are counted."""
_READ_AT_ONCE: Final = 250
_PAGE: Final = 256

Figures = dict[str, dict[tuple[str, ...], float]]
"""Values by metric and labels."""


class Sampler:
    """Samples one namespace; `await start()`, later `await stop()`."""

    def __init__(self, requester: Requester, topology: Topology, *, supervises: bool = False) -> None:
        self._requester = requester
        self._topology = topology
        self._inbox = Inbox(requester, topology.subjects)
        self._letters = WaitingLetters(requester, topology)
        self._objectives = _Objectives(requester, topology) if supervises else None
        self._figures: Figures = {}
        self._sampled_at = 0.0
        self._task: asyncio.Task[None] | None = None

    @property
    def figures(self) -> Figures:
        """The newest figures; none while they are too old."""
        return self._figures if time.time() - self._sampled_at <= STALE_S else {}

    async def start(self) -> None:
        """Begin to sample."""
        self._task = asyncio.create_task(self._run(), name="turngate-sampler")

    async def stop(self) -> None:
        """Sample no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def sample(self) -> None:
        """Ask the server once.

        Raises:
            Unavailable, JetStreamError: it did not answer, or a stream is missing.
        """
        figures: Figures = {}
        for wanted in self._topology.streams():
            name = wanted["name"]
            info = await self._requester.api(f"STREAM.INFO.{name}")
            _note_stream(figures, name, info, self._topology)
            if name == self._topology.subjects.stream("dead"):
                _note(figures, "turngate_dead_letters", (), await self._letters.count(info["state"]))
        for stream, config in self._topology.consumers():
            name = config["durable_name"]
            _note_consumer(figures, stream, await self._requester.api(f"CONSUMER.INFO.{stream}.{name}"))
        work = self._topology.subjects.stream("work")
        # The first page only: how many pools there are is the runners' choice.
        for info in (await self._requester.api(f"CONSUMER.LIST.{work}", {"offset": 0})).get("consumers") or []:
            _note_consumer(figures, work, info)
        _note_counts(figures, "turngate_waiting", await self._waiting(), ("card", "question", "objective"))
        if self._objectives is not None:
            _note_counts(figures, "turngate_objectives", await self._objectives.by_status())
        self._sampled_at = time.time()
        figures["turngate_sampled_timestamp_seconds"] = {(): self._sampled_at}
        self._figures = figures

    async def _waiting(self) -> Counter[str]:
        found: Counter[str] = Counter()
        cursor, more = 0, True
        while more and found.total() < INBOX_AT_MOST:
            entries, cursor, more = await self._inbox.store.page(cursor, _PAGE)
            found.update(entry.key.partition(".")[0] for entry in entries)
        return found

    async def _run(self) -> None:
        while True:
            try:
                await self.sample()
            except (Unavailable, JetStreamError) as error:
                log.info("the server could not be sampled: %s", error)
            except Exception:  # whatever it is, metrics must not go silent for ever
                log.exception("sampling the server failed")
            await asyncio.sleep(INTERVAL_S)


class _Objective(Struct):
    status: str = Status.ACTIVE.value  # states leave out what is the default


class _State(Struct):
    objective: _Objective | None = None


class _Objectives:
    """How many objectives have which status: read once, then followed."""

    def __init__(self, requester: Requester, topology: Topology) -> None:
        self._requester = requester
        self._stream = topology.subjects.bucket_stream("objectives")
        self._keys = topology.subjects.key("objectives", ">")
        self._statuses: dict[str, str] = {}
        self._counts: Counter[str] = Counter()
        self._cursor = -1
        self._decode = msgspec.json.Decoder(_State).decode

    async def by_status(self) -> Counter[str]:
        """Return the number of objectives by status."""
        if self._cursor < 0:
            await self._read_all()
        more = True
        while more:
            stored, more = await read_page(self._requester, self._stream, self._cursor, _PAGE, self._keys)
            for revision in stored:
                self._note(revision.subject, revision.body)
                self._cursor = revision.sequence
        return +self._counts

    async def _read_all(self) -> None:
        # From before the newest states are read: what changes meanwhile is followed.
        state = (await self._requester.api(f"STREAM.INFO.{self._stream}"))["state"]
        subjects = await read_subjects(self._requester, self._stream, self._keys)
        for start in range(0, len(subjects), _READ_AT_ONCE):
            some = subjects[start : start + _READ_AT_ONCE]
            for newest in await read_newest(self._requester, self._stream, some):
                self._note(newest.subject, newest.body)
        self._cursor = int(state["last_seq"])

    def _note(self, subject: str, body: bytes) -> None:
        status = ""
        if body:
            try:
                objective = self._decode(body).objective
            except msgspec.DecodeError:
                status = "unreadable"
            else:
                status = "" if objective is None else objective.status
        before = self._statuses.pop(subject, "")
        if before:
            self._counts[before] -= 1
        if status:
            self._statuses[subject] = status
            self._counts[status] += 1


def _note(figures: Figures, name: str, labels: tuple[str, ...], value: float) -> None:
    figures.setdefault(name, {})[labels] = value


def _note_counts(figures: Figures, name: str, counts: Counter[str], always: Iterable[str] = ()) -> None:
    for label in {*counts, *always}:
        _note(figures, name, (label,), counts[label])


def _note_stream(figures: Figures, name: str, info: dict[str, Any], topology: Topology) -> None:
    state, config = info["state"], info["config"]
    _note(figures, "turngate_stream_messages", (name,), state["messages"])
    _note(figures, "turngate_stream_bytes", (name,), state["bytes"])
    if config.get("max_bytes", -1) > 0:
        _note(figures, "turngate_stream_limit_bytes", (name,), config["max_bytes"])
    replicas = (info.get("cluster") or {}).get("replicas") or []
    behind = sum(1 for replica in replicas if replica.get("offline") or not replica.get("current", True))
    _note(figures, "turngate_replicas_behind", (name,), behind)
    if name == topology.subjects.stream("events"):
        lag = sum(int(source.get("lag", 0)) for source in info.get("sources") or [])
        _note(figures, "turngate_events_lag", (), lag)


def _note_consumer(figures: Figures, stream: str, info: dict[str, Any]) -> None:
    labels = (stream, info["name"])
    _note(figures, "turngate_consumer_pending", labels, info["num_pending"])
    _note(figures, "turngate_consumer_ack_pending", labels, info["num_ack_pending"])
    _note(figures, "turngate_consumer_pulls", labels, info["num_waiting"])
