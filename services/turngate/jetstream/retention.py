"""States of a certain age leave; what still waits for something stays.

Buckets have an age limit, so revisions leave in the order in which they were stored: the newest of a key is its last,
and never uncovers an older one, as a message's own TTL would. A state that nobody changed for that long and that is
still open, such as a question without an answer, is saved once more as it is before its time comes: the same event by
its id, younger by its place.
"""

import asyncio
from datetime import datetime
from functools import partial
from typing import Final

from turngate.clock import Clock
from turngate.jetstream.again import StateGone, save_again
from turngate.jetstream.direct import PAGE, Stored, read_newest, read_page
from turngate.jetstream.request import WRONG_SEQUENCE, JetStreamError, Requester
from turngate_contracts import codec
from turngate_contracts import headers as h
from turngate_contracts.errors import InvalidMessage
from turngate_contracts.topology import Topology
from turngate_protocol.esm.objective import Status
from turngate_protocol.esm.state import EsmState

EARLY: Final = 0.8
"""At which part of its time a state is looked at."""
LONGEST_MS: Final = 3_600_000
"""How often it is looked, at least."""
BUCKETS: Final = ("turns", "questions", "conclusions", "objectives")


class Retention:
    """Keeps open states of one namespace from leaving."""

    def __init__(self, requester: Requester, topology: Topology, clock: Clock) -> None:
        self.every_ms = max(1, min(LONGEST_MS, topology.retention_ms // 20))
        self.touched = 0
        self._requester = requester
        self._subjects = topology.subjects
        self._clock = clock
        self._early_ms = int(topology.retention_ms * EARLY)
        # Up to which sequence each bucket was looked at: every revision is read once.
        self._cursors = dict.fromkeys(BUCKETS, 0)

    async def sweep(self) -> None:
        """Look at the states that have reached most of their age, in every bucket.

        Raises:
            Unavailable, JetStreamError: the server did not answer, or refused; the next sweep goes on there.
        """
        for bucket in BUCKETS:
            await self.sweep_bucket(bucket)

    async def sweep_bucket(self, bucket: str) -> None:
        """Look at one bucket; raises as `sweep`."""
        more = True
        while more:
            more = await self._page(bucket)

    async def _page(self, bucket: str) -> bool:
        stream = self._subjects.bucket_stream(bucket)
        cursor = self._cursors[bucket]
        found, more = await read_page(self._requester, stream, cursor, PAGE, self._subjects.key(bucket, ">"))
        until = self._clock() - self._early_ms
        old = [stored for stored in found if _stored_at(stored) < until]
        if not old:
            return False
        key_of = partial(self._subjects.key_like, bucket)
        keys = sorted({key_of(stored.subject) for stored in old})
        # Oldest first, so that of a key with several subjects the newest one stays.
        newest = {key_of(stored.subject): stored for stored in await read_newest(self._requester, stream, keys)}
        last = {stored.sequence for stored in old}
        still = [(key, each) for key, each in newest.items() if each.sequence in last and is_open(bucket, each)]
        await asyncio.gather(*(self._touch(stream, key, each.sequence) for key, each in still))
        self._cursors[bucket] = old[-1].sequence
        return more and len(old) == len(found)

    async def _touch(self, stream: str, key: str, revision: int) -> None:
        try:
            await save_again(self._requester, stream, key, revision)
        except StateGone:
            return  # changed in this instant, which keeps it as well
        except JetStreamError as error:
            if error.err_code in WRONG_SEQUENCE:
                return
            raise  # the bucket is full, perhaps; there is a fifth of its time to try again
        self.touched += 1


def is_open(bucket: str, stored: Stored) -> bool:
    """Say whether a state still waits for something, so that it must not leave for its age."""
    if h.KV_OPERATION in stored.fields:
        return False
    if h.WANTS in stored.fields:
        return True
    if bucket != "objectives":
        return False
    try:
        objective = codec.decode(stored.body, EsmState, "an objective").objective
    except InvalidMessage:
        return True  # a newer version's, perhaps
    return objective is not None and objective.status is not Status.COMPLETE


def _stored_at(stored: Stored) -> int:
    return int(datetime.fromisoformat(stored.fields["Nats-Time-Stamp"]).timestamp() * 1000)
