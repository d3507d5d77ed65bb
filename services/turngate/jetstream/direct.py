"""Direct gets: reading stored messages in pages, without a consumer on the server."""

from typing import Final

import msgspec
from msgspec import Struct

from turngate.jetstream.connect import parse_headers
from turngate.jetstream.request import Reply, Requester

PAGE: Final = 256
"""Most messages that one page asks for."""
PAGE_BYTES: Final = 4 * 1024 * 1024


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
        Unavailable: the stream did not answer.
    """
    request = {"seq": after + 1, "batch": count, "max_bytes": PAGE_BYTES, "next_by_subj": subjects}
    ends: list[Reply] = []

    def is_last(reply: Reply) -> bool:
        if reply.body or b"Nats-Sequence" in reply.head:
            return False
        ends.append(reply)
        return True

    replies = await requester.collect(f"$JS.API.DIRECT.GET.{stream}", msgspec.json.encode(request), is_last)
    pending = ends[0].headers()[1].get("Nats-Num-Pending", "0") if ends else "0"
    found = []
    for reply in replies:
        fields = parse_headers(reply.head)[1]
        found.append(Stored(int(fields["Nats-Sequence"]), fields["Nats-Subject"], reply.body, fields))
    return found, bool(found) and pending != "0"
