"""A policy decides at its time, once, and never in place of a person; its timer means nothing beside the state."""

import asyncio
from typing import Any

import pytest

from tests.running import System, running
from tests.services.validation.asking import ask, freeform, picks
from tests.waiting import wait_until
from turngate.jetstream.direct import read_page
from turngate.jetstream.embedded import EmbeddedServer
from turngate.jetstream.timers import Timers
from turngate.runner import TurnClient
from turngate_contracts import codec
from turngate_contracts.errors import Refusal
from turngate_contracts.messages import SCHEMAS
from turngate_contracts.questions import QuestionDue
from turngate_contracts.topology import QUESTION_TIMER
from turngate_protocol.question import (
    CANCELLATION,
    EXPIRY,
    AnswerAfter,
    DecidedBy,
    ExpireAfter,
    OutcomeKind,
    WaitForEver,
    tool_result,
)

HOUR = 3_600_000


async def timers_left(system: System) -> int:
    info = await system.requester.api(f"STREAM.INFO.{system.subjects.stream('timers')}")
    return int(info["state"]["messages"])


async def kinds(client: TurnClient) -> list[str]:
    return [event.type async for event in client.events(kind="questions", until_caught_up=True)]


async def fire(system: System, due: QuestionDue | bytes, name: str = "t-1") -> None:
    """Have a timer arrive now, whatever the state is."""
    body = due if isinstance(due, bytes) else codec.encode(due)
    await Timers(system.requester, system.subjects).set(QUESTION_TIMER, name, 0, body, SCHEMAS[QuestionDue])


async def all_taken(system: System) -> None:
    async def nothing_left() -> bool:
        return await timers_left(system) == 0

    await wait_until(nothing_left, why="every timer has fired and was acknowledged")


async def test_it_expires_without_an_answer(system: System):
    runner = await system.client()
    request = await ask(runner, policy=ExpireAfter(200))

    outcome = await runner.wait(request, "s")

    assert (outcome.kind, outcome.decided_by, outcome.by) == (OutcomeKind.EXPIRED, DecidedBy.POLICY, "")
    assert outcome.at - outcome.asked_at >= 200
    assert outcome.resolution is None
    assert tool_result(outcome).content == EXPIRY


@pytest.mark.parametrize(
    ("policy", "kind"),
    [(AnswerAfter(200, (picks("Memory"),)), OutcomeKind.ANSWERED), (AnswerAfter(200, chat="Go."), OutcomeKind.CHAT)],
    ids=["answers", "chat"],
)
async def test_its_default_answer_is_recorded_as_the_policy_s(system: System, policy: AnswerAfter, kind: OutcomeKind):
    runner = await system.client()
    request = await ask(runner, policy=policy)

    outcome = await runner.wait(request, "s")

    assert (outcome.kind, outcome.decided_by, outcome.by) == (kind, DecidedBy.POLICY, "")
    assert outcome.resolution is not None
    assert (outcome.resolution.answers, outcome.resolution.chat) == (policy.answers, policy.chat)


async def test_one_that_waits_for_ever_sets_no_timer(system: System):
    runner = await system.client()
    await ask(runner, policy=WaitForEver())
    await wait_until(lambda: _listed(runner), why="its effects were done")

    assert await timers_left(system) == 0


@pytest.mark.parametrize("answers", [True, False], ids=["answered", "cancelled"])
async def test_a_decision_in_time_removes_the_timer(system: System, answers: bool):
    runner, person = await system.client(), await system.client("ann")
    request = await ask(runner, policy=ExpireAfter(HOUR))

    async def is_set() -> bool:
        return await timers_left(system) == 1

    await wait_until(is_set, why="the timer is set")
    if answers:
        await person.questions.resolve("s", request, answers=[picks("Disk")])
    else:
        decided = await person.questions.reject("s", request)
        assert tool_result(decided.outcome).content == CANCELLATION

    await all_taken(system)
    await wait_until(lambda: _has(runner, "turngate.question.settled"), why="that is recorded")


async def test_a_timer_that_fires_twice_decides_once(system: System):
    runner = await system.client()
    request = await ask(runner, policy=ExpireAfter(1))
    outcome = await runner.wait(request, "s")
    due = QuestionDue("s", request.id, request.schema_digest, outcome.asked_at + 1)
    await wait_until(lambda: _has(runner, "turngate.question.settled"), why="the first one is done with")

    await fire(system, due)

    await all_taken(system)
    assert (await kinds(runner)).count("turngate.question.expired") == 1
    assert (await runner.questions.get("s", request.id)).outcome == (await _asked_again(runner))


async def test_a_timer_beside_an_answer_changes_nothing(system: System):
    runner, person = await system.client(), await system.client("ann")
    request = await ask(runner)
    await person.questions.resolve("s", request, answers=[picks("Disk")])

    await fire(system, QuestionDue("s", request.id, request.schema_digest, 1))

    await all_taken(system)
    found = await runner.questions.get("s", request.id)
    assert found.outcome is not None
    assert found.outcome.by == "ann"


async def test_a_timer_of_another_time_does_not_hurry_a_question(system: System):
    runner = await system.client()
    request = await ask(runner, policy=ExpireAfter(HOUR))

    await fire(system, QuestionDue("s", request.id, request.schema_digest, 1))

    async def only_its_own() -> bool:
        return await timers_left(system) == 1

    await wait_until(only_its_own, why="the foreign timer is acknowledged, its own waits")
    assert (await runner.questions.get("s")).pending is not None


@pytest.mark.parametrize(
    "due",
    [
        QuestionDue("unknown", "q-1", "0" * 64, 1),
        QuestionDue("s", "q-other", "0" * 64, 1),
        QuestionDue("s", "", "", -1),
    ],
    ids=str,
)
async def test_a_timer_for_nothing_that_waits_is_acknowledged(system: System, due: QuestionDue):
    runner = await system.client()
    await ask(runner)

    await fire(system, due)

    await all_taken(system)
    assert (await runner.questions.get("s")).pending is not None


@pytest.mark.parametrize("body", [b"", b"hello", b"\xff", b"{}", b'{"session":"*"}'], ids=repr)
async def test_a_timer_that_can_not_be_read_is_buried(system: System, body: bytes):
    await fire(system, body)

    letters = await wait_until(lambda: _letters(system), why="it is in the dead letters")

    assert len(letters) == 1
    await all_taken(system)


async def test_a_timer_whose_session_is_no_id_is_buried(system: System):
    await fire(system, QuestionDue("*", "q-1", "0" * 64, 1))

    await wait_until(lambda: _letters(system), why="it is in the dead letters")


@pytest.mark.parametrize("offset_ms", [-HOUR, -700, 700, HOUR])
async def test_a_clock_that_is_wrong_makes_the_wait_neither_shorter_nor_much_longer(
    nats_server: EmbeddedServer, namespace: str, offset_ms: int
):
    async with running(nats_server.url, namespace, clock_offset_ms=offset_ms) as system:
        runner = await system.client()
        began = asyncio.get_running_loop().time()
        request = await ask(runner, policy=ExpireAfter(300))

        outcome = await runner.wait(request, "s")

        assert outcome.at - outcome.asked_at >= 300
        assert 0.3 <= asyncio.get_running_loop().time() - began < 20


async def test_a_next_question_has_a_timer_of_its_own(system: System):
    runner, person = await system.client(), await system.client("ann")
    first = await ask(runner, policy=ExpireAfter(HOUR))
    await person.questions.reject("s", first)

    second = await ask(runner, call=freeform("call-2"), policy=ExpireAfter(100))

    assert (await runner.wait(second, "s")).kind is OutcomeKind.EXPIRED
    assert (await runner.wait(first, "s")).kind is OutcomeKind.CANCELLED
    await all_taken(system)


async def test_a_question_asked_by_another_runner_keeps_its_time(system: System):
    first, last = await system.client("runner-1"), await system.client("runner-2")
    asked = await first.ask(freeform(), "s", policy=ExpireAfter(400))
    moved = await last.ask(freeform(), "s", policy=WaitForEver())

    assert asked.pending is not None
    assert moved.pending is not None
    assert moved.pending.expires_at == asked.pending.expires_at
    assert (await last.wait(moved.pending.request, "s")).kind is OutcomeKind.EXPIRED


async def test_the_inbox_forgets_what_expired(system: System):
    runner = await system.client()
    await ask(runner, policy=ExpireAfter(300))
    await wait_until(lambda: _listed(runner), why="it is listed")

    await wait_until(lambda: _unlisted(runner), why="it is listed no more")


async def _asked_again(client: TurnClient) -> Any:
    found = await client.questions.get("s")
    return found.outcome


async def _has(client: TurnClient, kind: str) -> bool:
    return kind in await kinds(client)


async def _listed(client: TurnClient) -> bool:
    return bool((await client.inbox()).entries)


async def _unlisted(client: TurnClient) -> bool:
    return not (await client.inbox()).entries


async def _letters(system: System) -> Any:
    subjects = f"{system.settings.namespace}.dead.>"
    try:
        return (await read_page(system.requester, system.subjects.stream("dead"), 0, 256, subjects))[0]
    except Refusal:
        return []
