"""Where messages go that nothing can be done with: the dead-letter stream, with their reason and their origin."""

import logging

from turngate.clock import Clock
from turngate.jetstream.consume import Delivery
from turngate.jetstream.request import PubAck, Requester
from turngate_contracts import codec
from turngate_contracts import headers as h
from turngate_contracts.errors import ErrorBody
from turngate_contracts.messages import SCHEMAS, DeadLetter
from turngate_contracts.subjects import Subjects

log = logging.getLogger(__name__)

MAX_BODY: int = 1024 * 1024
"""Bytes of the original body that a dead letter keeps."""
RETRY_MS: int = 2_000
_ENVELOPE: int = 8 * 1024


class DeadLetters:
    """Moves deliveries of one namespace to the dead-letter stream."""

    def __init__(self, requester: Requester, subjects: Subjects, clock: Clock) -> None:
        self._requester = requester
        self._subjects = subjects
        self._clock = clock
        self.moved = 0

    def bury(self, delivery: Delivery, stream: str, reason: ErrorBody) -> None:
        """Store a delivery as a dead letter, then end it; killed between the two, it is stored under the same id."""
        letter = DeadLetter(
            stream,
            delivery.sequence,
            delivery.subject,
            reason,
            delivery.deliveries,
            self._clock(),
            # The body travels as base64, and the letter must fit where its message did.
            delivery.body[: min(MAX_BODY, (self._requester.connection.body_limit - _ENVELOPE) * 3 // 4)],
        )
        block = h.block(
            {
                h.SCHEMA: SCHEMAS[DeadLetter],
                h.REASON: reason.code.value,
                h.ORIGIN_SEQUENCE: str(delivery.sequence),
                h.DELIVERIES: str(delivery.deliveries),
                h.MESSAGE_ID: f"{stream}.{delivery.sequence}",
            }
        )

        def on_ack(ack: PubAck | Exception) -> None:
            if isinstance(ack, Exception):
                log.warning("message %d of %s is not buried yet: %s", delivery.sequence, stream, ack)
                delivery.nak(RETRY_MS)
                return
            self.moved += 1
            log.warning("message %d of %s went to the dead letters: %s", delivery.sequence, stream, reason.message)
            delivery.term(reason.code.value)

        self._requester.publish_nowait(self._subjects.dead(stream), codec.encode(letter), on_ack, block)
