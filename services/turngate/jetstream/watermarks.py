"""The highest sequence that was ever seen in each bucket, kept outside of it, and what to do when one goes back.

One flipped bit in a block can cost a stream half of what it holds, and move its last sequence back, without a word. The
notes are in a stream of their own, whose blocks are others. A bucket that is below its note has lost acknowledged
saves: nothing starts on it until somebody says that the loss is known. A stream that keeps its intake asynchronously
may go back after a power cut by design, and has no note.
"""

import logging
from typing import Any, Final

from msgspec import Struct

from turngate.clock import Clock
from turngate.jetstream.direct import read_newest
from turngate.jetstream.request import WRONG_SEQUENCE, JetStreamError, Requester
from turngate_contracts import codec
from turngate_contracts import headers as h
from turngate_contracts.errors import ErrorCode, InvalidMessage, TurngateError
from turngate_contracts.topology import Topology

log = logging.getLogger(__name__)

API_TIMEOUT_MS: Final = 15_000
FLAG: Final = "--accept-regression"


class Mark(Struct, frozen=True, omit_defaults=True):
    """The highest sequence that was seen in a stream, and when, in ms since the epoch."""

    sequence: int
    at: int


class Standing(Struct, frozen=True):
    """A bucket's stream: the highest sequence that was seen, and its last one now; `revision` is the note's."""

    stream: str
    seen: int
    last: int
    revision: int = 0

    @property
    def regressed(self) -> bool:
        """Whether saves are missing that were seen before."""
        return self.last < self.seen


class StreamRegressed(TurngateError):
    """A stream ends below a sequence that it had reached before."""

    code = ErrorCode.UNAVAILABLE

    def __init__(self, standing: Standing) -> None:
        super().__init__(
            f"stream {standing.stream} ends at sequence {standing.last}, and {standing.seen} was seen in it before:"
            " acknowledged saves are lost, or it was made anew. Restore it from a backup, or, where the loss is known,"
            f" start once with {FLAG}",
            stream=standing.stream,
            last=standing.last,
            seen=standing.seen,
        )


class Watermarks:
    """The notes of one namespace."""

    def __init__(self, requester: Requester, topology: Topology, clock: Clock) -> None:
        self._requester = requester
        self._subjects = topology.subjects
        self._clock = clock
        names = [config["name"] for config in topology.streams()]
        self._streams = [name for name in names if topology.subjects.bucket_of(name)]

    async def standings(self) -> list[Standing]:
        """Return how each bucket's stream stands; one that does not exist is left out.

        Raises:
            Unavailable, JetStreamError: the server did not answer, or refused.
        """
        subjects = {self._subjects.mark(stream): stream for stream in self._streams}
        noted = {
            subjects[stored.subject]: stored
            for stored in await read_newest(self._requester, self._subjects.stream("marks"), list(subjects))
        }
        found = []
        for stream in self._streams:
            info = await self._info(stream)
            if info is None:
                continue
            stored = noted.get(stream)
            seen, revision = (0, 0) if stored is None else (_mark(stored.body).sequence, stored.sequence)
            found.append(Standing(stream, seen, int(info["state"]["last_seq"]), revision))
        return found

    async def check(self) -> None:
        """Make sure that no bucket went back.

        Raises:
            StreamRegressed: one did.
            Unavailable, JetStreamError: as for `standings`.
        """
        for standing in await self.standings():
            if standing.regressed:
                raise StreamRegressed(standing)

    async def note(self) -> None:
        """Raise the notes to what the buckets have reached; never lowers one. Raises as `standings`."""
        for standing in await self.standings():
            if standing.last > standing.seen:
                await self._save(standing)

    async def accept(self) -> list[Standing]:
        """Take what the buckets hold now for the truth, and return those that had gone back. Raises as `standings`."""
        lost = [standing for standing in await self.standings() if standing.regressed]
        for standing in lost:
            await self._save(standing)
            log.warning("%s: sequences %d to %d are given up", standing.stream, standing.last + 1, standing.seen)
        return lost

    async def _save(self, standing: Standing) -> None:
        head = h.block({h.EXPECTED_SEQUENCE: str(standing.revision)})
        body = codec.encode(Mark(standing.last, self._clock()))
        try:
            await self._requester.publish(self._subjects.mark(standing.stream), body, head)
        except JetStreamError as error:
            if error.err_code not in WRONG_SEQUENCE:
                raise
            # Another process noted it in this instant; the next look tells.

    async def _info(self, stream: str) -> dict[str, Any] | None:
        try:
            return await self._requester.api(f"STREAM.INFO.{stream}", timeout_ms=API_TIMEOUT_MS)
        except JetStreamError as error:
            if error.code == 404:
                return None
            raise


def _mark(body: bytes) -> Mark:
    try:
        return codec.decode(body, Mark, "a mark")
    except InvalidMessage:
        return Mark(0, 0)  # one that can't be read knows of nothing
