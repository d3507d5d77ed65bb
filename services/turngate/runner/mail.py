"""Telling mail from answers that somebody had sent to a mailbox.

A runner may name any subject of its account for the answer to a request, also another runner's mailbox. The answer gets
there, with the schema that its service gave it, and that of no answer to a runner is a mail's: it is passed over.
"""

from typing import Final

from turngate_contracts.catalogue import MAILBOX
from turngate_contracts.headers import SCHEMA
from turngate_contracts.messages import SCHEMAS

_LINES: Final = {row.kind.encode(): f"\r\n{SCHEMA}: {SCHEMAS[row.message]}\r\n".encode() for row in MAILBOX}


def is_mail(kind: bytes, head: bytes) -> bool:
    """Say whether a message in a mailbox is what its subject says, by its header block."""
    line = _LINES.get(kind)
    return line is not None and line in head
