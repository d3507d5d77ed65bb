"""The questions of the demo: every kind is asked, and an outcome that was not planned is a failure."""

import asyncio
from typing import Any

from tests.running import System
from turngate.demo.asking import Answering, asked
from turngate_protocol.question import OutcomeKind, tool_result
from turngate_protocol.question.call import CallAccepted, decide_call


def fact(session: str, outcome: str) -> dict[str, Any]:
    return {"kind": "outcome", "session": session, "outcome": outcome, "content": "{}"}


async def nobody() -> None:
    raise AssertionError("no runner was to be started again")


def test_every_kind_of_question_is_asked():
    questions = asked()
    requests = [decide_call(question.call, 1) for question in questions]

    assert all(isinstance(request, CallAccepted) for request in requests)
    assert {question.outcome for question in questions} == {
        OutcomeKind.ANSWERED,
        OutcomeKind.CHAT,
        OutcomeKind.CANCELLED,
    }
    assert any(answer.custom for question in questions for answer in question.answers)
    assert any(len(answer.selections) > 1 for question in questions for answer in question.answers)
    assert sum(question.restarts for question in questions) == 1


async def test_a_person_answers_what_a_runner_asks(system: System):
    restarted: list[str] = []

    async def restart() -> None:
        restarted.append("asker")

    runner = await system.client("asker", "asking")
    answering = Answering(await system.client("you"), restart, lambda *_: None, 0.0)
    playing = asyncio.create_task(answering.play())
    for question in asked():
        found = await runner.ask(question.call, question.session, policy=question.policy)
        assert found.pending is not None
        outcome = await runner.wait(found.pending.request, question.session, timeout_ms=20_000)
        answering.add(fact(question.session, outcome.kind.value) | {"content": tool_result(outcome).content})

    await asyncio.wait_for(playing, 20)

    assert answering.failures == []
    assert answering.unfinished() == []
    assert restarted == ["asker"]
    assert answering.summary()["count"] == len(asked())


async def test_an_outcome_that_was_not_planned_is_a_failure(system: System):
    answering = Answering(await system.client("you"), nobody, lambda *_: None, 0.0)

    answering.add(fact("ask-single", "cancelled"))
    answering.add({"kind": "error", "message": "asker: no server"})

    assert answering.failures == ["question of ask-single: cancelled, it should be answered", "asker: no server"]
    assert len(answering.unfinished()) == len(asked()) - 1
