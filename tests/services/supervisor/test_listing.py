"""Lists of objectives: by session, each once, a page at a time, and never all of them in memory."""

import asyncio

import pytest

from tests.supervised import POOL, Supervised, refusal
from tests.waiting import wait_until
from turngate.runner.objectives import Objectives
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


async def unattended(person: Objectives, *sessions: str) -> None:
    """Wait until what these sessions want is offered, which follows their states."""

    async def offered() -> bool:
        return [entry.session for entry in (await person.page(unattended=True)).entries] == list(sessions)

    await wait_until(offered, why=f"{len(sessions)} sessions wait")


async def test_those_that_wait_for_a_runner_that_nobody_is(supervised: Supervised):
    person = await supervised.person()
    for session, pool in (("here", POOL), ("there", "nobodys"), ("rests", "nobodys")):
        await person.create(session, "It works", pool=pool)
        await supervised.until_offered(session)
    await person.pause("rests")

    await unattended(person, "here", "there")
    await (await supervised.runner()).beat()
    after = await person.page(unattended=True)

    assert [(entry.session, entry.activity.role, entry.runners) for entry in after.entries] == [("there", "worker", 0)]
    assert not after.more


async def test_those_that_wait_in_vain_come_in_pages(supervised: Supervised):
    await many(supervised)
    person = await supervised.person("bob")
    waiting = [session for at, session in enumerate(SESSIONS) if at % 3]
    await unattended(person, *waiting)
    found: list[str] = []
    page = await person.page(limit=7, unattended=True)
    while page.more:
        found += [entry.session for entry in page.entries]
        page = await person.page(page.cursor, 7, unattended=True)

    assert found + [entry.session for entry in page.entries] == waiting


@pytest.mark.parametrize("cursor", ["a.b", "*", ">", "x" * 129])
async def test_a_cursor_that_no_page_gave_is_refused(supervised: Supervised, cursor: str):
    person = await supervised.person()

    assert await refusal(person.page(cursor)) is ErrorCode.INVALID_ID


async def test_an_objective_that_never_was_is_not_found(supervised: Supervised):
    person = await supervised.person()

    assert await refusal(person.get("nowhere")) is ErrorCode.NOT_FOUND
