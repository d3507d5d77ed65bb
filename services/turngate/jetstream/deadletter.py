"""Where messages go that nothing can be done with: the dead-letter stream, with their reason and their origin.

Each letter has a subject of its own, named by what the message was: found twice, by its handler and by an advisory for
instance, it is stored once. Killed between storing the letter and ending the message, the message comes again.
"""

import logging
from collections.abc import Callable, Mapping
from typing import Final

from turngate.clock import Clock
from turngate.jetstream.consume import Delivery
from turngate.jetstream.request import WRONG_SEQUENCE, JetStreamError, PubAck, Requester
from turngate_contracts import codec
from turngate_contracts import headers as h
from turngate_contracts.dead import DeadLetter, FoundBy, letter_id
from turngate_contracts.errors import ErrorBody
from turngate_contracts.ids import is_id
from turngate_contracts.messages import SCHEMAS
from turngate_contracts.subjects import Subjects

log = logging.getLogger(__name__)

MAX_BODY: int = 1024 * 1024
"""Bytes of the original body that a dead letter keeps."""
RETRY_MS: int = 2_000
_ENVELOPE: Final = 16 * 1024
_HEADERS: Final = (h.SCHEMA, h.TRACE_PARENT, h.RETRY_OF, h.MOVED)
"""The headers that matter later; the others are the server's, or are made anew."""
_MAX_HEADER: Final = 200


class DeadLetters:
    """Moves messages of one namespace to the dead-letter stream."""

    def __init__(self, requester: Requester, subjects: Subjects, clock: Clock) -> None:
        self.requester = requester
        self.subjects = subjects
        self._clock = clock
        self.moved = 0

    def bury(self, delivery: Delivery, stream: str, reason: ErrorBody, found_by: FoundBy = FoundBy.HANDLER) -> None:
        """Store a delivery as a dead letter, then end it; killed between the two, it is stored under the same id."""
        letter = self.letter(
            stream,
            delivery.sequence,
            delivery.subject,
            delivery.body,
            delivery.headers(),
            reason,
            deliveries=delivery.deliveries,
            consumer=delivery.consumer,
            found_by=found_by,
        )

        def on_stored(error: Exception | None) -> None:
            if error is not None:
                log.warning("message %d of %s is not buried yet: %s", letter.sequence, stream, error)
                delivery.nak(RETRY_MS)
                return
            delivery.term(reason.code.value)

        self.store_nowait(letter, on_stored)

    def letter(
        self,
        stream: str,
        sequence: int,
        subject: str,
        body: bytes,
        fields: Mapping[str, str],
        reason: ErrorBody,
        *,
        deliveries: int = 0,
        consumer: str = "",
        found_by: FoundBy = FoundBy.HANDLER,
    ) -> DeadLetter:
        """Return the letter of a message: cut to what fits where its message did, for the body travels as base64."""
        if self.subjects.bucket_of(stream):
            body = b""  # the bucket holds the state, and consumers of states read headers only
        most = min(MAX_BODY, (self.requester.connection.body_limit - _ENVELOPE) * 3 // 4)
        kept = {name: fields[name][:_MAX_HEADER] for name in _HEADERS if name in fields}
        first = kept.get(h.RETRY_OF, "")
        return DeadLetter(
            stream,
            sequence,
            subject,
            reason,
            deliveries,
            self._clock(),
            body[:most],
            letter_id(stream, sequence, subject, body),
            len(body),
            kept,
            consumer,
            found_by,
            first=first if is_id(first) else "",
        )

    def store_nowait(self, letter: DeadLetter, on_stored: Callable[[Exception | None], None]) -> None:
        """Store a letter unless it is there, and have `on_stored` called with what went wrong, or None."""

        def on_ack(ack: PubAck | Exception) -> None:
            there = isinstance(ack, JetStreamError) and ack.err_code in WRONG_SEQUENCE
            if isinstance(ack, Exception) and not there:
                on_stored(ack)
                return
            if not there:
                self.moved += 1
                sentence = letter.reason.message
                facts = {"stream": letter.stream, "sequence": letter.sequence, "subject": letter.subject}
                text = "message %d of %s went to the dead letters: %s"
                log.warning(text, letter.sequence, letter.stream, sentence, extra={"facts": facts})
            on_stored(None)

        subject = self.subjects.dead_letter(letter.stream, letter.letter)
        self.requester.publish_nowait(subject, codec.encode(letter), on_ack, letter_head(letter, 0))


def letter_head(letter: DeadLetter, revision: int, *, roll_up: bool = False) -> bytes:
    """Return the headers of a letter that follows its own `revision`, 0 for none; with `roll_up` it replaces it."""
    return h.block(
        {
            h.SCHEMA: SCHEMAS[DeadLetter],
            h.REASON: letter.reason.code.value,
            h.ORIGIN_SEQUENCE: str(letter.sequence),
            h.DELIVERIES: str(letter.deliveries),
            h.EXPECTED_SEQUENCE: str(revision),
            **({h.ROLL_UP: "sub"} if roll_up else {}),
        }
    )
