"""Bringing a bucket of topology version 2, which had one subject a key, to the two that it has now.

The newest revision of each key is saved once more where it belongs by what it wants, which makes it the newest there is
of its key. The old ones stay behind, unread, until they are too old. Killed in between, the keys that were not reached
are moved the next time: whoever moves first wins, and a state that has changed since is never replaced. Services of the
version before that still run can save nothing any more: it would find no stream.
"""

import asyncio
import logging
from typing import Final

import msgspec

from turngate.jetstream.again import save_as
from turngate.jetstream.direct import PAGE, Stored, read_newest, read_subjects
from turngate.jetstream.request import WRONG_SEQUENCE, JetStreamError, Requester
from turngate_contracts import headers as h
from turngate_contracts.subjects import Subjects

log = logging.getLogger(__name__)

SINCE: Final = 3
"""The topology version that has split buckets."""
SOURCED_S: Final = 60.0
"""How long the events may take to catch up with a bucket; those that they then lack are told by the state that came of
them."""
POLL_S: Final = 0.1


async def until_sourced(requester: Requester, subjects: Subjects, bucket: str) -> None:
    """Wait until the events hold the newest revision of a bucket that nobody saves in.

    Raises:
        JetStreamError, Unavailable: the server did not answer, or refused.
    """
    events = subjects.stream("events")
    last = int((await requester.api(f"STREAM.INFO.{subjects.bucket_stream(bucket)}"))["state"]["last_seq"])
    deadline = asyncio.get_running_loop().time() + SOURCED_S
    while last:
        wanted = msgspec.json.encode({"last_by_subj": subjects.event(bucket, ">")})
        status, fields = (await requester.request(f"$JS.API.DIRECT.GET.{events}", wanted)).headers()
        source = fields.get(h.SOURCE, "").split(" ")
        if not status and len(source) > 1 and int(source[1]) >= last:
            return
        if asyncio.get_running_loop().time() > deadline:
            log.warning("%s has not all of %s after %d s: older events are passed over", events, bucket, SOURCED_S)
            return
        await asyncio.sleep(POLL_S)


async def split(requester: Requester, subjects: Subjects, bucket: str) -> int:
    """Move every key of a bucket, and return how many there were to move.

    Raises:
        JetStreamError: the bucket refused one, because it is full, for instance.
        Unavailable: the bucket did not answer.
    """
    stream = subjects.bucket_stream(bucket)
    old = await read_subjects(requester, stream, subjects.unsplit(bucket, "*"))
    for start in range(0, len(old), PAGE):
        found = await read_newest(requester, stream, old[start : start + PAGE])
        await asyncio.gather(*(_move(requester, subjects, bucket, stored) for stored in found))
        log.info("%s: %d of %d keys have subjects of this version", stream, min(start + PAGE, len(old)), len(old))
    return len(old)


async def _move(requester: Requester, subjects: Subjects, bucket: str, stored: Stored) -> None:
    if h.KV_OPERATION in stored.fields:
        return
    name = stored.subject.rpartition(".")[2]
    to = subjects.revision(bucket, name, wants=h.WANTS in stored.fields)
    try:
        await save_as(requester, stored, to, subjects.key(bucket, name), 0)
    except JetStreamError as error:
        if error.err_code not in WRONG_SEQUENCE:
            raise
