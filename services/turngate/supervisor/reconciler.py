"""What the newest state of a session's objective wants outside of it, asked for in the order in which it is wanted.

Each effect may be done twice with the same result: a nudge to stop is a nudge, an inbox entry knows the revision it
came from, a timer set again replaces itself, an offer is one message on its own subject. Killed anywhere, the state is
given to another process and all of it is done again. When an inbox entry had to go, a revision records that it went,
so that a session is not looked after for ever because a person was once waited for.
"""

import asyncio
from typing import Final

from msgspec.structs import replace

from turngate.jetstream.awaited import apply
from turngate.jetstream.inbox import Inbox
from turngate.jetstream.keyed import Save
from turngate.jetstream.mailbox import Mailboxes
from turngate.jetstream.store import Entry, Event
from turngate.supervisor.alarms import Alarms
from turngate.supervisor.lane import EsmLane
from turngate.supervisor.offers import Offers
from turngate_contracts import codec
from turngate_contracts.esm import RoleCancelled
from turngate_protocol.esm.continuation import wants
from turngate_protocol.esm.effects import CancelRole, CloseInbox, DispatchRole, Effect, OpenInbox, SetTimer
from turngate_protocol.esm.state import EsmState
from turngate_protocol.inbox import InboxEntry

KIND: Final = "objective"
"""The kind of inbox entries of objectives."""
TITLE_BYTES: Final = 300
INBOX_CLEARED: Final = "objective.inbox_cleared"


class ObjectiveEffects:
    """Performs what states want; `perform` is the reconcile loop's."""

    def __init__(
        self, lane: EsmLane, mailboxes: Mailboxes, inbox: Inbox, alarms: Alarms, offers: Offers, default_pool: str
    ) -> None:
        self._lane = lane
        self._mailboxes = mailboxes
        self._inbox = inbox
        self._alarms = alarms
        self._offers = offers
        self._default_pool = default_pool

    async def perform(self, entry: Entry) -> None:
        """Do what the newest state of a session wants.

        Raises:
            Exception: something could not be done for now; all of it is done again later.
        """
        state = _state(entry)
        await self._all(wants(state), state, entry)
        # A timer set here may have replaced one that another process had set for a newer revision. What else that one
        # wants is done by whoever is given it.
        while (newest := await self._lane.lanes.store.load(entry.key)).revision != entry.revision:
            entry, state = newest, _state(newest)
            await self._all(tuple(e for e in wants(state) if isinstance(e, SetTimer)), state, entry)

    async def _all(self, effects: tuple[Effect, ...], state: EsmState, entry: Entry) -> None:
        # Sent in their order over one connection and awaited together: each waits for one answer of the server, and
        # nothing is acknowledged before all have theirs.
        results = await asyncio.gather(*(self._do(effect, state, entry) for effect in effects), return_exceptions=True)
        for effect, result in zip(effects, results, strict=True):
            if isinstance(result, BaseException):
                raise result
            self._lane.counters.effects[type(effect).__name__] += 1

    async def _do(self, effect: Effect, state: EsmState, entry: Entry) -> None:
        match effect:
            case CancelRole():
                self._cancel(effect)
            case OpenInbox():
                await self._inbox.show(self._shown(effect, state), entry.revision)
            case CloseInbox():
                await self._inbox.clear(KIND, effect.session_id, entry.revision)
                await self._record_cleared(state)
            case SetTimer():
                await self._alarms.set(effect, state, entry)
            case DispatchRole():
                await self._offers.make(self._offers.of(effect, state))

    def _cancel(self, effect: CancelRole) -> None:
        message = RoleCancelled(
            effect.session_id, effect.role_run_id, effect.generation, effect.claim_id, effect.reason
        )
        self._mailboxes.nudge(effect.runner, "cancel", message)

    def _shown(self, effect: OpenInbox, state: EsmState) -> InboxEntry:
        title = f"{effect.reason.value}: {effect.message}" if effect.message else effect.reason.value
        return InboxEntry(KIND, effect.session_id, state.pool or self._default_pool, effect.since, title[:TITLE_BYTES])

    async def _record_cleared(self, done: EsmState) -> None:
        def decide(state: EsmState | None) -> Save[EsmState] | None:
            # Any change since then may have shown an entry again; it then sees to its own.
            if state is None or state.revision != done.revision or not state.halted_before:
                return None
            cleared = replace(state, halted_before=False)
            at = state.cause.at if state.cause else 0
            return Save(cleared, Event(INBOX_CLEARED, at, bool(wants(cleared))))

        await apply(self._lane.lanes, done.session_id, decide)


def _state(entry: Entry) -> EsmState:
    return codec.decode(entry.value or b"", EsmState, "a session's objective")
