"""Saving a key's newest state once more as it is: its reconciler looks at it again, and its age begins anew."""

from typing import Final

from turngate.jetstream.direct import Stored, read_newest
from turngate.jetstream.request import Requester
from turngate_contracts import headers as h
from turngate_contracts.errors import Unavailable

_SERVERS: Final = "Nats-"


class StateGone(Unavailable):
    """A key has no state any more, or a newer one than was meant."""

    def __init__(self, key: str) -> None:
        super().__init__(f"{key} holds no state, or another one by now")


async def save_again(requester: Requester, stream: str, key: str, unless_newer: int = 0) -> int:
    """Save a key's newest state once more, and return the revision; by its id it is the same event.

    Args:
        requester: the connection's requests.
        stream: the bucket's stream.
        key: the filter of the key's revisions.
        unless_newer: leave it alone when the newest revision is another than this one; 0 for any.

    Raises:
        StateGone: there is none, or it is newer.
        JetStreamError: another save came between, or the stream refused it.
        Unavailable: it may be saved or not.
    """
    found = await read_newest(requester, stream, [key])
    newest = found[-1] if found else None
    if newest is None or h.KV_OPERATION in newest.fields or (unless_newer and newest.sequence != unless_newer):
        raise StateGone(key)
    return await save_as(requester, newest, newest.subject, key, newest.sequence)


async def save_as(requester: Requester, stored: Stored, subject: str, key: str, expected: int) -> int:
    """Save what is stored under a subject of its key, with its own headers, and return the revision.

    Args:
        requester: the connection's requests.
        stored: the revision.
        subject: where to.
        key: the filter of the key's revisions.
        expected: the newest of them; 0 for none.

    Raises:
        JetStreamError: another save came between, or the stream refused it.
        Unavailable: it may be saved or not.
    """
    kept = {name: value for name, value in stored.fields.items() if not name.startswith(_SERVERS)}
    head = h.block({**kept, h.EXPECTED_SEQUENCE: str(expected), h.EXPECTED_SUBJECT: key})
    return (await requester.publish(subject, stored.body, head)).seq
