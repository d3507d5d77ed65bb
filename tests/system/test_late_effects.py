"""Several processes derive effects from states at once: one that comes late, from an older state, changes nothing."""

import json
from collections.abc import AsyncIterator

import pytest_asyncio
from msgspec.structs import replace

from tests.fundamentals.reports import CARD, DONE
from tests.running import System, running
from turngate.clock import system_clock
from turngate.jetstream.embedded import EmbeddedServer
from turngate.jetstream.inbox import Inbox
from turngate.jetstream.keyed import Lanes
from turngate.jetstream.store import Entry, Event, Store
from turngate.validation.reconciler import TurnEffects
from turngate_contracts import codec
from turngate_contracts.messages import SCHEMAS
from turngate_protocol.inbox import InboxEntry
from turngate_protocol.report.answering import Changed, Pick, answer
from turngate_protocol.report.session import SessionTurns
from turngate_protocol.report.turn import Attempt, GateRules, Judged, submit

ENTRY = InboxEntry("card", "session-1", "pool-1", 1, "Which one?", turn=1, options=2)


@pytest_asyncio.fixture
async def quiet_system(nats_server: EmbeddedServer, namespace: str) -> AsyncIterator[System]:
    """A system in which nothing happens but what the test does."""
    async with running(nats_server.url, namespace, validation=False) as made:
        yield made


async def test_an_entry_that_is_shown_late_does_not_come_back_after_its_clearing(quiet_system: System):
    inbox = Inbox(quiet_system.requester, quiet_system.subjects)

    await inbox.clear("card", "session-1", revision=2)
    await inbox.show(ENTRY, revision=1)

    assert (await inbox.page(0, 10)).entries == ()


async def test_a_second_clearing_fences_off_what_came_between(quiet_system: System):
    inbox = Inbox(quiet_system.requester, quiet_system.subjects)
    await inbox.show(ENTRY, revision=1)
    await inbox.clear("card", "session-1", revision=2)

    await inbox.clear("card", "session-1", revision=4)
    await inbox.show(ENTRY, revision=3)

    assert (await inbox.page(0, 10)).entries == ()


async def test_a_newer_state_shows_its_entry_after_a_clearing(quiet_system: System):
    inbox = Inbox(quiet_system.requester, quiet_system.subjects)
    await inbox.clear("card", "session-1", revision=2)

    await inbox.show(ENTRY, revision=3)

    assert (await inbox.page(0, 10)).entries == (ENTRY,)


async def test_the_record_of_a_clearing_does_not_hide_a_card_that_came_since(quiet_system: System):
    desk = Desk(quiet_system)
    await desk.save(desk.reported(1, CARD))
    overtaken = await desk.save(desk.reported(2, DONE))
    shown = await desk.save(desk.reported(3, CARD))
    answered = await desk.save(desk.answered(3))

    await desk.effects.perform(overtaken)
    await desk.effects.perform(shown)
    await desk.reconcile(answered)

    assert (await desk.inbox.page(0, 10)).entries == ()


async def test_the_record_of_what_was_done_is_the_newest_states_own(quiet_system: System):
    desk = Desk(quiet_system)
    await desk.save(desk.reported(1, CARD))
    overtaken = await desk.save(desk.reported(2, DONE))
    newest = await desk.save(desk.reported(3, DONE))

    await desk.effects.perform(overtaken)

    assert (await desk.store.load("session-1")).revision == newest.revision


class Desk:
    """One session's state, moved by hand, and the effects that a validation process performs for it."""

    def __init__(self, system: System) -> None:
        self.store = Store(system.requester, system.subjects, "turns", SCHEMAS[SessionTurns])
        self.inbox = Inbox(system.requester, system.subjects)
        lanes: Lanes[SessionTurns] = Lanes(self.store, codec.encode, codec.decoder(SessionTurns).decode)
        self.effects = TurnEffects(system.requester, system.subjects, lanes, self.inbox, system_clock())
        self._state: SessionTurns | None = None
        self._revision = 0

    def reported(self, turn: int, report: dict[str, object]) -> SessionTurns:
        """The state after a turn's report."""
        attempt = Attempt("session-1", "pool-1", "runner-1", turn, 1, json.dumps(report).encode(), mutated=True)
        judged = submit(self._state, attempt, GateRules(), now=turn)
        assert isinstance(judged, Judged)
        assert judged.state is not None
        return judged.state

    def answered(self, turn: int) -> SessionTurns:
        """The state after a turn's card was answered."""
        changed = answer(self._state, Pick(turn, "ann", number=3), now=turn)
        assert isinstance(changed, Changed)
        return changed.state

    async def save(self, state: SessionTurns) -> Entry:
        """Save the next state and return its revision as the reconciler reads it."""
        self._state = replace(state, op=f"op-{self._revision}")
        value = codec.encode(self._state)
        event = Event(state.cause.type, 1, wants=True)
        self._revision = await self.store.save("session-1", value, self._revision, event)
        return await self.store.load("session-1")

    async def reconcile(self, delivered: Entry) -> None:
        """Do what the reconcile loop does with a delivery: nothing when there is a newer revision."""
        newest = await self.store.load("session-1")
        if newest.revision == delivered.revision:
            await self.effects.perform(newest)
