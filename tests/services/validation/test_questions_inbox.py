"""What waits is listed over all sessions, a page at a time, and no page loads more than itself."""

import asyncio
from functools import partial
from typing import Any

import pytest

from tests.fundamentals.reports import CARD
from tests.running import System
from tests.services.validation.asking import ask, freeform
from tests.waiting import wait_until
from turngate.jetstream.request import Requester
from turngate.jetstream.store import Event, Store
from turngate.runner import TurnClient
from turngate_contracts import codec
from turngate_contracts.errors import ErrorCode, Refusal
from turngate_contracts.messages import SCHEMAS
from turngate_protocol.inbox import InboxEntry
from turngate_protocol.question import AskQuestion, Lineage, SessionQuestions, Step, request_from_call
from turngate_protocol.question import ask as pure_ask

MANY = 10_000
PAGE = 500
AT_ONCE = 200


async def listed(client: TurnClient, limit: int = 100) -> list[InboxEntry]:
    """Everything that the inbox lists, page by page."""
    found: list[InboxEntry] = []
    page = await client.inbox(limit=limit, kind="question")
    found += page.entries
    while page.more:
        page = await client.inbox(page.cursor, limit, "question")
        found += page.entries
    return found


async def test_the_oldest_comes_first_with_what_a_list_shows(system: System):
    runner, person = await system.client(), await system.client("ann")
    for number in range(5):
        await ask(runner, f"session-{number}", freeform(prompt=f"Question {number}?"), lineage=Lineage("parent"))
        await wait_until(partial(_count, person, number + 1), why="it is listed")

    entries = await listed(person, limit=2)

    assert [entry.title for entry in entries] == [f"Question {number}?" for number in range(5)]
    assert [entry.since for entry in entries] == sorted(entry.since for entry in entries)
    assert {(e.kind, e.runner, e.questions, e.parent_session) for e in entries} == {
        ("question", "runner-1", 1, "parent")
    }


async def test_a_question_keeps_its_place_when_another_runner_goes_on_with_it(system: System):
    runner, other, person = await system.client(), await system.client("runner-2"), await system.client("ann")
    for session in ("first", "second"):
        await ask(runner, session)
        await wait_until(partial(_is_listed, person, session), why="it is listed")

    await ask(other, "first")
    await person.questions.reject("second", await ask(other, "second"))

    await wait_until(lambda: _count(person, 1), why="the decided one is gone")
    assert [entry.session for entry in await listed(person)] == ["first"]


async def test_a_card_and_a_question_of_one_session_are_two_entries(system: System):
    runner, person = await system.client(), await system.client("ann")
    await runner.submit_report("s", 1, CARD)
    await ask(runner)
    await wait_until(lambda: _kinds(person, {"card", "question"}), why="both are listed")

    await person.dismiss("s", 1)

    await wait_until(lambda: _kinds(person, {"question"}), why="the card is gone and the question stays")


@pytest.mark.parametrize("kind", ["*", ">", "a.b", "question.*", "a b", "k" * 129])
async def test_a_kind_that_is_none_is_refused(system: System, kind: str):
    person = await system.client("ann")
    with pytest.raises(Refusal) as error:
        await person.inbox(kind=kind)
    assert error.value.code is ErrorCode.INVALID_ID


@pytest.mark.slow
async def test_ten_thousand_waiting_sessions_are_listed_page_by_page(system: System, monkeypatch: pytest.MonkeyPatch):
    person = await system.client("ann")
    await _let_many_wait(system)
    await wait_until(lambda: _last_is_listed(system), 60, "the reconciler has listed every session")
    loaded = _count_loads(system.requester, monkeypatch)

    seen: list[InboxEntry] = []
    cursor, more = 0, True
    while more:
        loaded.clear()
        page = await person.inbox(cursor, PAGE, "question")
        seen += page.entries
        cursor, more = page.cursor, page.more
        assert len(page.entries) <= PAGE
        assert sum(loaded) <= PAGE, "a page reads no more than it shows"

    assert len(seen) == MANY
    assert len({entry.session for entry in seen}) == MANY
    # 64 are listed at once, so neighbours may change places; nobody waits at the end of the list for long.
    places = {f"session-{number}": number for number in range(MANY)}
    assert max(abs(places[entry.session] - place) for place, entry in enumerate(seen)) < PAGE


async def _let_many_wait(system: System) -> None:
    """Store what asking stores, for many sessions; asking itself is tested elsewhere."""
    store = Store(system.requester, system.subjects, "questions", SCHEMAS[SessionQuestions])
    request = request_from_call("ask_user_text", "call-1", '{"question": "Go on?"}')
    slots = asyncio.Semaphore(AT_ONCE)

    async def one(number: int) -> None:
        step = pure_ask(None, AskQuestion(f"session-{number}", "pool-1", "runner-1", request), 1_000 + number)
        assert isinstance(step, Step)
        async with slots:
            event = Event(step.state.cause.type, step.state.cause.at, wants=True)
            await store.save(f"session-{number}", codec.encode(step.state), 0, event)

    await asyncio.gather(*map(one, range(MANY)))


async def _last_is_listed(system: System) -> bool:
    info = await system.requester.api(f"STREAM.INFO.{system.subjects.bucket_stream('inbox')}")
    return int(info["state"]["messages"]) == MANY


def _count_loads(requester: Requester, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many messages each read of a page loads, in the validation service of this process."""
    loaded: list[int] = []
    collect = requester.collect

    async def counting(*args: Any, **kwargs: Any) -> Any:
        replies = await collect(*args, **kwargs)
        loaded.append(len(replies))
        return replies

    monkeypatch.setattr(requester, "collect", counting)
    return loaded


async def _count(client: TurnClient, wanted: int) -> bool:
    return len(await listed(client)) == wanted


async def _kinds(client: TurnClient, wanted: set[str]) -> bool:
    return {entry.kind for entry in (await client.inbox()).entries} == wanted


async def _is_listed(client: TurnClient, session: str) -> bool:
    return session in {entry.session for entry in await listed(client)}
