"""The list of sessions: `turn.list`, the last changed first."""

from typing import Final

import pytest

from tests.fundamentals.reports import DONE
from tests.running import System
from turngate.runner import TurnClient
from turngate_contracts.errors import Refusal
from turngate_contracts.sessions import ListSessions, SessionsPage
from turngate_protocol.report.session import Phase

TEXTS: Final = {"Orders": ["s2", "orders-1"], "STRASSE": ["orders-1"], "archived": ["s2"], "nowhere": []}


async def listed(client: TurnClient, **asked: object) -> SessionsPage:
    return await client.call("turn.list", ListSessions(**asked), SessionsPage)  # type: ignore[arg-type]


async def test_a_system_without_sessions_lists_none(system: System) -> None:
    page = await listed(await system.client("ann"))

    assert (page.entries, page.more) == ((), False)


async def test_the_last_changed_session_is_first_and_each_is_there_once(system: System) -> None:
    client = await system.client()
    for session in ("s1", "s2", "s3"):
        await client.end_turn(session, 1)
    await client.end_turn("s1", 2)

    page = await listed(client)

    assert [(entry.session, entry.turn) for entry in page.entries] == [("s1", 2), ("s3", 1), ("s2", 1)]
    assert page.entries[0].phase is Phase.ENDED
    assert page.entries[0].pool == "pool-1"
    assert page.entries[0].runner == "runner-1"


async def test_pages_together_list_everything_once(system: System) -> None:
    client = await system.client()
    for number in range(7):
        for turn in (1, 2, 3):
            await client.end_turn(f"s{number}", turn)

    found, cursor, more = [], 0, True
    while more:
        page = await listed(client, cursor=cursor, limit=3)
        found += [entry.session for entry in page.entries]
        cursor, more = page.cursor, page.more

    assert found == [f"s{number}" for number in reversed(range(7))]


async def test_a_cursor_beyond_the_end_lists_from_the_end_at_once(system: System) -> None:
    client = await system.client()
    await client.end_turn("s1", 1)

    page = await listed(client, cursor=2**52)

    assert ([entry.session for entry in page.entries], page.more) == (["s1"], False)


async def test_one_pool_is_listed_alone(system: System) -> None:
    await (await system.client("runner-1", "pool-1")).end_turn("s1", 1)
    await (await system.client("runner-2", "pool-2")).end_turn("s2", 1)

    page = await listed(await system.client("ann"), pool="pool-2")

    assert [entry.session for entry in page.entries] == ["s2"]


async def test_a_text_finds_sessions_by_their_name_and_their_headline(system: System) -> None:
    client = await system.client()
    await client.submit_report("orders-1", 1, {**DONE, "headline": "The Straße is long"}, mutated=True)
    await client.submit_report("s2", 1, {**DONE, "headline": "All ORDERS are archived"}, mutated=True)
    await client.end_turn("s3", 1)

    found = {text: [e.session for e in (await listed(client, text=text)).entries] for text in TEXTS}

    assert found == TEXTS


async def test_a_text_that_is_too_long_to_search_for_is_refused(system: System) -> None:
    client = await system.client()

    with pytest.raises(Refusal, match="201 characters; search for at most 200"):
        await listed(client, text="x" * 201)
