"""5. Whatever happens is an event, and each event is the whole new state.

A user interface reads from a cursor. When it comes back after a pause it goes on from there and has missed nothing.
"""

import contextlib

import msgspec

from tests.fundamentals.reports import CARD, DONE, UNCHECKED
from tests.running import System
from tests.waiting import wait_until
from turngate.runner import TurnClient
from turngate_protocol.report.session import Phase, SessionTurns


async def test_the_story_of_a_session_can_be_read_from_its_events(system: System):
    client, person = await system.client(), await system.client("ann")
    await client.submit_report("session-1", 1, UNCHECKED, mutated=True)
    await client.submit_report("session-1", 1, DONE, attempt=2, mutated=True)

    await wait_until(lambda: _count(person, 2), why="both events are there")
    story = [event async for event in person.events(until_caught_up=True)]

    assert [event.type for event in story] == ["turngate.turn.report_rejected", "turngate.turn.report_accepted"]
    assert [event.key for event in story] == ["session-1", "session-1"]
    assert msgspec.json.decode(story[-1].data, type=SessionTurns).current.phase is Phase.ACCEPTED


async def test_a_reader_that_comes_back_goes_on_from_its_cursor(system: System):
    client, person = await system.client(), await system.client("ann")
    await client.submit_report("session-1", 1, DONE, mutated=True)
    await wait_until(lambda: _count(person, 1), why="the first event is there")
    seen = [event async for event in person.events(until_caught_up=True)]

    await client.submit_report("session-2", 1, CARD)
    async with contextlib.aclosing(person.events(from_cursor=seen[-1].cursor)) as events:
        assert (await anext(events)).key == "session-2"


async def _count(person: TurnClient, wanted: int) -> bool:
    return len([event async for event in person.events(until_caught_up=True)]) >= wanted
