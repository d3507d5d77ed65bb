"""Bringing a bucket of topology version 2, which had one subject a key, to the two that it has now.

The newest revision of each key is saved once more where it belongs by what it wants, which makes it the newest there is
of its key. The old ones stay behind, unread, until they are too old. Killed in between, the keys that were not reached
are moved the next time: whoever moves first wins, and a state that has changed since is never replaced. Services of the
version before must not run any more: what they would save finds no stream.
"""

import logging
from typing import Final

from turngate.jetstream.again import save_as
from turngate.jetstream.direct import PAGE, read_newest, read_subjects
from turngate.jetstream.request import WRONG_SEQUENCE, JetStreamError, Requester
from turngate_contracts import headers as h
from turngate_contracts.subjects import Subjects

log = logging.getLogger(__name__)

SINCE: Final = 3
"""The topology version that has split buckets."""


async def split(requester: Requester, subjects: Subjects, bucket: str) -> int:
    """Move every key of a bucket, and return how many there were to move.

    Raises:
        JetStreamError: the bucket refused one, because it is full, for instance.
        Unavailable: the bucket did not answer.
    """
    stream = subjects.bucket_stream(bucket)
    old = await read_subjects(requester, stream, subjects.unsplit(bucket, "*"))
    for start in range(0, len(old), PAGE):
        for stored in await read_newest(requester, stream, old[start : start + PAGE]):
            if h.KV_OPERATION in stored.fields:
                continue
            name = stored.subject.rpartition(".")[2]
            wants = h.WANTS in stored.fields
            try:
                to = subjects.revision(bucket, name, wants=wants)
                await save_as(requester, stored, to, subjects.key(bucket, name), 0)
            except JetStreamError as error:
                if error.err_code not in WRONG_SEQUENCE:
                    raise
    if old:
        log.info("%s: the newest revisions of %d keys have subjects of this version", stream, len(old))
    return len(old)
