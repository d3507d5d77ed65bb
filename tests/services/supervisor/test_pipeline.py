"""Objectives from their creation to their end, with scripted agents: proven, rejected, blocked, limited, paused."""

import pytest

from tests import esm_answers as answers
from tests.supervised import Supervised
from tests.waiting import wait_until
from turngate_protocol.esm.objective import Status
from turngate_protocol.esm.state import CauseType

SESSION = "session-1"


async def kinds(supervised: Supervised) -> list[str]:
    person = await supervised.person("reader")
    return [cause.type.value async for cause in person.history(SESSION)]


async def test_an_objective_is_worked_on_challenged_and_proven(supervised: Supervised):
    await supervised.host({"default": [answers.GOES_ON, answers.COMPLETES]})
    person = await supervised.person()

    await person.create(SESSION, "Do all of it")
    state = await supervised.until_status(SESSION, "complete")

    assert state.objective is not None
    assert state.objective.tokens_used == 10 + 10 + 5 + 5
    assert state.runs == 2
    assert await kinds(supervised) == [
        "created",
        *("continuation_started", "role_started", "role_finished"),
        *("continuation_started", *("role_started", "role_finished") * 3),
    ]


async def test_a_claim_that_the_critic_rejects_is_worked_on_again(supervised: Supervised):
    await supervised.host({"default": [answers.COMPLETES | {"critic": answers.FAILS}, answers.COMPLETES]})
    person = await supervised.person()

    await person.create(SESSION, "Do all of it")
    state = await supervised.until_status(SESSION, "complete")

    rejected = [cause async for cause in person.history(SESSION) if cause.verdict == "fail"]
    assert [(cause.role, cause.status) for cause in rejected] == [("critic", "active")]
    assert state.runs == 2


async def test_three_runs_with_the_same_blocker_wait_for_a_person(supervised: Supervised):
    await supervised.host({"default": [answers.COMPLETES | {"worker": answers.BLOCKS}]})
    person = await supervised.person()
    client = await supervised.system.client("bob")

    await person.create(SESSION, "Do all of it")
    state = await supervised.until_status(SESSION, "blocked")

    assert state.runs == 3
    page = await wait_until(lambda: client.inbox(kind="objective"), why="the inbox answers")
    (entry,) = (await wait_until(lambda: _entries(client), why="the objective waits")).entries
    assert (entry.kind, entry.session, entry.title) == ("objective", SESSION, "blocked: there is no key")
    assert page.more is False


async def _entries(client):
    page = await client.inbox(kind="objective")
    return page if page.entries else None


async def test_the_inbox_entry_goes_when_a_person_resumes(supervised: Supervised):
    runs = [answers.COMPLETES | {"worker": answers.BLOCKS}] * 3 + [answers.COMPLETES]
    await supervised.host({"default": runs})
    person = await supervised.person()
    client = await supervised.system.client("bob")
    await person.create(SESSION, "Do all of it")
    await supervised.until_status(SESSION, "blocked")
    await wait_until(lambda: _entries(client), why="the objective waits")

    await person.resume(SESSION)

    state = await supervised.until_status(SESSION, "complete")
    await wait_until(lambda: _nothing(client), why="nobody waits any more")
    state = await supervised.until(SESSION, lambda s: not s.halted_before, "it is recorded that the entry went")
    assert state.halt is None


async def _nothing(client):
    return not (await client.inbox(kind="objective")).entries


@pytest.mark.parametrize(
    ("failure", "status"),
    [
        ({"kind": "usage_limit", "message": "no more"}, Status.USAGE_LIMITED),
        ({"kind": "error", "message": "429 too many requests"}, Status.USAGE_LIMITED),
        ({"kind": "error", "message": "it broke"}, Status.PAUSED),
        ({"kind": "cancelled", "message": "somebody stopped it"}, Status.PAUSED),
    ],
)
async def test_a_failure_that_would_come_again_waits_for_a_person(supervised: Supervised, failure, status):
    await supervised.host({"default": [{"worker": {"failure": failure, "tokens": 9}}, answers.COMPLETES]})
    person = await supervised.person()

    await person.create(SESSION, "Do all of it")
    state = await supervised.until_status(SESSION, status.value)

    assert state.objective is not None
    assert state.objective.tokens_used == 9  # usage of a failed role counts
    assert state.runs == 1
    await person.resume(SESSION)
    await supervised.until_status(SESSION, "complete")


@pytest.mark.parametrize("kind", ["incomplete", "transport"])
async def test_a_failure_that_a_retry_can_help_is_tried_again(supervised: Supervised, kind):
    await supervised.host({"default": [{"worker": {"failure": kind}}, answers.COMPLETES]})
    person = await supervised.person()

    await person.create(SESSION, "Do all of it")
    state = await supervised.until_status(SESSION, "complete")

    assert state.runs == 2


async def test_a_role_that_met_its_deadline_is_looked_at_by_an_observer(supervised: Supervised):
    await supervised.host(
        {"default": [{"worker": {"failure": "deadline"}, "recovery": answers.RESUMES}, answers.COMPLETES]}
    )
    person = await supervised.person()

    await person.create(SESSION, "Do all of it")
    await supervised.until_status(SESSION, "complete")

    assert (await kinds(supervised))[:6] == [
        *("created", "continuation_started", "role_started", "role_failed"),
        *("recovery_started", "recovery_finished"),
    ]


async def test_guidance_reaches_the_next_role_and_is_consumed_by_it(supervised: Supervised):
    person = await supervised.person()
    hand = await supervised.runner()
    await person.create(SESSION, "Do all of it")
    first = await hand.claim(SESSION)
    await person.guide(SESSION, "Mind the <gap> & the step")
    assert first.guidance == 0

    await hand.report(first, answers.CONTINUE)
    second = await hand.claim(SESSION)
    assert second.guidance == 1
    assert "Mind the <gap> & the step" in second.prompt
    assert len((await supervised.state(SESSION)).guidance) == 1
    await hand.report(second, answers.CONTINUE)

    state = await supervised.until(SESSION, lambda s: s.runs == 3)
    assert state.guidance == ()


async def test_a_run_without_progress_rests_and_each_further_one_longer(supervised: Supervised):
    await supervised.host({"default": [{"worker": {"response": "no report at all", "tools": 1}}]})
    person = await supervised.person()

    await person.create(SESSION, "Do all of it")
    state = await supervised.until(SESSION, lambda s: s.runs == 5, "it goes on")

    rejected = [cause async for cause in person.history(SESSION) if cause.type is CauseType.ROLE_FINISHED]
    started = [cause async for cause in person.history(SESSION) if cause.type is CauseType.CONTINUATION_STARTED]
    delays = [after.at - before.at for before, after in zip(rejected, started[1:], strict=False)]
    assert [delay >= least for delay, least in zip(delays, (20, 40, 80, 160), strict=False)] == [True] * 4
    assert state.objective is not None
    assert state.objective.status is Status.ACTIVE
