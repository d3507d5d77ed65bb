"""People list, show, retry and drop dead letters; who decided what stays known, and nothing happens twice."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.running import System, running
from tests.services.deadletter.letters import (
    UNREADABLE,
    bury_report,
    bury_unreadable,
    intake,
    letters_of,
    listed,
    publish_report,
)
from tests.waiting import wait_until
from turngate.jetstream.embedded import EmbeddedServer
from turngate.validation.service import ValidationService
from turngate_contracts.dead import (
    DeadDecided,
    DeadFound,
    DeadPage,
    DropDead,
    FoundBy,
    GetDead,
    LetterStatus,
    ListDead,
    RetryDead,
)
from turngate_contracts.errors import ErrorCode, Refusal


@pytest.fixture
async def system(nats_server: EmbeddedServer, namespace: str) -> AsyncIterator[System]:
    """A running system with the dead-letter service."""
    async with running(nats_server.url, namespace, deadletter=True) as made:
        yield made


async def test_a_list_filters_by_stream_reason_session_and_status(system: System):
    first, second = await bury_unreadable(system, "s1"), await bury_unreadable(system, "s2")
    turns = system.subjects.stream("turns")

    assert [e.letter for e in await listed(system)] == [first.letter, second.letter]
    assert [e.letter for e in await listed(system, session="s2")] == [second.letter]
    assert len(await listed(system, stream=turns, reason="invalid_message", status="waiting")) == 2
    assert await listed(system, stream=system.subjects.stream("esm")) == ()
    assert await listed(system, status="dropped") == ()


async def test_a_list_is_read_in_pages(system: System):
    letters = [await bury_unreadable(system, f"s{number}") for number in range(3)]
    person = await system.client("ann")

    first = await person.call("dead.list", ListDead(limit=2), DeadPage)
    second = await person.call("dead.list", ListDead(cursor=first.cursor, limit=2), DeadPage)

    assert [entry.letter for entry in (*first.entries, *second.entries)] == [each.letter for each in letters]
    assert (first.more, second.more) == (True, False)


@pytest.mark.parametrize(
    ("wanted", "field"),
    [
        (ListDead(cursor=-1), "cursor"),
        (ListDead(stream="a.b"), "stream"),
        (ListDead(reason="nothing"), "reason"),
        (ListDead(session="*"), "session"),
        (ListDead(status="lost"), "status"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_a_filter_that_finds_nothing_is_named(system: System, wanted: ListDead, field: str):
    person = await system.client("ann")

    with pytest.raises(Refusal) as refused:
        await person.call("dead.list", wanted, DeadPage)

    assert refused.value.code is ErrorCode.INVALID_ARGUMENT
    assert refused.value.details["field"] == field


async def test_a_letter_is_shown_with_its_body(system: System):
    letter = await bury_unreadable(system)
    person = await system.client("ann")

    found = await person.call("dead.get", GetDead(letter.letter), DeadFound)

    assert found.letter == letter
    assert found.letter.body == UNREADABLE


@pytest.mark.parametrize("letter", ["none", "TG_TURNS-1-00000000", "-1-2"])
async def test_a_letter_that_is_unknown_is_not_found(system: System, letter: str):
    person = await system.client("ann")

    with pytest.raises(Refusal) as refused:
        await person.call("dead.get", GetDead(letter), DeadFound)

    assert refused.value.code is ErrorCode.NOT_FOUND


async def test_what_is_retried_and_dies_again_names_its_first_letter(system: System):
    first = await bury_unreadable(system)
    person = await system.client("ann")

    told = await person.call("dead.retry", RetryDead(first.letter, "the service was upgraded"), DeadDecided)

    assert (told.entry.status, told.already) == (LetterStatus.RETRIED, False)
    assert told.entry.decided is not None
    assert (told.entry.decided.by, told.entry.decided.why) == ("ann", "the service was upgraded")
    (again,) = await wait_until(lambda: listed(system, status="waiting"), why="it is dead again")
    assert (again.first, again.sequence) == (first.letter, told.entry.decided.sequence)


async def test_two_who_retry_at_once_publish_once(system: System):
    letter = await bury_unreadable(system)
    before = (await intake(system))["last_seq"]
    ann, bob = await system.client("ann"), await system.client("bob")

    told = await asyncio.gather(
        *(person.call("dead.retry", RetryDead(letter.letter), DeadDecided) for person in (ann, bob) for _ in range(3))
    )

    assert sorted(each.already for each in told) == [False] + [True] * 5
    assert (await intake(system))["last_seq"] == before + 1


async def test_a_dropped_letter_keeps_who_and_why_and_loses_its_body(system: System):
    letter = await bury_unreadable(system)
    person = await system.client("ann")

    await person.call("dead.drop", DropDead(letter.letter, "a test of a broken runner"), DeadDecided)

    (kept,) = await letters_of(system)
    assert (kept.status, kept.body, kept.size) == (LetterStatus.DROPPED, b"", len(UNREADABLE))
    assert kept.decided is not None
    assert (kept.decided.by, kept.decided.why) == ("ann", "a test of a broken runner")
    again = await person.call("dead.drop", DropDead(letter.letter), DeadDecided)
    assert again.already
    with pytest.raises(Refusal) as refused:
        await person.call("dead.retry", RetryDead(letter.letter), DeadDecided)
    assert (refused.value.code, refused.value.details["by"]) == (ErrorCode.ALREADY_RESOLVED, "ann")


async def test_a_retried_letter_can_not_be_dropped(system: System):
    letter = await bury_unreadable(system)
    person = await system.client("ann")
    await person.call("dead.retry", RetryDead(letter.letter), DeadDecided)

    with pytest.raises(Refusal) as refused:
        await person.call("dead.drop", DropDead(letter.letter), DeadDecided)

    assert refused.value.code is ErrorCode.ALREADY_RESOLVED


async def test_too_many_words_on_why_are_refused(system: System):
    letter = await bury_unreadable(system)
    person = await system.client("ann")

    with pytest.raises(Refusal) as refused:
        await person.call("dead.drop", DropDead(letter.letter, "x" * 1_001), DeadDecided)

    assert refused.value.code is ErrorCode.INVALID_ARGUMENT


async def test_a_report_that_is_retried_is_judged_once_however_often_it_was_sent(
    nats_server: EmbeddedServer, namespace: str
):
    async with running(nats_server.url, namespace, validation=False, deadletter=True) as system:
        letter = await bury_report(system)
        assert (letter.found_by, letter.reason.code) == (FoundBy.ADVISORY, ErrorCode.EXHAUSTED)
        assert (await intake(system))["messages"] == 0
        service = ValidationService(system.connection, system.requester, system.settings)
        await service.start()
        await publish_report(system)  # its runner has sent it again meanwhile
        person = await system.client("ann")

        await person.call("dead.retry", RetryDead(letter.letter), DeadDecided)

        await wait_until(lambda: service.counters.repeats, why="the second copy was answered from the state")
        state = (await person.get("s1")).state
        assert [attempt.attempt for attempt in state.current.attempts] == [1]
        assert service.counters.verdicts.total() == 1
        assert await service.stop()
