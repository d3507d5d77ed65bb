"""Whether memory refs exist: in a bucket, or by asking whoever keeps them; only when the operator configured one.

A ref that the validator does not know is missing; one that can't be asked about, or got no answer, is not held against
the task. Our own lost connection raises: the question is asked again later.
"""

import asyncio
import logging
import re
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from turngate.conclusion.buckets import MAX_KEY, read_key
from turngate.jetstream.request import NoResponders, Requester, RequestTimeout
from turngate_contracts import codec
from turngate_contracts.errors import TurngateError, Unavailable
from turngate_contracts.headers import SCHEMA, block
from turngate_contracts.messages import SCHEMAS
from turngate_contracts.tasks import MAX_MEMORY_REFS, CheckMemoryRefs, MemoryRefsChecked
from turngate_protocol.conclusion import RefState
from turngate_protocol.conclusion.record import TaskConclusion

log = logging.getLogger(__name__)

MAX_AT_ONCE: Final = 64
_KEY: Final = re.compile(r"[-/_=a-zA-Z0-9]+(?:\.[-/_=a-zA-Z0-9]+)*", re.ASCII)
_HEAD: Final = block({SCHEMA: SCHEMAS[CheckMemoryRefs]})


class Memories(Protocol):
    """A validator of memory refs."""

    async def check(self, state: TaskConclusion, refs: Sequence[str]) -> Mapping[str, RefState]:
        """Return what is known of refs; those without an answer are left out.

        Raises:
            Unavailable: our own connection is down.
        """


class MemoryBucket:
    """Looks for refs as keys of a bucket."""

    def __init__(self, requester: Requester, bucket: str, timeout_ms: int) -> None:
        """Make it: `bucket` is the bucket's whole name, `timeout_ms` is for all refs of a task together."""
        self._requester = requester
        self._bucket = bucket
        self._timeout_s = timeout_ms / 1000

    async def check(self, state: TaskConclusion, refs: Sequence[str]) -> Mapping[str, RefState]:
        """Look for each ref; what is no key can't be in the bucket."""
        found: dict[str, RefState] = {}
        slots = asyncio.Semaphore(MAX_AT_ONCE)

        async def look(ref: str) -> None:
            if len(ref) > MAX_KEY:
                found[ref] = RefState.UNCHECKABLE
            elif not _KEY.fullmatch(ref):
                found[ref] = RefState.MISSING
            else:
                async with slots:
                    reply = await read_key(self._requester, self._bucket, ref, int(self._timeout_s * 1000))
                found[ref] = RefState.MISSING if reply is None else RefState.PRESENT

        try:
            async with asyncio.timeout(self._timeout_s), asyncio.TaskGroup() as group:
                for ref in refs:
                    group.create_task(look(ref))
        except TimeoutError:
            log.warning("bucket %s did not answer in time about the memory refs of %s", self._bucket, state.task)
        except ExceptionGroup as errors:
            _tolerate(errors.exceptions, f"bucket {self._bucket}", state)
        return found


class MemorySubject:
    """Asks a service that keeps memories."""

    def __init__(self, requester: Requester, subject: str, timeout_ms: int) -> None:
        """Make it: `subject` takes a CheckMemoryRefs, `timeout_ms` is for all refs of a task together."""
        self._requester = requester
        self._subject = subject
        self._timeout_s = timeout_ms / 1000

    async def check(self, state: TaskConclusion, refs: Sequence[str]) -> Mapping[str, RefState]:
        """Ask in batches until all are answered or the time is over."""
        found: dict[str, RefState] = {}
        deadline = asyncio.get_running_loop().time() + self._timeout_s
        for start in range(0, len(refs), MAX_MEMORY_REFS):
            batch = tuple(refs[start : start + MAX_MEMORY_REFS])
            left_ms = max(1, int((deadline - asyncio.get_running_loop().time()) * 1000))
            request = CheckMemoryRefs(state.session, state.task, batch)
            try:
                reply = await self._requester.request(self._subject, codec.encode(request), _HEAD, left_ms)
                checked = codec.decode(reply.body, MemoryRefsChecked, "a MemoryRefsChecked")
            except TurngateError as error:
                _tolerate([error], self._subject, state)
                break
            asked = set(batch)
            found |= dict.fromkeys(asked.intersection(checked.unknown), RefState.MISSING)
            found |= dict.fromkeys(asked.intersection(checked.known), RefState.PRESENT)
        return found


def _tolerate(errors: Sequence[Exception], asked: str, state: TaskConclusion) -> None:
    """Raise what is our own trouble; log what is the validator's, whose refs then have no answer."""
    for error in errors:
        if isinstance(error, Unavailable) and not isinstance(error, (NoResponders, RequestTimeout)):
            raise error
    log.warning("%s can't say which memory refs of %s exist: %s", asked, state.task, errors[0])
