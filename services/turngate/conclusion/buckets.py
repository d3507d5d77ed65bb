"""Reading keys of buckets that are not ours: what a registry or a memory keeps, without joining its stream."""

from typing import Final

import msgspec

from turngate.jetstream.request import Reply, Requester
from turngate_contracts.headers import KV_OPERATION

MAX_KEY: Final = 1_000
"""Longest key that is asked for, in characters."""


async def read_key(requester: Requester, bucket: str, key: str, timeout_ms: int) -> Reply | None:
    """Return the newest value of a key, or None where there is none.

    Args:
        requester: the connection's requests.
        bucket: the bucket's whole name.
        key: a legal key; it stands in the body, so that nothing in it can become another subject.
        timeout_ms: how long it may take.

    Raises:
        NoResponders: there is no such bucket, or it allows no direct gets.
        Unavailable: it did not answer.
    """
    body = msgspec.json.encode({"last_by_subj": f"$KV.{bucket}.{key}"})
    reply = await requester.request(f"$JS.API.DIRECT.GET.KV_{bucket}", body, timeout_ms=timeout_ms)
    status, fields = reply.headers()
    gone = status == 404 or KV_OPERATION in fields or "Nats-Marker-Reason" in fields
    return None if gone else reply
