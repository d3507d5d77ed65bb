"""The state store: one bucket's keys, read whole and saved with compare-and-set.

A bucket is a JetStream KV bucket made by provisioning. A save publishes the new snapshot to the key's subject with the
revision that it was derived from; it is stored only if no other revision came between. Each save carries CloudEvents
headers, because the events stream sources buckets: the revision is the event. A save whose confirmation got lost may be
stored; the operation id inside the value tells.

In a bucket that is split, a revision that wants something stands on another subject of its key than one that does not,
so that its reconciler's consumer can leave out the others. The compare-and-set, and whoever reads the newest, look at
both.
"""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final, TypeVar

import msgspec
from msgspec import Struct

from turngate.jetstream import leader
from turngate.jetstream.batch import Batches
from turngate.jetstream.connect import parse_headers
from turngate.jetstream.direct import PAGE, NotServed, read_page
from turngate.jetstream.request import (
    NO_ROOM,
    WRONG_SEQUENCE,
    JetStreamError,
    PubAck,
    Reply,
    Requester,
)
from turngate_contracts import headers as h
from turngate_contracts.errors import Overloaded
from turngate_contracts.subjects import SPLIT, Subjects

T = TypeVar("T")

FULL_RETRY_MS: Final = 5_000
"""After what a save is tried again that a full bucket refused."""


class Entry(Struct, frozen=True):
    """The newest revision of a key; `value` is None where the key was deleted or never was (`revision` 0)."""

    key: str
    revision: int
    value: bytes | None
    head: bytes = b""

    def headers(self) -> dict[str, str]:
        """Return the revision's headers."""
        return parse_headers(self.head)[1]

    def stored_at(self) -> int:
        """Return when the server stored the revision, by its own clock, in ms since the epoch; it must exist."""
        return int(datetime.fromisoformat(self.headers()["Nats-Time-Stamp"]).timestamp() * 1000)


class Event(Struct, frozen=True, gc=False):
    """What the CloudEvents headers of a save say. `subject` is the key; `at` in ms since the epoch."""

    type: str
    at: int
    wants: bool = False
    trace_parent: str = ""


class Conflict(Exception):
    """Another revision of the key was stored first."""


class Store:
    """One bucket of one namespace.

    Args:
        requester: the connection's requests.
        subjects: the namespace.
        bucket: the bucket's short name, such as `turns`.
        schema: `NAME.vN` of the values.
        grouped: store saves that are due together by one atomic batch; pays where the server syncs each write.
    """

    def __init__(
        self, requester: Requester, subjects: Subjects, bucket: str, schema: str, *, grouped: bool = False
    ) -> None:
        self.requester = requester
        self.bucket = bucket
        self._publish_nowait = Batches(requester).publish_nowait if grouped else requester.publish_nowait
        self.stream = subjects.bucket_stream(bucket)
        self._subjects = subjects
        self._split = bucket in SPLIT
        # What the subjects begin with: to read a key, and to save one that wants something or nothing.
        self._any = subjects.key(bucket, "")
        self._wanting = subjects.revision(bucket, "", wants=True)
        self._resting = subjects.revision(bucket, "", wants=False)
        self._get = f"$JS.API.DIRECT.GET.{self.stream}"
        self._schema = schema
        # What the headers of every save begin and end with.
        self._head = f"NATS/1.0\r\n{h.SCHEMA}: {schema}\r\n{h.EXPECTED_SEQUENCE}: "
        self._tail = (
            f"ce-specversion: 1.0\r\nce-source: /turngate/{subjects.namespace}/{bucket}\r\n"
            "content-type: application/json\r\n\r\n"
        )

    def subject(self, key: str) -> str:
        """Return the filter of a key's revisions."""
        return f"{self._any}{key}"

    def key_of(self, subject: str) -> str:
        """Return the key of a revision's subject."""
        return self._subjects.key_of(self.bucket, subject)

    def load_nowait(self, key: str, on_entry: Callable[[Entry | Exception], None]) -> None:
        """Read the newest revision of a key and have `on_entry` called with it; never raises."""

        def on_reply(reply: Reply | Exception) -> None:
            on_entry(reply if isinstance(reply, Exception) else self._entry(key, reply))

        if leader.is_needed(self.requester.connection):
            leader.read_newest_nowait(self.requester, self.stream, self.subject(key), on_reply)
            return
        if self._split:
            self.requester.request_nowait(self._get, msgspec.json.encode({"last_by_subj": self.subject(key)}), on_reply)
        else:
            self.requester.request_nowait(f"{self._get}.{self._any}{key}", b"", on_reply)

    async def load(self, key: str) -> Entry:
        """Return the newest revision of a key.

        Raises:
            Unavailable: the bucket did not answer.
        """
        future: asyncio.Future[Entry] = asyncio.get_running_loop().create_future()
        self.load_nowait(key, lambda entry: _settle(future, entry))
        return await future

    def save_nowait(
        self,
        key: str,
        value: bytes,
        revision: int,
        event: Event,
        on_saved: Callable[[int | Exception], None],
    ) -> None:
        """Save a snapshot derived from `revision` (0: the key must not exist) and have `on_saved` called.

        `on_saved` gets the new revision, a Conflict, or another error after which the save may be stored or not.
        """

        def on_ack(ack: PubAck | Exception) -> None:
            if isinstance(ack, JetStreamError) and ack.err_code in WRONG_SEQUENCE:
                on_saved(Conflict(key))
            elif isinstance(ack, JetStreamError) and ack.err_code in NO_ROOM:
                on_saved(Overloaded(f"bucket {self.bucket} is full: {ack.description}", FULL_RETRY_MS))
            else:
                on_saved(ack if isinstance(ack, Exception) else ack.seq)

        block = self._headers(key, revision, event)
        self._publish_nowait(f"{self._wanting if event.wants else self._resting}{key}", value, on_ack, block)

    async def save(self, key: str, value: bytes, revision: int, event: Event) -> int:
        """Save a snapshot derived from `revision` and return its revision.

        Raises:
            Conflict: another revision was stored first.
            Unavailable: the save may be stored or not; read the key again.
        """
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.save_nowait(key, value, revision, event, lambda saved: _settle(future, saved))
        return await future

    async def delete(self, key: str, revision: int, extra: dict[str, str], ttl_s: int) -> int:
        """Put a tombstone in place of `revision`; it leaves by itself after `ttl_s` seconds.

        For a bucket that keeps one revision a key: in one with a history, the value before comes back when it leaves.
        Only for buckets that are not split, as `put`.

        Raises:
            Conflict, Unavailable: as for `save`.
        """
        block = h.block(
            {
                h.EXPECTED_SEQUENCE: str(revision),
                h.KV_OPERATION: "DEL",
                h.MESSAGE_TTL: f"{ttl_s}s",
                **extra,
            }
        )
        return await self._publish(key, b"", block)

    async def put(self, key: str, value: bytes, revision: int, extra: dict[str, str]) -> int:
        """Save a value that is no event of its own, with headers of its own; results as for `save`."""
        block = h.block({h.EXPECTED_SEQUENCE: str(revision), h.SCHEMA: self._schema, **extra})
        return await self._publish(key, value, block)

    async def page(self, after: int, limit: int, keys: str = ">") -> tuple[list[Entry], int, bool]:
        """Read the revisions that the bucket holds in the order in which they were stored.

        Args:
            after: the revision after which to go on; 0 for the first page.
            limit: how many entries at most; tombstones are passed over and do not count.
            keys: which keys, as a filter.

        Returns:
            The entries, the revision to go on from, and whether there may be more.
        """
        found: list[Entry] = []
        cursor, more = after, True
        while more and len(found) < limit:
            stored, more = await read_page(
                self.requester, self.stream, cursor, min(PAGE, limit - len(found)), self.subject(keys)
            )
            for message in stored:
                cursor = message.sequence
                if not _is_gone(message.fields):
                    found.append(Entry(self.key_of(message.subject), message.sequence, message.body))
        return found, cursor, more

    async def _publish(self, key: str, body: bytes, block: bytes) -> int:
        if self._split:
            raise ValueError(f"{self.bucket} is split: its keys are only saved")
        try:
            return (await self.requester.publish(self.subject(key), body, block)).seq
        except JetStreamError as error:
            if error.err_code in WRONG_SEQUENCE:
                raise Conflict(key) from None
            raise

    def _headers(self, key: str, revision: int, event: Event) -> bytes:
        # Written by hand: this is on the path of every save, and every part is an id, a number or a constant.
        beside = f"{h.EXPECTED_SUBJECT}: {self._any}{key}\r\n" if self._split else ""
        wants = f"{h.WANTS}: 1\r\n" if event.wants else ""
        trace = f"{h.TRACE_PARENT}: {event.trace_parent}\r\n" if event.trace_parent else ""
        return (
            f"{self._head}{revision}\r\n{beside}{wants}{trace}ce-id: {key}.{revision}\r\n"
            f"ce-type: turngate.{event.type}\r\nce-subject: {key}\r\nce-time: {rfc3339(event.at)}\r\n{self._tail}"
        ).encode()

    def _entry(self, key: str, reply: Reply) -> "Entry | Exception":
        status, fields = parse_headers(reply.head)
        if status == 404:
            return Entry(key, 0, None)
        if status:
            return NotServed(self.stream, reply)
        value = None if _is_gone(fields) else reply.body
        return Entry(key, int(fields.get("Nats-Sequence", "0")), value, reply.head)


@lru_cache(maxsize=64)  # under load, several saves share a millisecond
def rfc3339(at: int) -> str:
    """Return a time in ms since the epoch as RFC 3339 in UTC."""
    seconds, ms = divmod(at, 1000)
    return f"{_whole_seconds(seconds)}.{ms:03}Z"


@lru_cache(maxsize=64)
def _whole_seconds(at: int) -> str:
    # Thousands of saves share a second.
    return datetime.fromtimestamp(at, UTC).isoformat()[:-6]


def _is_gone(fields: dict[str, str]) -> bool:
    return h.KV_OPERATION in fields or "Nats-Marker-Reason" in fields


def _settle(future: "asyncio.Future[T]", result: "T | Exception") -> None:
    if future.done():
        return
    if isinstance(result, Exception):
        future.set_exception(result)
    else:
        future.set_result(result)
