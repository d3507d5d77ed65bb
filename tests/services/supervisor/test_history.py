"""The history: everything that happened, once, in order, from any page to the next."""

import pytest

from tests import esm_answers as answers
from tests.supervised import Supervised, refusal
from tests.waiting import wait_until
from turngate.supervisor.history import _READ_AT_ONCE
from turngate_contracts.errors import ErrorCode
from turngate_protocol.esm.state import Cause, CauseType

SESSION = "session-1"


async def a_long_story(supervised: Supervised, guidance: int = 40) -> None:
    person = await supervised.person()
    await supervised.host({"default": [answers.GOES_ON, answers.COMPLETES]})
    await person.create(SESSION, "Do all of it")
    await supervised.until_status(SESSION, "complete")
    await person.create(SESSION, "And another")
    for number in range(guidance):
        await person.guide(SESSION, f"Hint {number}")
    await supervised.until_status(SESSION, "complete")


@pytest.mark.parametrize("limit", [1, 2, 7, 1_000])
async def test_pages_of_any_size_tell_the_same_story(supervised: Supervised, limit: int):
    await a_long_story(supervised)
    person = await supervised.person("reader")

    found: list[Cause] = []
    cursor, more = "", True
    while more:
        page = await person.history_page(SESSION, cursor, limit)
        assert len(page.entries) <= limit
        found += page.entries
        cursor, more = page.cursor, page.more

    revisions = [cause.revision for cause in found]
    assert revisions == sorted(set(revisions))
    watched = revisions[-1] - len(revisions)  # the looks of the watchdog are left out
    assert watched >= 0
    assert sum(cause.type is CauseType.GUIDED for cause in found) == 40
    assert len(found) > _READ_AT_ONCE


@pytest.mark.parametrize("limit", [1, 7, 1_000])
async def test_pages_back_from_the_newest_tell_the_same_story(supervised: Supervised, limit: int):
    await a_long_story(supervised)
    person = await supervised.person("reader")
    told = [cause async for cause in person.history(SESSION)]

    found: list[Cause] = []
    before, more = told[-1].revision + 1, True
    while more:
        page = await person.history_page(SESSION, limit=limit, before=before)
        assert len(page.entries) <= limit
        found = [*page.entries, *found]
        before, more = page.entries[0].revision, page.more

    assert found == told


async def test_a_role_s_end_tells_run_role_verdict_reason_tokens_and_time(supervised: Supervised):
    person, hand = await supervised.person(), await supervised.runner()
    await person.create(SESSION, "Do all of it")
    request = await hand.claim(SESSION)
    await hand.report(request, answers.worker("complete_candidate", "", remaining_work=["more"]))
    await supervised.until(SESSION, lambda s: s.continuation is None or s.runs > 1)

    (ended,) = [cause async for cause in person.history(SESSION) if cause.type is CauseType.ROLE_FINISHED]

    assert (ended.role_run_id, ended.role, ended.runner) == (request.run_id, "worker", "hand-1")
    assert (ended.tokens, ended.duration_ms, ended.tool_calls) == (7, 11, 2)
    assert ended.reason
    assert ended.run_id == request.base_run_id


async def test_what_happens_later_is_read_from_the_last_cursor_on(supervised: Supervised):
    person = await supervised.person()
    await person.create(SESSION, "Do all of it")
    page = await person.history_page(SESSION)
    assert page.more is False

    await person.pause(SESSION)
    later = await person.history_page(SESSION, page.cursor)

    assert [cause.type for cause in later.entries] == [CauseType.PAUSED]
    assert [cause.actor for cause in later.entries] == ["ann"]


async def test_what_the_bucket_has_forgotten_is_read_from_the_events(supervised: Supervised):
    stream = supervised.subjects.bucket_stream("objectives")
    info = await supervised.requester.api(f"STREAM.INFO.{stream}")
    await supervised.requester.api(f"STREAM.UPDATE.{stream}", {**info["config"], "max_msgs_per_subject": 5})
    person = await supervised.person()
    reader = await supervised.system.client("ui")
    sourced = 0

    async def is_sourced() -> bool:
        events = reader.events(kind="objectives", key=SESSION, until_caught_up=True)
        return len([event async for event in events]) >= sourced

    await person.create(SESSION, "Do all of it")
    for number in range(20):
        sourced = number + 1
        # Sourcing skips what the bucket forgot before it was looked at.
        await wait_until(is_sourced, why="the events have it")
        await person.guide(SESSION, f"Hint {number}")

    found = [cause async for cause in person.history(SESSION)]
    back = await person.history_page(SESSION, before=15, limit=4)

    assert [cause.revision for cause in found] == list(range(1, 23))
    assert ([cause.revision for cause in back.entries], back.more) == ([11, 12, 13, 14], True)


@pytest.mark.parametrize("cursor", ["x", "b.1", "b.-1.0", "e.1.2.3", "b.9999999999999999999.1", "b.1.1\n"])
async def test_a_cursor_that_no_page_gave_is_refused(supervised: Supervised, cursor: str):
    person = await supervised.person()

    assert await refusal(person.history_page(SESSION, cursor)) is ErrorCode.INVALID_MESSAGE


@pytest.mark.parametrize(("cursor", "before"), [("", -1), ("b.0.0", 3)])
async def test_a_change_that_is_none_is_refused(supervised: Supervised, cursor: str, before: int):
    person = await supervised.person()

    assert await refusal(person.history_page(SESSION, cursor, before=before)) is ErrorCode.INVALID_MESSAGE


async def test_a_session_without_an_objective_has_no_history(supervised: Supervised):
    person = await supervised.person()

    page = await person.history_page("nowhere")

    assert (page.entries, page.more) == ((), False)
