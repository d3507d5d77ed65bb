"""FastStream on JetStream, doing what `bench.checked` does; runs in the peers' virtual environment only.

It is set up as a user would for speed: pulls of a hundred, handled at once, bodies as bytes, nothing converted.
"""

from typing import Any, Final

from faststream.middlewares import AckPolicy
from faststream.nats import JStream, NatsBroker, NatsMessage, PullSub

from bench.checked import STREAM, add_stream, judged
from turngate.jetstream.request import Requester
from turngate.settings import Settings
from turngate_contracts.subjects import Subjects
from turngate_contracts.topology import VALIDATION

_BATCH: Final = 100


class FastStreamService:
    """Judges turns with a FastStream subscriber and keeps no state."""

    def __init__(self, requester: Requester, settings: Settings) -> None:
        self._requester = requester
        self._subjects = Subjects(settings.namespace)
        self._broker = NatsBroker(settings.nats_url, logger=None, apply_types=False)
        subscriber = self._broker.subscriber(
            f"{settings.namespace}.turn.report.*.*.*",
            stream=JStream(self._subjects.stream("turns"), declare=False),
            durable=VALIDATION,
            pull_sub=PullSub(batch_size=_BATCH),
            decoder=_as_it_is,
            ack_policy=AckPolicy.ACK,
        )
        subscriber(self._on_turn)

    async def start(self) -> None:
        """Begin to take turns."""
        await add_stream(self._requester, self._subjects)
        await self._broker.start()

    async def stop(self, _timeout_ms: int = 10_000) -> bool:
        """Take no more."""
        await self._broker.stop()
        return True

    async def _on_turn(self, body: bytes) -> None:
        runner, verdict = judged(body)
        await self._broker.publish(verdict, subject=self._subjects.mailbox(runner, "verdict"), stream=STREAM)


async def _as_it_is(message: NatsMessage) -> Any:
    return message.body
