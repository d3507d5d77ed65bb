"""The load: a number of slots, each with one turn in flight, and the next turn when its verdict comes.

A slot plays one session after the other, with a given number of turns each, and a session's next turn follows its last
verdict, as a real agent's does. Turns are published and verdicts listened to on the product's own client; for the no-op
and for the real service the load does exactly the same.
"""

import asyncio
import secrets
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from bench.rig import BenchmarkFailed
from turngate.jetstream.request import PubAck, Requester
from turngate_contracts import codec
from turngate_contracts.headers import SCHEMA, block
from turngate_contracts.messages import SCHEMAS, ReportSubmitted, wrap_report
from turngate_contracts.subjects import Subjects

RUNNER: Final = "bench"
SILENCE_S: Final = 30.0
"""How long the last verdicts may take before the benchmark gives up."""
FIXTURES: Final = Path(__file__).parent / "fixtures"

_HEAD: Final = block({SCHEMA: SCHEMAS[ReportSubmitted]})


class Span(Struct, frozen=True):
    """What happened in a stretch of time. `latencies_ms` are from the publish to the verdict."""

    turns: int
    seconds: float
    latencies_ms: tuple[float, ...]

    @property
    def per_second(self) -> float:
        """Turns a second."""
        return self.turns / self.seconds


class Envelope(Struct, frozen=True):
    """How a turn is published to a service that is not ours: on which subject, and in what."""

    subject: str
    wrap: Callable[[bytes], bytes]


class _Told(Struct, frozen=True):
    session: str
    outcome: str


_decode_told: Final = msgspec.json.Decoder(_Told).decode


class _Slot:
    __slots__ = ("sent_at", "session", "turn")

    def __init__(self) -> None:
        self.session = ""
        self.turn = 0
        self.sent_at = 0.0


async def until_idle(idle: asyncio.Event, done: Callable[[], int], silent: Callable[[], str]) -> None:
    """Wait until nothing is under way.

    Args:
        idle: set when that is so.
        done: how much is done so far; as long as it grows, it is waited for.
        silent: what to say when it does not.

    Raises:
        BenchmarkFailed: nothing was done for SILENCE_S.
    """
    seen = -1
    while not idle.is_set():
        try:
            async with asyncio.timeout(SILENCE_S):
                await idle.wait()
        except TimeoutError:
            if done() == seen:
                raise BenchmarkFailed(f"{silent()} within {SILENCE_S:g} s") from None
            seen = done()


class Load:
    """The load of one client; make it with `Load.start`.

    Attributes:
        done: how many verdicts have come so far.
    """

    def __init__(
        self, requester: Requester, subjects: Subjects, turns_a_session: int, report: str, envelope: Envelope | None
    ) -> None:
        self.done = 0
        self._envelope = envelope
        self._requester = requester
        self._subjects = subjects
        self._turns_a_session = turns_a_session
        self._report, _ = wrap_report((FIXTURES / report).read_bytes())
        self._prefix = secrets.token_hex(4)
        self._sessions = 0
        self._idle_slots: list[_Slot] = []
        self._waiting: dict[str, _Slot] = {}
        self._budget = 0
        self._latencies: list[float] = []
        self._failure = ""
        self._idle = asyncio.Event()

    @classmethod
    async def start(
        cls,
        requester: Requester,
        subjects: Subjects,
        turns_a_session: int = 1,
        report: str = "report_4k.json",
        envelope: Envelope | None = None,
    ) -> "Load":
        """Make a load and subscribe to its mailbox.

        Args:
            requester: where to publish.
            subjects: the namespace.
            turns_a_session: how many turns each session has; 1 makes each turn a session's first.
            report: the fixture that every turn reports.
            envelope: how the turns are published, where not as runners do.
        """
        self = cls(requester, subjects, turns_a_session, report, envelope)
        await requester.connection.listen(subjects.mailbox_all(RUNNER), self._on_mail)
        return self

    async def for_seconds(self, in_flight: int, warm_up_s: float, seconds: float) -> Span:
        """Keep turns in flight for a time, and count those decided after the warm-up.

        Raises:
            BenchmarkFailed: a turn was refused, or got no verdict.
        """
        self._begin(in_flight, 1 << 60)
        await asyncio.sleep(warm_up_s)
        before, began = self.done, time.perf_counter()
        skipped = len(self._latencies)
        await asyncio.sleep(seconds)
        turns, took = self.done - before, time.perf_counter() - began
        self._budget = 0
        await self._drained()
        return Span(turns, took, tuple(self._latencies[skipped:]))

    async def for_turns(self, in_flight: int, turns: int) -> Span:
        """Have a number of turns decided; raises as `for_seconds`."""
        began = time.perf_counter()
        self._begin(in_flight, turns)
        await self._drained()
        return Span(turns, time.perf_counter() - began, tuple(self._latencies))

    async def leave(self, turns: int) -> None:
        """Publish turns that nobody takes, and return when they are stored."""
        for number in range(turns):
            await self._requester.publish(*self._message(f"s-{self._prefix}-{number}", 1), _HEAD)

    def _begin(self, in_flight: int, budget: int) -> None:
        self._budget = budget
        self._latencies = []
        self._idle.clear()
        while len(self._idle_slots) < in_flight:
            self._idle_slots.append(_Slot())
        for slot in self._idle_slots[:in_flight]:
            self._next(slot)
        del self._idle_slots[:in_flight]

    async def _drained(self) -> None:
        await until_idle(self._idle, lambda: self.done, lambda: f"{len(self._waiting)} turns got no verdict")
        if self._failure:
            raise BenchmarkFailed(self._failure)

    def _next(self, slot: _Slot) -> None:
        if self._budget <= 0:
            self._idle_slots.append(slot)
            if not self._waiting:
                self._idle.set()
            return
        self._budget -= 1
        if slot.turn % self._turns_a_session == 0:
            self._sessions += 1
            slot.session = f"s-{self._prefix}-{self._sessions}"
            slot.turn = 0
        slot.turn += 1
        self._waiting[slot.session] = slot
        slot.sent_at = time.perf_counter()
        subject, body = self._message(slot.session, slot.turn)
        self._requester.publish_nowait(subject, body, self._on_stored, _HEAD, 20_000)

    def _message(self, session: str, turn: int) -> tuple[str, bytes]:
        """Return the subject and the body of a turn."""
        body = codec.encode(ReportSubmitted(session, turn, 1, RUNNER, "bench", True, True, self._report))
        if self._envelope is not None:
            return self._envelope.subject, self._envelope.wrap(body)
        return self._subjects.turn_report(RUNNER, RUNNER, session), body

    def _on_stored(self, ack: PubAck | Exception) -> None:
        if isinstance(ack, Exception):
            self._fail(f"a turn could not be stored: {ack}")

    def _on_mail(self, _subject: bytes, _reply: bytes, body: bytes, _head: bytes) -> None:
        now = time.perf_counter()
        try:
            told = _decode_told(body)
        except msgspec.DecodeError:
            self._fail(f"a turn was refused: {body[:300]!r}")
            return
        slot = self._waiting.pop(told.session, None)
        if slot is None:
            return  # a verdict that was told twice
        if told.outcome != "accepted":
            self._fail(f"a turn was {told.outcome}: {body[:300]!r}")
        self.done += 1
        self._latencies.append((now - slot.sent_at) * 1000)
        self._next(slot)

    def _fail(self, reason: str) -> None:
        self._failure = self._failure or reason
        self._budget = 0
        self._idle.set()
