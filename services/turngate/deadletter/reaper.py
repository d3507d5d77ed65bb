"""What no advisory tells of: messages that stand in a work queue and that nobody will ever be given.

Exhausted ones are buried: nothing is pending, nothing is unacknowledged, and still they are stored. Those at or below
the consumer's ack floor were left behind by a server that was killed, and decided for the most part: they are published
again, then deleted, and their handler knows what is done.
A queue is touched only where two looks in a row agree: an acknowledgement may be on its way to a replica.
"""

import logging
from collections import Counter
from typing import Any, Final

from msgspec import Struct

from turngate.deadletter.advisories import exhausted
from turngate.deadletter.burial import Burial
from turngate.jetstream.direct import Stored, read_page
from turngate.jetstream.request import STREAM_LIMIT, JetStreamError, Requester
from turngate_contracts import headers as h
from turngate_contracts.dead import FoundBy

log = logging.getLogger(__name__)

MOST_MOVES: Final = 3
"""How often a message may be left behind before it is buried instead."""
_PAGE: Final = 256
_KEPT: Final = (h.SCHEMA, h.TRACE_PARENT, h.RETRY_OF)


class Consumer(Struct, frozen=True):
    """How far a work queue's consumer is. `floor` and `delivered` are sequences of the stream."""

    name: str
    subjects: str
    floor: int
    delivered: int
    idle: bool


class Reaper:
    """Looks after the work queues of one namespace."""

    def __init__(self, requester: Requester, burial: Burial) -> None:
        self.counts: Counter[str] = Counter()
        self._requester = requester
        self._burial = burial
        self._seen: dict[tuple[str, str], set[int]] = {}

    async def look(self) -> None:
        """Look once at every work queue.

        Raises:
            Unavailable, JetStreamError: the server did not answer, or refused; look again.
        """
        for stream in self._burial.places.queues():
            for consumer in await self._consumers(stream):
                await self._look_at(stream, consumer)

    async def _look_at(self, stream: str, consumer: Consumer) -> None:
        stuck = await self._stuck(stream, consumer)
        key = (stream, consumer.name)
        seen, self._seen[key] = self._seen.get(key, set()), {stored.sequence for stored in stuck}
        for stored in stuck:
            if stored.sequence not in seen:
                continue
            moves = _moves(stored)
            if stored.sequence <= consumer.floor and moves < MOST_MOVES:
                await self._move_on(stream, stored, moves + 1, consumer.name)
            else:
                reason = exhausted(consumer.name)
                await self._burial.bury(stream, stored, reason, FoundBy.REAPER, consumer=consumer.name)
                self.counts["buried"] += 1

    async def _stuck(self, stream: str, consumer: Consumer) -> list[Stored]:
        """Return what is stored and will not be delivered by itself, a page at most."""
        last = max(consumer.floor, consumer.delivered if consumer.idle else 0)
        if not last:
            return []
        first, _ = await read_page(self._requester, stream, 0, 1, consumer.subjects)
        if not first or first[0].sequence > last:
            return []
        found, _ = await read_page(self._requester, stream, 0, _PAGE, consumer.subjects)
        return [stored for stored in found if stored.sequence <= last]

    async def _move_on(self, stream: str, stored: Stored, moves: int, consumer: str) -> None:
        kept: dict[str, str] = {name: stored.fields[name] for name in _KEPT if name in stored.fields}
        head = h.block({**kept, h.MOVED: str(moves)})
        try:
            await self._requester.publish(stored.subject, stored.body, head)
        except JetStreamError as error:
            if error.err_code != STREAM_LIMIT:
                raise
            # The queue is full of what is stuck in it: a letter holds it meanwhile, and is sent out when there is room.
            await self._burial.hold(stream, stored, consumer)
            self.counts["held"] += 1
            return
        await self._burial.places.delete(stream, stored.sequence)
        self.counts["moved"] += 1
        log.warning("message %d of %s was left behind; it was published again", stored.sequence, stream)

    async def _consumers(self, stream: str) -> list[Consumer]:
        """Return the consumers of a work queue; each message belongs to one of them at most."""
        found: list[Consumer] = []
        total = 1
        while len(found) < total:
            answer = await self._requester.api(f"CONSUMER.LIST.{stream}", {"offset": len(found)}, 15_000)
            page = answer.get("consumers") or []
            total = int(answer.get("total", 0))
            if not page:
                break
            found += map(_consumer, page)
        return found


def _moves(stored: Stored) -> int:
    # Whoever may publish may write the header: what is no small number counts as too many.
    text = stored.fields.get(h.MOVED, "0")
    return int(text) if text in ("0", "1", "2") else MOST_MOVES


def _consumer(info: dict[str, Any]) -> Consumer:
    idle = int(info["num_pending"]) == 0 and int(info["num_ack_pending"]) == 0
    return Consumer(
        info["name"],
        info["config"].get("filter_subject") or ">",
        int(info["ack_floor"]["stream_seq"]),
        int(info["delivered"]["stream_seq"]),
        idle,
    )
