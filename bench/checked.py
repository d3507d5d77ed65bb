"""What is left of validation when its guarantees are taken away: read a report, judge it, store the verdict, ack.

No state, no revision, no repeat that is recognised; but no turn is lost, because it is acked when its verdict is
stored. Our client and those of others do exactly this, with these functions, so that only what is around them is
compared. The verdict's stream has the load's mailbox as its subject, so that the load hears what is stored.
"""

from typing import Final

import msgspec
from msgspec import Struct

from turngate.jetstream.connect import Connection
from turngate.jetstream.consume import ConsumeLoop, Delivery
from turngate.jetstream.request import PubAck, Requester
from turngate.settings import Settings
from turngate_contracts import codec
from turngate_contracts.messages import ReportSubmitted
from turngate_contracts.subjects import Subjects
from turngate_contracts.topology import VALIDATION, Durability
from turngate_protocol.report import decode, normalise, validate

STREAM: Final = "bench_verdicts"
_submitted: Final = codec.decoder(ReportSubmitted).decode
_encode: Final = msgspec.json.Encoder().encode


class Verdict(Struct, frozen=True):
    """What is told of a report."""

    session: str
    outcome: str
    problems: tuple[str, ...] = ()


def judged(body: bytes | str) -> tuple[str, bytes]:
    """Return the runner of a submitted report and the encoded verdict on it."""
    submitted = _submitted(body)
    report = decode(bytes(submitted.report))
    problems = report if isinstance(report, list) else validate(normalise(report))
    outcome = "rejected" if problems else "accepted"
    verdict = Verdict(submitted.session, outcome, tuple(problem.message for problem in problems))
    return submitted.runner, _encode(verdict)


async def add_stream(requester: Requester, subjects: Subjects, durability: Durability = Durability.RELAXED) -> None:
    """Make the stream of the verdicts, under strict durability as asynchronous as the product's events are."""
    config = {"name": STREAM, "subjects": [f"{subjects.namespace}.to.*.verdict"], "storage": "file"}
    if durability is Durability.STRICT:
        config["persist_mode"] = "async"
    await requester.api(f"STREAM.CREATE.{STREAM}", config)


class CheckedService:
    """Judges turns on our client and keeps no state."""

    def __init__(self, connection: Connection, requester: Requester, settings: Settings) -> None:
        self._requester = requester
        self._subjects = Subjects(settings.namespace)
        stream = self._subjects.stream("turns")
        self._loop = ConsumeLoop(connection, stream, VALIDATION, self._on_delivery, window=settings.window)

    async def start(self) -> None:
        """Begin to take turns."""
        await add_stream(self._requester, self._subjects)
        await self._loop.start()

    async def stop(self, timeout_ms: int = 10_000) -> bool:
        """Take no more, and say whether all that was taken is acked."""
        return await self._loop.stop(timeout_ms)

    def _on_delivery(self, delivery: Delivery) -> None:
        runner, verdict = judged(delivery.body)

        def on_stored(ack: PubAck | Exception) -> None:
            if isinstance(ack, PubAck):
                delivery.ack()

        self._requester.publish_nowait(self._subjects.mailbox(runner, "verdict"), verdict, on_stored)
