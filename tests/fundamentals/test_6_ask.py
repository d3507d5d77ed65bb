"""6. An agent asks its user something, and the answer comes back to it, whatever restarts in between.

The model calls `ask_user`; its runner asks, and waits. People find the question in the inbox, whoever's it is. It is
answered once: who comes later learns who was first.
"""

import json

import pytest

from tests.running import System
from tests.waiting import wait_until
from turngate.runner import TurnClient
from turngate_contracts.errors import ErrorCode, Refusal
from turngate_protocol.inbox import InboxEntry
from turngate_protocol.question import (
    Answer,
    AnswerAfter,
    DecidedBy,
    Lineage,
    OutcomeKind,
    Request,
    ToolCall,
    tool_result,
)

ARGUMENTS = {
    "questions": [
        {
            "header": "Store",
            "question": "Where shall the sessions be kept?",
            "options": [
                {"label": "Postgres", "description": "They survive a restart"},
                {"label": "Memory", "description": "Fast, and gone at exit"},
            ],
        }
    ]
}
CALL = ToolCall("ask_user", "call-1", json.dumps(ARGUMENTS))


async def test_a_question_waits_in_the_inbox_until_it_is_answered(system: System):
    runner, person = await system.client("runner-1"), await system.client("ann")
    await runner.ask(CALL, "session-1", lineage=Lineage("release-31", "task-7"))
    await wait_until(lambda: _waiting(person), why="the question is listed")

    (entry,) = await _waiting(person)
    assert entry.title == "Where shall the sessions be kept?"
    assert (entry.parent_session, entry.task) == ("release-31", "task-7")

    await person.questions.resolve("session-1", await _question(person), answers=[Answer(("Postgres",))])
    await wait_until(lambda: _nobody_waits(person), why="the answered question is listed no more")


async def test_the_agent_gets_the_answer_as_its_tool_call_s_result(system: System):
    runner, person = await system.client("runner-1"), await system.client("ann")
    await runner.ask(CALL, "session-1")

    question = await _question(person)
    await person.questions.resolve("session-1", question, answers=[Answer(("Postgres",))])

    outcome = await runner.wait(question, "session-1")
    assert outcome.by == "ann"
    assert tool_result(outcome).content == '{"answers":[{"selections":["Postgres"]}]}'


async def test_a_person_may_also_write_an_answer_of_their_own_or_chat(system: System):
    runner, person = await system.client("runner-1"), await system.client("ann")
    await runner.ask(CALL, "session-1")

    question = await _question(person)
    await person.questions.resolve("session-1", question, chat="What would you do?")

    outcome = await runner.wait(question, "session-1")
    assert outcome.kind is OutcomeKind.CHAT


async def test_the_first_answer_wins_and_the_second_learns_who_was_first(system: System):
    runner, ann, bob = await system.client("runner-1"), await system.client("ann"), await system.client("bob")
    await runner.ask(CALL, "session-1")
    question = await _question(bob)
    await ann.questions.resolve("session-1", question, answers=[Answer(("Postgres",))])

    with pytest.raises(Refusal) as late:
        await bob.questions.resolve("session-1", question, answers=[Answer(("Memory",))])

    assert late.value.code is ErrorCode.ALREADY_RESOLVED
    assert late.value.details["by"] == "ann"


async def test_a_runner_that_was_restarted_finds_its_question_again_and_its_answer(system: System):
    runner, person = await system.client("runner-1"), await system.client("ann")
    await runner.ask(CALL, "session-1")
    await runner.close()
    await person.questions.resolve("session-1", await _question(person), answers=[Answer(("Memory",))])

    restarted = await system.client("runner-1")
    found = await restarted.reconcile([CALL], "session-1")

    assert found is not None
    assert found.outcome is not None
    assert found.outcome.resolution is not None
    assert found.outcome.resolution.answers == (Answer(("Memory",)),)


async def test_a_policy_may_decide_when_nobody_does(system: System):
    runner = await system.client("runner-1")
    policy = AnswerAfter(100, (Answer(("Postgres",)),))

    asked = await runner.ask(CALL, "session-1", policy=policy)

    assert asked.pending is not None
    outcome = await runner.wait(asked.pending.request, "session-1")
    assert outcome.kind is OutcomeKind.ANSWERED
    assert outcome.decided_by is DecidedBy.POLICY


async def _waiting(person: TurnClient) -> tuple[InboxEntry, ...]:
    return (await person.inbox(kind="question")).entries


async def _nobody_waits(person: TurnClient) -> bool:
    return not await _waiting(person)


async def _question(person: TurnClient) -> Request:
    found = await person.questions.get("session-1")
    assert found.pending is not None
    return found.pending.request
