"""Nudges to runners' mailboxes: speed, never the truth. One that is lost is asked for with `get`."""

import logging
from functools import lru_cache
from typing import Final

from msgspec import Struct

from turngate import tracing
from turngate.jetstream.connect import Connection
from turngate_contracts import codec
from turngate_contracts.errors import TurngateError
from turngate_contracts.headers import SCHEMA, block
from turngate_contracts.messages import SCHEMAS
from turngate_contracts.subjects import Subjects

log = logging.getLogger(__name__)

_MOST_SUBJECTS: Final = 4_096


class Mailboxes:
    """Sends to the mailboxes of one namespace."""

    def __init__(self, connection: Connection, subjects: Subjects) -> None:
        self._connection = connection
        # A runner is told many things; its subject is checked and built once.
        self._subject = lru_cache(maxsize=_MOST_SUBJECTS)(subjects.mailbox)
        self._blocks = {kind: block({SCHEMA: name}) for kind, name in SCHEMAS.items()}

    def nudge(self, runner: str, kind: str, message: Struct) -> None:
        """Put a message into a runner's mailbox, if that is possible at the moment."""
        try:
            subject = self._subject(runner, kind)
            head = self._blocks[type(message)]
            if tracing.current():
                head = block({SCHEMA: SCHEMAS[type(message)], **tracing.headers()})
            self._connection.send(subject, codec.encode(message), headers=head)
        except TurngateError as error:
            log.debug("no nudge to %s: %s", runner, error)
