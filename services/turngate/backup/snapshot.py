"""JetStream's snapshot and restore requests, one stream at a time.

A snapshot comes as a compressed archive in chunks to an inbox of ours. Each chunk is confirmed on its reply subject,
which ends in its size and number; the server keeps a window of unconfirmed ones, and an empty message ends it, with a
status where it failed. A restore is the same the other way: each chunk is a request, and the answer to the empty one
says what the stream holds.
"""

import asyncio
import contextlib
from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec

from turngate.backup.errors import RestoreFailed, SnapshotFailed
from turngate.jetstream.connect import parse_headers
from turngate.jetstream.request import NoResponders, Reply, Requester

CHUNK_BYTES: Final = 256 * 1024
WINDOW_BYTES: Final = 4 * 1024 * 1024
"""How much of a snapshot may be on its way, unconfirmed."""
SILENCE_S: Final = 60.0
"""How long the server may take for the next chunk, and for an answer to one."""
IN_FLIGHT: Final = 8
"""Chunks of a restore that are under way at once; the server stores them in the order in which they were sent."""

KNOWN_S: Final = 10.0
"""How long servers of a cluster may take to tell one another where a restore listens."""
LOOK_S: Final = 0.05

_OK: Final = (0, 204)

Chunk = tuple[bytes, bytes, bytes]
"""Body, reply subject and header block of a message."""


async def take(
    requester: Requester, stream: str, write: Callable[[bytes], object], *, consumers: bool
) -> dict[str, Any]:
    """Have a stream's snapshot written, and return its configuration and state at that moment.

    Args:
        requester: the connection's requests.
        stream: the stream.
        write: takes the archive, piece by piece.
        consumers: whether its consumers and their positions are part of it.

    Raises:
        SnapshotFailed: it is not complete.
        JetStreamError, Unavailable: the server refused, or does not answer.
    """
    connection = requester.connection
    inbox = connection.new_inbox()
    chunks: asyncio.Queue[Chunk] = asyncio.Queue()

    def on_chunk(_subject: bytes, reply: bytes, body: bytes, head: bytes) -> None:
        chunks.put_nowait((body, reply, head))

    subscription = await connection.listen(inbox, on_chunk)
    try:
        request = {
            "deliver_subject": inbox,
            "no_consumers": not consumers,
            "chunk_size": CHUNK_BYTES,
            "window_size": WINDOW_BYTES,
            "jsck": True,
        }
        told = await requester.api(f"STREAM.SNAPSHOT.{stream}", request, timeout_ms=int(SILENCE_S * 1000))
        expected = 1
        while True:
            try:
                body, reply, head = await asyncio.wait_for(chunks.get(), SILENCE_S)
            except TimeoutError:
                raise SnapshotFailed(stream, f"no chunk within {SILENCE_S:g} s") from None
            if not body:
                _check_end(stream, head)
                return {"config": told["config"], "state": told["state"]}
            write(body)
            if not reply:
                continue  # the last chunks want no confirmation
            number = reply.rpartition(b".")[2]
            if number.isdigit() and int(number) != expected:
                raise SnapshotFailed(stream, f"chunk {int(number)} came instead of {expected}")
            expected += 1
            connection.send(reply.decode(), b"")
    finally:
        await connection.unlisten(subscription)


async def put_back(
    requester: Requester, stream: str, snapshot: dict[str, Any], chunks: Iterable[bytes]
) -> dict[str, Any]:
    """Make a stream from a snapshot and return its state; the stream must not exist.

    Args:
        requester: the connection's requests.
        stream: the stream.
        snapshot: its configuration and state, as `take` returned them.
        chunks: the archive, in pieces that fit into messages.

    Raises:
        RestoreFailed: the server did not take it; there is no stream then.
        JetStreamError, Unavailable: the server refused, or does not answer.
    """
    told = await requester.api(f"STREAM.RESTORE.{stream}", snapshot, timeout_ms=int(SILENCE_S * 1000))
    subject = str(told["deliver_subject"])
    slots = asyncio.Semaphore(IN_FLIGHT)
    failed: list[Exception] = []

    def on_answer(answer: Reply | Exception) -> None:
        slots.release()
        if isinstance(answer, Exception):
            failed.append(answer)
        elif answer.body:
            failed.append(RestoreFailed(stream, _reason(answer.body)))

    pieces = iter(chunks)
    first = next(pieces, b"")
    if first:
        await slots.acquire()
        on_answer(await _answer(requester, subject, first))
    for chunk in pieces:
        await slots.acquire()
        if failed:
            raise failed[0]
        requester.request_nowait(subject, chunk, on_answer, timeout_ms=int(SILENCE_S * 1000))
    for _ in range(IN_FLIGHT):
        await slots.acquire()
    if failed:
        raise failed[0]
    end = await _answer(requester, subject, b"")
    answer = _decoded(end.body)
    if "state" not in answer:
        raise RestoreFailed(stream, _reason(end.body))
    state: dict[str, Any] = answer["state"]
    return state


async def _answer(requester: Requester, subject: str, body: bytes) -> Reply:
    """Ask the server that restores; in a cluster that is another one, whose subject ours may not know at once."""
    for _ in range(int(KNOWN_S / LOOK_S)):
        with contextlib.suppress(NoResponders):
            return await requester.request(subject, body, timeout_ms=int(SILENCE_S * 1000))
        await asyncio.sleep(LOOK_S)
    return await requester.request(subject, body, timeout_ms=int(SILENCE_S * 1000))


def _check_end(stream: str, head: bytes) -> None:
    status, _ = parse_headers(head)
    if status not in _OK:
        reason = head.partition(b"\r\n")[0].removeprefix(b"NATS/1.0 ").decode("utf-8", "replace")
        raise SnapshotFailed(stream, f"the server ended it with {reason}")


def _decoded(body: bytes) -> dict[str, Any]:
    try:
        answer = msgspec.json.decode(body)
    except msgspec.DecodeError:
        return {}
    return answer if isinstance(answer, dict) else {}


def _reason(body: bytes) -> str:
    error = _decoded(body).get("error")
    return str(error.get("description")) if isinstance(error, dict) else body[:200].decode("utf-8", "replace")
