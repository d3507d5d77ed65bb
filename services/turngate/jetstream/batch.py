"""Group commit: saves that are due together are stored by one atomic batch, which syncs to the disk once.

Where the server syncs each write, a single save costs a sync and 256 at once wait for each other. A batch costs one
sync whatever its size, but also some milliseconds of its own, so it pays only from some saves on. A batch is stored
whole or not at all: when one save in it lost its compare-and-set, all of them are tried one by one. One batch is in
flight at a time, so that what comes in meanwhile makes up the next one. Revisions are counted back from the batch's
confirmation.
"""

import asyncio
import secrets
from collections import deque
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from turngate.jetstream.request import JetStreamError, PubAck, Requester
from turngate_contracts.errors import TurngateError

LEAST: Final = 16
"""From how many saves on a batch pays; fewer are published one by one."""
MOST: Final = 256
"""Most saves of one batch."""
MOST_BYTES: Final = 16 * 1024 * 1024
"""Most bytes of one batch."""
_FIRST_LINE: Final = b"NATS/1.0\r\n"
_BATCH_HEADERS: Final = 128
"""Bytes that a batch's own headers take, at most."""

OnAck = Callable[[PubAck | Exception], None]


class _Save(Struct, frozen=True):
    subject: str
    body: bytes
    head: bytes
    on_ack: OnAck


class Batches:
    """The grouped publishes of one stream in one process."""

    def __init__(self, requester: Requester) -> None:
        self.batches = 0
        self.batched = 0
        self.singles = 0
        self.broken_up = 0
        self._requester = requester
        self._due: deque[_Save] = deque()
        self._single_in_flight = 0
        self._batch_in_flight = False
        self._flush_scheduled = False
        self._process = secrets.token_hex(6)
        self._loop = asyncio.get_running_loop()

    def publish_nowait(self, subject: str, body: bytes, on_ack: OnAck, head: bytes) -> None:
        """Publish, alone or with others that are due; `on_ack` is called once, as by `Requester.publish_nowait`."""
        self._due.append(_Save(subject, body, head, on_ack))
        if not self._flush_scheduled:
            # What the loop's present turn still brings is due together with this one.
            self._flush_scheduled = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._flush_scheduled = False
        if self._batch_in_flight:
            return
        if len(self._due) >= LEAST:
            self._send_batch(self._take())
            return
        while self._due and self._single_in_flight < LEAST:
            self._send_single(self._due.popleft())

    def _take(self) -> list[_Save]:
        taken: list[_Save] = []
        size = 0
        while self._due and len(taken) < MOST:
            size += len(self._due[0].body) + len(self._due[0].head)
            if taken and size > MOST_BYTES:
                break
            taken.append(self._due.popleft())
        return taken

    def _send_single(self, save: _Save) -> None:
        self._single_in_flight += 1
        self.singles += 1

        def on_ack(ack: PubAck | Exception) -> None:
            self._single_in_flight -= 1
            try:
                save.on_ack(ack)
            finally:
                if self._due:
                    self._flush()

        self._requester.publish_nowait(save.subject, save.body, on_ack, save.head)

    def _send_batch(self, saves: list[_Save]) -> None:
        connection = self._requester.connection
        limit = connection.max_payload - _BATCH_HEADERS
        if any(len(save.body) + len(save.head) > limit for save in saves):
            # One that can't be sent must not keep the others: alone, it gets its own error.
            self._one_by_one(saves)
            return
        self.batches += 1
        self.batched += len(saves)
        self._batch_in_flight = True
        batch = f"{self._process}-{self.batches}"

        def on_ack(ack: PubAck | Exception) -> None:
            self._batch_in_flight = False
            self._told(saves, ack)
            self._flush()

        last = len(saves)
        try:
            for number, save in enumerate(saves[:-1], 1):
                connection.send(save.subject, save.body, headers=_with_batch(save.head, batch, number, commit=False))
        except TurngateError as error:
            # Nothing of it was committed: the server forgets the beginning.
            on_ack(error)
            return
        final = saves[-1]
        head = _with_batch(final.head, batch, last, commit=True)
        self._requester.publish_nowait(final.subject, final.body, on_ack, head)

    def _told(self, saves: list[_Save], ack: PubAck | Exception) -> None:
        if isinstance(ack, JetStreamError):
            self.broken_up += 1
            self._one_by_one(saves)
            return
        first = 0 if isinstance(ack, Exception) else ack.seq - len(saves) + 1
        for at, save in enumerate(saves):
            save.on_ack(ack if isinstance(ack, Exception) else PubAck(ack.stream, first + at))

    def _one_by_one(self, saves: list[_Save]) -> None:
        for save in saves:
            self._send_single(save)


def _with_batch(head: bytes, batch: str, number: int, *, commit: bool) -> bytes:
    last = "Nats-Batch-Commit: 1\r\n" if commit else ""
    added = f"Nats-Batch-Id: {batch}\r\nNats-Batch-Sequence: {number}\r\n{last}".encode()
    return b"%b%b%b" % (_FIRST_LINE, added, head[len(_FIRST_LINE) :])
