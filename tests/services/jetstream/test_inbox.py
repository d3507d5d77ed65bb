"""The inbox holds what waits for a person, oldest first; what comes late from an older state changes nothing."""

import asyncio
import random

import pytest

from tests.services.jetstream.conftest import Connecting, Requesting, make_bucket
from turngate.jetstream.embedded import EmbeddedServer
from turngate.jetstream.inbox import Inbox
from turngate.jetstream.request import NoResponders, Requester
from turngate_contracts.errors import InvalidId
from turngate_contracts.headers import SOURCE_REVISION
from turngate_contracts.subjects import Subjects
from turngate_protocol.inbox import InboxEntry


def entry(session: str, title: str = "which one?", kind: str = "card") -> InboxEntry:
    return InboxEntry(kind=kind, session=session, pool="pool", since=1, title=title)


@pytest.fixture
async def inbox(requester: Requester, subjects: Subjects) -> Inbox:
    await make_bucket(requester, subjects, "inbox")
    return Inbox(requester, subjects)


async def listed(inbox: Inbox, kind: str = "") -> list[InboxEntry]:
    """Read the whole inbox by pages."""
    found: list[InboxEntry] = []
    cursor, more = 0, True
    while more:
        page = await inbox.page(cursor, 3, kind)
        found += page.entries
        cursor, more = page.cursor, page.more
    return found


async def titles(inbox: Inbox) -> list[str]:
    return [each.title for each in await listed(inbox)]


# Showing and clearing


async def test_what_is_shown_is_listed_until_it_is_cleared(inbox: Inbox) -> None:
    await inbox.show(entry("s"), 1)
    assert await listed(inbox) == [entry("s")]

    await inbox.clear("card", "s", 2)
    assert await listed(inbox) == []


async def test_kinds_of_one_session_are_entries_of_their_own(inbox: Inbox) -> None:
    await inbox.show(entry("s", kind="card"), 1)
    await inbox.show(entry("s", kind="question"), 1)

    await inbox.clear("card", "s", 2)

    assert await listed(inbox) == [entry("s", kind="question")]


async def test_a_cleared_entry_can_be_shown_again(inbox: Inbox) -> None:
    await inbox.show(entry("s", "first"), 1)
    await inbox.clear("card", "s", 2)
    await inbox.show(entry("s", "second"), 3)

    assert await titles(inbox) == ["second"]


async def test_an_entry_and_its_tombstone_carry_the_revision_that_they_came_from(inbox: Inbox) -> None:
    await inbox.show(entry("s"), 7)
    shown = await inbox.store.load("card.s")
    await inbox.clear("card", "s", 9)
    cleared = await inbox.store.load("card.s")

    assert (shown.headers()[SOURCE_REVISION], cleared.headers()[SOURCE_REVISION]) == ("7", "9")


# Order and pages


async def test_the_oldest_comes_first(inbox: Inbox) -> None:
    for number in (3, 1, 2):
        await inbox.show(entry(f"s{number}"), 1)

    assert [each.session for each in await listed(inbox)] == ["s3", "s1", "s2"]


async def test_an_unchanged_entry_keeps_its_place_and_a_changed_one_goes_to_the_end(inbox: Inbox) -> None:
    for session in ("a", "b", "c"):
        await inbox.show(entry(session), 1)

    await inbox.show(entry("a"), 2)
    await inbox.show(entry("b", "changed"), 2)

    assert [each.session for each in await listed(inbox)] == ["a", "c", "b"]


async def test_pages_go_on_where_the_last_one_ended(inbox: Inbox) -> None:
    for number in range(7):
        await inbox.show(entry(f"s{number}"), 1)
    await inbox.clear("card", "s3", 2)

    first = await inbox.page(0, 4)
    second = await inbox.page(first.cursor, 4)

    assert [each.session for each in first.entries] == ["s0", "s1", "s2", "s4"]
    assert [each.session for each in second.entries] == ["s5", "s6"]
    assert (first.more, second.more) == (True, False)


@pytest.mark.parametrize(("limit", "count"), [(-1, 1), (0, 1), (2, 2), (10**9, 3)])
async def test_the_size_of_a_page_is_bounded(inbox: Inbox, limit: int, count: int) -> None:
    for number in range(3):
        await inbox.show(entry(f"s{number}"), 1)

    assert len((await inbox.page(0, limit)).entries) == count


async def test_one_kind_is_listed_alone(inbox: Inbox) -> None:
    for number in range(8):
        await inbox.show(entry(f"s{number}", kind="question" if number % 2 else "card"), 1)

    assert [each.session for each in await listed(inbox, "question")] == ["s1", "s3", "s5", "s7"]
    assert await listed(inbox, "other") == []


@pytest.mark.parametrize("kind", ["*", ">", "a.b", "a b"])
async def test_a_kind_that_is_no_name_is_refused(inbox: Inbox, kind: str) -> None:
    with pytest.raises(InvalidId):
        await inbox.page(0, 10, kind)


async def test_an_entry_that_can_not_be_read_does_not_hide_the_others(inbox: Inbox) -> None:
    await inbox.show(entry("a"), 1)
    await inbox.store.put("card.bad", b"\xff nonsense", 0, {SOURCE_REVISION: "1"})
    await inbox.show(entry("b"), 1)

    assert [each.session for each in await listed(inbox)] == ["a", "b"]


# What comes late


async def test_an_older_entry_does_not_replace_a_newer(inbox: Inbox) -> None:
    await inbox.show(entry("s", "newer"), 5)

    await inbox.show(entry("s", "older"), 4)

    assert await titles(inbox) == ["newer"]


async def test_an_older_entry_is_not_shown_after_a_newer_state_cleared_it(inbox: Inbox) -> None:
    await inbox.show(entry("s"), 3)
    await inbox.clear("card", "s", 5)

    await inbox.show(entry("s", "late"), 4)

    assert await titles(inbox) == []


async def test_an_older_entry_is_not_shown_after_a_newer_state_found_nothing_to_clear(inbox: Inbox) -> None:
    await inbox.clear("card", "s", 5)

    await inbox.show(entry("s", "late"), 4)

    assert await titles(inbox) == []


async def test_a_second_clear_fences_off_what_the_first_did_not(inbox: Inbox) -> None:
    await inbox.clear("card", "s", 3)
    await inbox.clear("card", "s", 7)

    await inbox.show(entry("s", "late"), 5)

    assert await titles(inbox) == []


async def test_an_older_state_does_not_clear_a_newer_entry(inbox: Inbox) -> None:
    await inbox.show(entry("s", "newer"), 5)

    await inbox.clear("card", "s", 4)

    assert await titles(inbox) == ["newer"]


async def test_the_same_state_may_be_told_any_number_of_times(inbox: Inbox) -> None:
    for _ in range(3):
        await inbox.show(entry("s"), 5)
        await inbox.clear("card", "t", 5)

    assert await listed(inbox) == [entry("s")]
    assert (await inbox.store.load("card.s")).revision == 1
    assert (await inbox.store.load("card.t")).revision == 2


# What a process remembers


async def test_what_another_process_cleared_is_shown_again_by_the_one_that_remembers_showing_it(
    inbox: Inbox, requester: Requester, subjects: Subjects
) -> None:
    other = Inbox(requester, subjects)
    await inbox.show(entry("s"), 1)
    await other.clear("card", "s", 2)

    await inbox.show(entry("s"), 3)

    assert await listed(inbox) == [entry("s")]


async def test_what_another_process_showed_is_cleared_by_the_one_that_remembers_clearing_it(
    inbox: Inbox, requester: Requester, subjects: Subjects
) -> None:
    other = Inbox(requester, subjects)
    await inbox.clear("card", "s", 1)
    await other.show(entry("s"), 2)

    await inbox.clear("card", "s", 3)

    assert await listed(inbox) == []


async def test_what_a_process_remembers_keeps_an_older_state_from_nothing_newer_of_another_process(
    inbox: Inbox, requester: Requester, subjects: Subjects
) -> None:
    other = Inbox(requester, subjects)
    await inbox.show(entry("s", "first"), 1)
    await other.show(entry("s", "third"), 3)

    await inbox.show(entry("s", "second"), 2)

    assert await titles(inbox) == ["third"]


async def test_a_process_remembers_a_bounded_number_of_entries(inbox: Inbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("turngate.jetstream.inbox.REMEMBERED", 3)
    for round_ in (1, 2):
        for number in range(10):
            await inbox.show(entry(f"s{number}", f"round {round_}"), round_)

    assert await titles(inbox) == ["round 2"] * 10
    assert len(inbox._written) == 3


async def test_the_newest_state_wins_whoever_is_late(
    inbox: Inbox, connecting: Connecting, requesting: Requesting, nats_server: EmbeddedServer, subjects: Subjects
) -> None:
    other = Inbox(await requesting(await connecting(nats_server.url)), subjects)
    shuffle = random.Random(7).shuffle
    told = [(session, revision) for session in ("a", "b", "c", "d") for revision in range(1, 13)]
    shuffle(told)

    async def tell(number: int, session: str, revision: int) -> None:
        by = inbox if number % 2 else other
        # The last state of a and b wants an entry, that of c and d none.
        if (revision % 2 == 0) == (session in "ab"):
            await by.show(entry(session, f"{session}{revision}"), revision)
        else:
            await by.clear("card", session, revision)

    for start in range(0, len(told), 8):
        at_once = enumerate(told[start : start + 8])
        await asyncio.gather(*(tell(number, session, revision) for number, (session, revision) in at_once))

    assert sorted(await titles(inbox)) == ["a12", "b12"]


async def test_an_inbox_that_does_not_answer_is_told(requester: Requester, subjects: Subjects) -> None:
    missing = Inbox(requester, subjects)

    with pytest.raises(NoResponders):
        await missing.show(entry("s"), 1)
    with pytest.raises(NoResponders):
        await missing.page(0, 10)
