"""How many dead letters wait for somebody to decide about them: read again only when the stream has changed."""

from typing import Any, Final

import msgspec
from msgspec import Struct

from turngate.jetstream.direct import read_page
from turngate.jetstream.request import Requester
from turngate_contracts.dead import LetterStatus
from turngate_contracts.topology import Topology

AT_MOST: Final = 1_000
"""How many letters are counted; where there are more, this many are enough for an alarm."""
_PAGE: Final = 100


class _Letter(Struct):
    status: str = LetterStatus.WAITING.value  # letters leave out what is the default


class WaitingLetters:
    """Counts the dead letters of one namespace."""

    def __init__(self, requester: Requester, topology: Topology) -> None:
        self._requester = requester
        self._stream = topology.subjects.stream("dead")
        self._letters = topology.subjects.dead_letters()
        self._known: tuple[int, int] = (0, 0)
        self._count = 0
        self._decode = msgspec.json.Decoder(_Letter).decode

    async def count(self, state: dict[str, Any]) -> int:
        """Return how many wait, given what the server says of the stream.

        Raises:
            Unavailable: the stream did not answer.
        """
        now = (int(state["messages"]), int(state["last_seq"]))
        if now != self._known:
            self._count = await self._read()
            self._known = now
        return self._count

    async def _read(self) -> int:
        waiting, cursor, more = 0, 0, True
        while more and waiting < AT_MOST:
            found, more = await read_page(self._requester, self._stream, cursor, _PAGE, self._letters)
            for stored in found:
                cursor = stored.sequence
                waiting += self._waits(stored.body)
        return waiting

    def _waits(self, body: bytes) -> bool:
        try:
            return self._decode(body).status == LetterStatus.WAITING
        except msgspec.DecodeError:
            return True  # somebody must look at it
