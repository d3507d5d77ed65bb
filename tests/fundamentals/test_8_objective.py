"""8. An objective that takes many runs: worked on, challenged, proven, and steered by people at any time.

A person gives a session an objective. Runners offer their agents: a worker does the next part, and when it claims that
all is done, a critic looks for what is missing and an audit proves the rest. Nobody waits in a process for any of it:
the objective is data, and goes on whoever dies.
"""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests import esm_answers as answers
from tests.supervised import Supervised, supervising
from turngate.jetstream.embedded import EmbeddedServer
from turngate_contracts.errors import ErrorCode, Refusal

SCENARIO = {
    "default": [
        {"worker": {"response": answers.CONTINUE, "tools": ["bash", "edit"]}},
        {
            "worker": {"response": answers.CANDIDATE, "tools": ["bash"]},
            "critic": {"response": answers.PASS, "tools": ["read"]},
            "audit": {"response": answers.PASS, "tools": ["read", "grep"]},
        },
    ]
}


@pytest_asyncio.fixture
async def supervised(nats_server: EmbeddedServer, namespace: str) -> AsyncIterator[Supervised]:
    async with supervising(nats_server.url, namespace) as made:
        yield made


async def test_an_objective_is_driven_to_its_proven_end(supervised: Supervised):
    person = await supervised.person("ann")
    await person.create("session-1", "Move the archive, and prove that nothing is missing.")

    await supervised.host(SCENARIO)
    await supervised.until_status("session-1", "complete")

    found = await person.get("session-1")
    assert found.activity.kind == "complete"
    assert "Status: complete" in found.text


async def test_the_history_tells_who_did_what(supervised: Supervised):
    person = await supervised.person("ann")
    await supervised.host(SCENARIO)
    await person.create("session-1", "Move the archive.")
    await supervised.until_status("session-1", "complete")

    story = [(c.role, c.verdict) async for c in person.history("session-1") if c.type == "role_finished"]

    assert story == [
        ("worker", "continue"),
        ("worker", "complete_candidate"),
        ("critic", "pass"),
        ("audit", "pass"),
    ]


async def test_without_a_runner_it_waits_and_costs_nothing(supervised: Supervised):
    person = await supervised.person("ann")

    await person.create("session-1", "Move the archive.")

    found = await person.get("session-1")
    assert (found.activity.kind, found.activity.role, found.runners) == ("waiting_for_runner", "worker", 0)


async def test_people_pause_guide_and_resume(supervised: Supervised):
    person = await supervised.person("ann")
    await person.create("session-1", "Move the archive.")

    await person.pause("session-1")
    await person.guide("session-1", "Leave the year 2011 for the end.")
    await person.resume("session-1")

    runner = await supervised.runner()
    request = await runner.claim("session-1")
    assert "Leave the year 2011 for the end." in request.prompt


async def test_an_edit_stops_what_runs_for_the_old_text(supervised: Supervised):
    person = await supervised.person("ann")
    runner = await supervised.runner()
    await person.create("session-1", "Move the archive.")
    request = await runner.claim("session-1")

    await person.edit("session-1", "Delete the archive.")
    await runner.report(request, answers.CANDIDATE)

    state = await supervised.until("session-1", lambda s: s.cause is not None and s.cause.type == "result_ignored")
    assert state.objective is not None
    assert state.objective.status == "active"


async def test_a_session_has_one_objective_at_a_time(supervised: Supervised):
    person = await supervised.person("ann")
    await person.create("session-1", "Move the archive.")

    with pytest.raises(Refusal) as refused:
        await person.create("session-1", "Something else.")

    assert refused.value.code is ErrorCode.OBJECTIVE_EXISTS
