"""What is known of objectives: one with all of it, many as a list by session.

A page reads the newest revisions of its own sessions and no others, so that its cost does not grow with the length of
histories, and nothing is kept between two pages. A list by session shows each objective once, however busy it is; one
by age would chase what moves.
"""

from bisect import bisect_right
from typing import Final

from msgspec import Struct

from turngate.jetstream.direct import read_newest, read_subjects
from turngate.jetstream.store import Store
from turngate.supervisor.presence import Presences, takers
from turngate.supervisor.unattended import unattended as unattended_sessions
from turngate_contracts import codec
from turngate_contracts.beats import RunnerPresence
from turngate_contracts.errors import ErrorCode, Refusal
from turngate_contracts.esm import MAX_PAGE, ObjectiveEntry, ObjectiveFound, ObjectivesPage
from turngate_contracts.subjects import Subjects
from turngate_protocol.esm.activity import Activity, ActivityKind, activity_of
from turngate_protocol.esm.objective import Status
from turngate_protocol.esm.present import format_objective
from turngate_protocol.esm.state import EsmState

TITLE_CHARACTERS: Final = 200
READ_AT_ONCE: Final = 250
"""Sessions whose states are read in one go: states are large, and a page is not held twice."""
READ_AT_MOST: Final = 1_000
"""Sessions that one page looks at before it is given out short: a status that is rare must not read everything."""

_AT_WORK: Final = (ActivityKind.RUNNING, ActivityKind.WAITING_FOR_RUNNER)


class Listing(Struct, frozen=True):
    """Reads objectives; nothing here changes anything."""

    store: Store
    presences: Presences
    default_pool: str
    subjects: Subjects

    async def get(self, session: str) -> ObjectiveFound:
        """Return what is known of a session's objective.

        Raises:
            Refusal: not_found where the session never had one.
        """
        entry = await self.store.load(session)
        if entry.value is None:
            raise Refusal(ErrorCode.NOT_FOUND, f"session {session} has no objective: create one", session=session)
        state = codec.decode(entry.value, EsmState, "a session's objective")
        activity = activity_of(state)
        alive = await self.presences.alive() if activity.kind in _AT_WORK else []
        return ObjectiveFound(
            state, entry.revision, activity, format_objective(state.objective), self._runners(activity, alive)
        )

    async def page(self, cursor: str, limit: int, status: Status | None, *, unattended: bool = False) -> ObjectivesPage:
        """Return objectives by session, from the one after `cursor` on; see ListObjectives."""
        limit = max(1, min(limit, MAX_PAGE))
        prefix = len(self.store.subject(""))
        alive = await self.presences.alive()
        subjects = await self._subjects(alive if unattended else None)
        first = bisect_right(subjects, self.store.subject(cursor)) if cursor else 0
        entries: list[ObjectiveEntry] = []
        looked = first
        while looked < len(subjects) and len(entries) < limit and looked - first < READ_AT_MOST:
            some = subjects[looked : looked + min(READ_AT_ONCE, limit - len(entries))]
            found = await self._entries(some, status, alive)
            entries += [entry for entry in found if not unattended or _is_unattended(entry)]
            looked += len(some)
        last = subjects[looked - 1][prefix:] if looked else cursor
        return ObjectivesPage(tuple(entries), last, looked < len(subjects))

    async def _subjects(self, alive: list[RunnerPresence] | None) -> list[str]:
        requester = self.store.requester
        if alive is None:
            return await read_subjects(requester, self.store.stream, self.store.subject(">"))
        return [self.store.subject(session) for session in await unattended_sessions(requester, self.subjects, alive)]

    async def _entries(
        self, subjects: list[str], status: Status | None, alive: list[RunnerPresence]
    ) -> list[ObjectiveEntry]:
        found = []
        for stored in await read_newest(self.store.requester, self.store.stream, subjects):
            state = codec.decode(stored.body, EsmState, "a session's objective")
            if state.objective is not None and status in (None, state.objective.status):
                found.append(self._entry(state, stored.sequence, alive))
        return sorted(found, key=lambda entry: entry.session)

    def _entry(self, state: EsmState, revision: int, alive: list[RunnerPresence]) -> ObjectiveEntry:
        objective, activity = state.objective, activity_of(state)
        if objective is None:
            raise ValueError("a session without an objective is not listed")
        return ObjectiveEntry(
            state.session_id,
            revision,
            activity,
            objective.status,
            objective.phase.value,
            objective.text[:TITLE_CHARACTERS],
            state.pool,
            state.cause.at if state.cause else 0,
            state.runs,
            objective.tokens_used,
            objective.time_used_ms,
            objective.blocked_count,
            objective.rejection_count,
            objective.recovery_count,
            len(objective.remaining_work),
            len(state.guidance),
            self._runners(activity, alive),
        )

    def _runners(self, activity: Activity, alive: list[RunnerPresence]) -> int:
        return takers(alive, activity.pool or self.default_pool, activity.role)


def _is_unattended(entry: ObjectiveEntry) -> bool:
    # An offer may be older than the state: what it was for may run, or be wanted no more.
    return entry.activity.kind is ActivityKind.WAITING_FOR_RUNNER and not entry.runners
