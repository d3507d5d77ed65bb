"""A runner whose every message goes out three times, for what must be told three times alike."""

import asyncio
import itertools
import json
import random
from typing import Any, Final

from tests.fundamentals.reports import CARD, DONE, UNCHECKED
from tests.system.ledger import Ledger, Number, Reported
from tests.system.observer import Observer
from tests.waiting import wait_until
from turngate.runner import TurnClient
from turngate_contracts import codec
from turngate_contracts.headers import SCHEMA, block
from turngate_contracts.messages import SCHEMAS, ReportSubmitted, Verdict, wrap_report
from turngate_protocol.report.turn import Attempt

SESSIONS_AT_ONCE: Final = 64
DECIDED_S: Final = 60
_HEAD: Final = block({SCHEMA: SCHEMAS[ReportSubmitted]})


class Repeater:
    """A runner whose every message goes out three times, and which keeps every word that it is told."""

    def __init__(self, client: TurnClient, observer: Observer) -> None:
        self.client = client
        self.ledger = Ledger()
        self.sent: dict[Number, bytes] = {}
        self.told: dict[Number, list[bytes]] = {}
        self._observer = observer

    @classmethod
    async def start(cls, client: TurnClient, observer: Observer) -> "Repeater":
        """Listen to the runner's mailbox."""
        made = cls(client, observer)
        await observer.connection.listen(observer.subjects.mailbox(client.identity, "verdict"), made._on_verdict)
        return made

    async def report(self, session: str, turn: int, attempt: int, report: dict[str, Any]) -> bytes:
        """Send an attempt three times at once and return the verdict, which all three must be told alike."""
        body = json.dumps(report).encode()
        raw, _ = wrap_report(body)
        number = (session, turn, attempt)
        message = ReportSubmitted(session, turn, attempt, self.client.identity, self.client.pool, True, report=raw)
        self.sent[number] = codec.encode(message)
        sent = Attempt(session, self.client.pool, self.client.identity, turn, attempt, body, mutated=True)
        entry = self.ledger.reports[number] = Reported(self.client, sent)
        await self.publish_three_times(number)
        await wait_until(lambda: len(self.told.get(number, ())) >= 3, DECIDED_S, f"all of {number} are answered")
        told = self.told[number]
        assert len(set(told)) == 1, f"{number} was told {len(set(told))} different verdicts"
        entry.verdict = decoded(told[0])
        return told[0]

    async def publish_three_times(self, number: Number) -> None:
        """Publish the very bytes of an attempt three times at once."""
        subject = self._observer.subjects.turn_report(self.client.pool, self.client.identity, number[0])
        body = self.sent[number]
        await asyncio.gather(*(self._observer.requester.publish(subject, body, _HEAD) for _ in range(3)))

    @property
    def words(self) -> int:
        """How many verdicts the runner has been told."""
        return sum(map(len, self.told.values()))

    def is_newest(self, number: Number) -> bool:
        """Whether an attempt belongs to the newest turn of its session."""
        return (number[0], number[1] + 1, 1) not in self.sent

    def _on_verdict(self, _subject: bytes, _reply: bytes, body: bytes, _head: bytes) -> None:
        verdict = decoded(body)
        self.told.setdefault((verdict.session, verdict.turn, verdict.attempt), []).append(body)


async def publish_turns(runner: Repeater, turns: int, seed: int) -> None:
    """Play turns drawn from a seed, each of their messages three times."""
    rng = random.Random(seed)
    left = turns
    sessions = []
    while left:
        length = min(left, 1 if rng.random() < 0.6 else rng.randint(2, 12))
        sessions.append([rng.choice([[DONE], [DONE], [CARD], [UNCHECKED, DONE]]) for _ in range(length)])
        left -= length
    number = itertools.count(1)

    async def play() -> None:
        while sessions:
            session = f"s{next(number)}"
            for turn, reports in enumerate(sessions.pop(), 1):
                for attempt, report in enumerate(reports, 1):
                    await runner.report(session, turn, attempt, report)

    await asyncio.gather(*(play() for _ in range(SESSIONS_AT_ONCE)))


def decoded(body: bytes) -> Verdict:
    return codec.decode(body, Verdict, "a Verdict")
