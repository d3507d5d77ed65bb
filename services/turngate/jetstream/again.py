"""Saving a key's newest state once more as it is: its reconciler looks at it again, and its age begins anew."""

from typing import Final

from turngate.jetstream.direct import read_newest
from turngate.jetstream.request import Requester
from turngate_contracts import headers as h
from turngate_contracts.errors import Unavailable

_SERVERS: Final = "Nats-"


class StateGone(Unavailable):
    """A key has no state any more, or a newer one than was meant."""

    def __init__(self, subject: str) -> None:
        super().__init__(f"{subject} holds no state, or another one by now")


async def save_again(requester: Requester, stream: str, subject: str, unless_newer: int = 0) -> int:
    """Save a key's newest state once more, and return the revision; by its id it is the same event.

    Args:
        requester: the connection's requests.
        stream: the bucket's stream.
        subject: the key's subject.
        unless_newer: leave it alone when the newest revision is another than this one; 0 for any.

    Raises:
        StateGone: there is none, or it is newer.
        JetStreamError: another save came between, or the stream refused it.
        Unavailable: it may be saved or not.
    """
    found = await read_newest(requester, stream, [subject])
    newest = found[0] if found else None
    if newest is None or h.KV_OPERATION in newest.fields or (unless_newer and newest.sequence != unless_newer):
        raise StateGone(subject)
    kept = {name: value for name, value in newest.fields.items() if not name.startswith(_SERVERS)}
    head = h.block({**kept, h.EXPECTED_SEQUENCE: str(newest.sequence)})
    return (await requester.publish(subject, newest.body, head)).seq
