"""Lists of objectives: by session, each once, a page at a time, and never all of them in memory."""

import asyncio

import pytest

from tests.supervised import Supervised, refusal
from turngate_contracts.errors import ErrorCode
from turngate_protocol.esm.objective import Status

SESSIONS = [f"s-{number:03}" for number in range(30)]


async def many(supervised: Supervised) -> None:
    person = await supervised.person()
    await asyncio.gather(*(person.create(session, f"Objective of {session}") for session in SESSIONS))
    await asyncio.gather(*(person.pause(session) for session in SESSIONS[::3]))


async def test_pages_show_every_objective_once_in_the_order_of_sessions(supervised: Supervised):
    await many(supervised)
    person = await supervised.person("bob")

    first = await person.page(limit=7)
    entries = [entry async for entry in person.every()]

    assert [entry.session for entry in first.entries] == SESSIONS[:7]
    assert (first.cursor, first.more) == (SESSIONS[6], True)
    assert [entry.session for entry in entries] == SESSIONS
    assert entries[0].title == "Objective of s-000"


async def test_one_status_only(supervised: Supervised):
    await many(supervised)
    person = await supervised.person("bob")

    paused = [entry.session async for entry in person.every(Status.PAUSED)]

    assert paused == SESSIONS[::3]


async def test_a_cleared_objective_is_listed_no_more(supervised: Supervised):
    await many(supervised)
    person = await supervised.person("bob")
    await person.clear(SESSIONS[4])

    listed = [entry.session async for entry in person.every()]

    assert SESSIONS[4] not in listed
    assert (await person.get(SESSIONS[4])).activity.kind == "none"


async def test_a_list_of_nothing_is_empty(supervised: Supervised):
    person = await supervised.person()

    page = await person.page()

    assert (page.entries, page.more) == ((), False)


@pytest.mark.parametrize("cursor", ["a.b", "*", ">", "x" * 129])
async def test_a_cursor_that_no_page_gave_is_refused(supervised: Supervised, cursor: str):
    person = await supervised.person()

    assert await refusal(person.page(cursor)) is ErrorCode.INVALID_ID


async def test_an_objective_that_never_was_is_not_found(supervised: Supervised):
    person = await supervised.person()

    assert await refusal(person.get("nowhere")) is ErrorCode.NOT_FOUND
