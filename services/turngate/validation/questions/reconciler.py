"""What the newest state of a session's questions wants outside of it: an inbox entry and a timer, or both gone.

Each effect may be done twice with the same result: an inbox entry knows the revision it came from, a timer set again
replaces itself, and one that fires for a question which is decided changes nothing. When something had to go, a
revision without wants records that it went.
"""

from typing import Final

from turngate.jetstream.awaited import apply
from turngate.jetstream.inbox import Inbox
from turngate.jetstream.keyed import Save
from turngate.jetstream.store import Entry
from turngate.jetstream.timers import Timers
from turngate.validation.questions.lane import QuestionLane, save_of
from turngate_contracts import codec
from turngate_contracts.messages import SCHEMAS
from turngate_contracts.questions import QuestionDue
from turngate_contracts.topology import QUESTION_TIMER
from turngate_protocol.question.effects import KIND, settled, wants
from turngate_protocol.question.session import SessionQuestions

STORING_MS: Final = 1_000
"""How far apart two clocks may seem because storing took its time; more than that, and one of them is wrong."""


class QuestionEffects:
    """Performs what states want; `perform` is the reconcile loop's."""

    def __init__(self, lane: QuestionLane, inbox: Inbox, timers: Timers) -> None:
        self._lane = lane
        self._inbox = inbox
        self._timers = timers

    async def perform(self, entry: Entry) -> None:
        """Do what the newest state of a session wants, then record that it was done.

        Raises:
            Exception: something could not be done for now; all of it is done again later.
        """
        state = codec.decode(entry.value or b"", SessionQuestions, "a session's questions")
        wanted = wants(state)
        await self._arm(state, entry)
        for timer in wanted.cancels:
            await self._timers.cancel(QUESTION_TIMER, timer)
        if wanted.inbox is not None:
            await self._inbox.show(wanted.inbox, entry.revision)
        elif wanted.clears_inbox:
            await self._inbox.clear(KIND, state.session, entry.revision)
        if settled(state, self._lane.clock()) is not None:
            await self._record(state)

    async def arm(self, session: str) -> None:
        """Set the timer that the newest state of a session wants, if it wants one.

        Raises:
            Unavailable: it may be set or not; set it again.
        """
        entry = await self._lane.lanes.store.load(session)
        if entry.value is not None:
            await self._arm(codec.decode(entry.value, SessionQuestions, "a session's questions"), entry)

    async def _arm(self, state: SessionQuestions, entry: Entry) -> None:
        timer = wants(state).timer
        if timer is None:
            return
        # The server's clock fires it. A clock of ours that is wrong was wrong when the state was made as well.
        apart = entry.stored_at() - state.cause.at
        at = timer.at + apart if abs(apart) > STORING_MS else timer.at
        due = QuestionDue(state.session, timer.request_id, timer.schema_digest, timer.at)
        await self._timers.set(QUESTION_TIMER, timer.id, at, codec.encode(due), SCHEMAS[QuestionDue])

    async def _record(self, done: SessionQuestions) -> None:
        def decide(state: SessionQuestions | None) -> Save[SessionQuestions] | None:
            if state is None or state.op != done.op:
                return None  # a newer state has a delivery of its own, which does and records all of it again
            new = settled(state, self._lane.clock())
            return None if new is None else save_of(new)

        await apply(self._lane.lanes, done.session, decide)
