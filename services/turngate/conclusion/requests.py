"""The requests of the conclusion service: one task's conclusion, and lists of them. They only read, from the bucket.

A list walks the bucket's revisions in the order in which they were stored and shows each task once, at its newest
revision: a task that changes while somebody lists moves to the end and is not missed. The other way round, the last
changed first, is for people, who look for what has just come.
"""

import asyncio
import contextlib
from typing import Final

from turngate.conclusion.metrics import Counters
from turngate.jetstream.api import Api, Call
from turngate.jetstream.backwards import backwards
from turngate.jetstream.store import Store
from turngate_contracts import codec
from turngate_contracts.errors import ErrorCode, InvalidMessage, Refusal
from turngate_contracts.ids import check_id
from turngate_contracts.tasks import (
    ConclusionEntry,
    ConclusionFound,
    ConclusionsPage,
    GetConclusion,
    ListConclusions,
)
from turngate_protocol.conclusion import GateResult
from turngate_protocol.conclusion.record import TaskConclusion, key_of
from turngate_protocol.text import cut_bytes

MAX_PAGE: Final = 1_000
TITLE_BYTES: Final = 240
"""Longest title of an entry, in UTF-8 bytes; the whole summary stands in the conclusion."""
_READ: Final = 128
"""How many revisions are read at a time."""


class Requests:
    """Answers the requests; `register` puts them on the wire."""

    def __init__(self, api: Api, store: Store, counters: Counters) -> None:
        self._api = api
        self._store = store
        self._counters = counters

    async def register(self) -> None:
        """Listen for every request of this service."""
        await self._api.add("conclusion.get", GetConclusion, self.get)
        await self._api.add("conclusion.list", ListConclusions, self.list_conclusions)

    def get(self, call: Call, request: GetConclusion) -> None:
        """Give what is known of a task that ended."""
        self._counters.requests["conclusion.get"] += 1
        session, task = check_id("session", request.session), check_id("task", request.task)

        async def load() -> ConclusionFound:
            entry = await self._store.load(key_of(session, task))
            if entry.value is None:
                raise Refusal(
                    ErrorCode.NOT_FOUND,
                    f"task {task} of session {session} is not known to have ended",
                    session=session,
                    task=task,
                )
            return ConclusionFound(_state(entry.value), entry.revision)

        self._api.run(call, load())

    def list_conclusions(self, call: Call, request: ListConclusions) -> None:
        """List conclusions, the longest unchanged first, a page at a time."""
        self._counters.requests["conclusion.list"] += 1
        if request.cursor < 0:
            raise InvalidMessage(f"cursor {request.cursor} must be 0 or one that a page gave", field="cursor")
        session = check_id("session", request.session) if request.session else "*"
        listed = newest_page if request.newest else page
        self._api.run(call, listed(self._store, request.cursor, request.limit, f"{session}.*"))


async def page(store: Store, cursor: int, limit: int, keys: str) -> ConclusionsPage:
    """Return the conclusions whose newest revision is behind a cursor, in the order of those revisions.

    Args:
        store: the bucket.
        cursor: the revision to go on from; 0 for the first page.
        limit: how many entries at most.
        keys: which keys, as a filter.

    Raises:
        Unavailable: the bucket did not answer.
    """
    limit = max(1, min(limit, MAX_PAGE))
    entries: list[ConclusionEntry] = []
    more = True
    while more and len(entries) < limit:
        found, cursor, more = await store.page(cursor, _READ, keys)
        newest = await asyncio.gather(*(store.load(key) for key in dict.fromkeys(entry.key for entry in found)))
        revisions = {entry.key: entry.revision for entry in newest}
        for at, entry in enumerate(found):
            if revisions[entry.key] != entry.revision:
                continue
            entries.append(_entry(entry.value or b"", entry.revision))
            if len(entries) == limit and at + 1 < len(found):
                return ConclusionsPage(tuple(entries), entry.revision, True)
    return ConclusionsPage(tuple(entries), cursor, more)


async def newest_page(store: Store, cursor: int, limit: int, keys: str) -> ConclusionsPage:
    """Return the conclusions whose newest revision is before a cursor, the last changed first; else as `page`."""
    limit = max(1, min(limit, MAX_PAGE))
    entries: list[ConclusionEntry] = []
    async with contextlib.aclosing(backwards(store, cursor, keys)) as windows:
        async for window in windows:
            for stored in window.newest:
                if len(entries) == limit:
                    return ConclusionsPage(tuple(entries), entries[-1].revision, True)
                entries.append(_entry(stored.body, stored.sequence))
    return ConclusionsPage(tuple(entries))


def _state(value: bytes) -> TaskConclusion:
    return codec.decode(value, TaskConclusion, "a task's conclusion")


def _entry(value: bytes, revision: int) -> ConclusionEntry:
    state = _state(value)
    conclusion, gate = state.conclusion, state.gate or GateResult()
    return ConclusionEntry(
        state.session,
        state.task,
        state.phase,
        state.cause.at,
        revision,
        "" if conclusion is None else conclusion.status,
        "" if conclusion is None else cut_bytes(conclusion.summary, TITLE_BYTES),
        state.runner,
        state.pool,
        state.record.engine,
        state.record.project_name,
        conclusion is not None and conclusion.synthesized,
        gate.downgraded,
        len(gate.missing_artifacts) + len(gate.missing_memory_refs),
        len(gate.uncheckable_artifacts) + len(gate.uncheckable_memory_refs),
        len(gate.unproven_artifacts),
        len(state.conflicts),
        "" if state.refusal is None else state.refusal.code,
    )
