"""Giving letters of topology version 1, which shared one subject a stream, subjects of their own.

Each is stored under its own subject before it is removed from the shared one: killed in between, it is found there.
"""

import logging

from msgspec.structs import replace

from turngate.deadletter.places import Places
from turngate.jetstream.deadletter import letter_head
from turngate.jetstream.direct import read_page
from turngate.jetstream.request import WRONG_SEQUENCE, JetStreamError, Requester
from turngate_contracts import codec
from turngate_contracts.dead import DeadLetter, letter_id
from turngate_contracts.errors import InvalidMessage
from turngate_contracts.subjects import Subjects

log = logging.getLogger(__name__)

_PAGE = 50


async def adopt(requester: Requester, subjects: Subjects, places: Places) -> int:
    """Adopt every letter that has no subject of its own, and return how many there were.

    Raises:
        Unavailable, JetStreamError: the server did not answer, or refused; what is left is adopted next time.
    """
    stream, shared = subjects.stream("dead"), subjects.dead("*")
    adopted, cursor, more = 0, 0, True
    while more:
        found, more = await read_page(requester, stream, cursor, _PAGE, shared)
        for stored in found:
            cursor = stored.sequence
            try:
                letter = codec.decode(stored.body, DeadLetter, "a DeadLetter")
                name = letter_id(letter.stream, letter.sequence, letter.subject, letter.body)
                subject = subjects.dead_letter(letter.stream, name)
            except (InvalidMessage, ValueError) as error:
                log.error("what stands in %s at %d is no letter: %s", stream, stored.sequence, error)
                continue
            letter = replace(letter, letter=name, size=letter.size or len(letter.body))
            try:
                await requester.publish(subject, codec.encode(letter), letter_head(letter, 0))
            except JetStreamError as error:
                if error.err_code not in WRONG_SEQUENCE:
                    raise
            await places.delete(stream, stored.sequence)
            adopted += 1
    if adopted:
        log.info("%d dead letters of an earlier version were given subjects of their own", adopted)
    return adopted
