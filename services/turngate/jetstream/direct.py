"""Direct gets: reading stored messages in pages, without a consumer on the server."""

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from turngate.jetstream.connect import parse_headers
from turngate.jetstream.request import Reply, Requester
from turngate_contracts.errors import Unavailable, shown

PAGE: Final = 256
"""Most messages that one page asks for."""
PAGE_BYTES: Final = 4 * 1024 * 1024
"""After how many bytes a page ends."""
MOST_KEYS: Final = 1_000
"""Most subjects whose newest messages can be asked for at once; the server refuses more than 1,024 messages, and the
filter of a split bucket's key has two."""
_ENDS: Final = (204, 404)
"""The statuses of the end of a page, and of a page of nothing."""


class NotServed(Unavailable):
    """A direct get was answered with neither messages nor `there is none`: the server has too much to do."""

    def __init__(self, stream: str, reply: Reply) -> None:
        status = reply.head.partition(b"\r\n")[0].removeprefix(b"NATS/1.0 ")
        super().__init__(f"a read of {stream} was answered with {shown(status.decode('utf-8', 'replace'))}; ask again")


class Stored(Struct, frozen=True):
    """A stored message with its place in its stream."""

    sequence: int
    subject: str
    body: bytes
    fields: dict[str, str]


async def read_page(
    requester: Requester, stream: str, after: int, count: int, subjects: str
) -> tuple[list[Stored], bool]:
    """Read the next messages of a stream that match a filter, oldest first.

    Args:
        requester: the connection's requests.
        stream: the stream's name; it must allow direct gets.
        after: the sequence after which to read.
        count: most messages to return.
        subjects: the filter.

    Returns:
        The messages, and whether there are more behind them.

    Raises:
        Unavailable: the stream did not answer, or not now.
    """
    request = {"seq": after + 1, "batch": count, "max_bytes": PAGE_BYTES, "next_by_subj": subjects}
    return await _read(requester, stream, request)


async def read_newest(requester: Requester, stream: str, subjects: Sequence[str]) -> list[Stored]:
    """Read the newest message of each of these subjects, oldest first; those without one are left out.

    A subject that gets a newer message meanwhile is returned with one of the two.

    Raises:
        Unavailable: the stream did not answer, or not now.
    """
    newest: dict[str, Stored] = {}
    for start in range(0, len(subjects), MOST_KEYS):
        wanted = list(subjects[start : start + MOST_KEYS])
        after, more = 0, True
        while more:
            request = {"multi_last": wanted, "seq": after + 1, "max_bytes": PAGE_BYTES}
            found, more = await _read(requester, stream, request)
            for stored in found:
                after = stored.sequence
                newest[stored.subject] = stored
    return sorted(newest.values(), key=lambda stored: stored.sequence)


async def _read(requester: Requester, stream: str, request: dict[str, Any]) -> tuple[list[Stored], bool]:
    """Return what one direct get returns, and whether there is more; the server bounds it in bytes in any case."""
    ends: list[Reply] = []

    def is_last(reply: Reply) -> bool:
        if reply.body or b"Nats-Sequence" in reply.head:
            return False
        ends.append(reply)
        return True

    replies = await requester.collect(f"$JS.API.DIRECT.GET.{stream}", msgspec.json.encode(request), is_last)
    status, end = ends[0].headers()
    if status not in _ENDS:
        raise NotServed(stream, ends[0])
    found = []
    for reply in replies:
        fields = parse_headers(reply.head)[1]
        found.append(Stored(int(fields["Nats-Sequence"]), fields["Nats-Subject"], reply.body, fields))
    return found, bool(found) and end.get("Nats-Num-Pending", "0") != "0"


async def read_subjects(requester: Requester, stream: str, subjects: str) -> list[str]:
    """Return the subjects of a stream that match a filter, sorted; bodies are not read.

    Raises:
        Unavailable: the stream did not answer.
    """
    found: list[str] = []
    total = 1
    while len(found) < total:
        request = {"subjects_filter": subjects, "offset": len(found)}
        answer = await requester.api(f"STREAM.INFO.{stream}", request, timeout_ms=15_000)
        page = answer.get("state", {}).get("subjects") or {}
        total = int(answer.get("total", 0))
        if not page:
            break
        found += page
    return sorted(found)
