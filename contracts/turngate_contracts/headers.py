"""The headers of our messages, and how a header block is written.

State revisions carry CloudEvents 1.0 in binary mode, so that any CloudEvents reader can follow the events stream.
Model-written text is never put into a header; ids are, and they can't hold a line break.
"""

from typing import Final

SCHEMA: Final = "Turngate-Schema"
"""`NAME.vN` of the body."""
WANTS: Final = "Turngate-Wants"
"""Present on a revision whose state needs something done; the reconciler reads the others' headers only."""
SOURCE_REVISION: Final = "Turngate-Revision"
"""On an inbox entry and its tombstone: the revision of the state that it was derived from."""
REASON: Final = "Turngate-Reason"
"""On a dead letter: the error code that sent it there."""
ORIGIN_SEQUENCE: Final = "Turngate-Origin-Sequence"
DELIVERIES: Final = "Turngate-Deliveries"
RETRY_OF: Final = "Turngate-Retry-Of"
"""On a message that a person had published again: the dead letter that it was."""
MOVED: Final = "Turngate-Moved"
"""On a message that was left behind in a work queue and published again: how often that happened."""

EXPECTED_SEQUENCE: Final = "Nats-Expected-Last-Subject-Sequence"
EXPECTED_SUBJECT: Final = "Nats-Expected-Last-Subject-Sequence-Subject"
"""The filter whose newest message the expected sequence is compared with, where that is not the message's subject."""
ROLL_UP: Final = "Nats-Rollup"
"""On a decision about a dead letter: it replaces the subject's message. No other stream of states takes it."""
MESSAGE_ID: Final = "Nats-Msg-Id"
MESSAGE_TTL: Final = "Nats-TTL"
SCHEDULE: Final = "Nats-Schedule"
SCHEDULE_TARGET: Final = "Nats-Schedule-Target"
KV_OPERATION: Final = "KV-Operation"
SOURCE: Final = "Nats-Stream-Source"
"""On what a stream took over from another one: that stream, the sequence in it, and how."""
TRACE_PARENT: Final = "traceparent"


def block(fields: dict[str, str]) -> bytes:
    """Return a NATS header block.

    Raises:
        ValueError: a name or value holds a line break, which would forge another header.
    """
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    if lines.count("\n") != len(fields) or lines.count("\r") != len(fields):
        raise ValueError("a header name or value holds a line break")
    return f"NATS/1.0\r\n{lines}\r\n".encode()
