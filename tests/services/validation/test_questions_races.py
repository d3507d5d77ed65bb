"""However commands meet, a question is decided once, everybody learns the same, and a repeat is recognised."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from tests.running import System
from tests.services.validation.asking import ask, freeform, picks, structured
from tests.waiting import wait_until
from turngate.jetstream.connect import connect
from turngate.jetstream.request import Requester
from turngate.jetstream.store import Store
from turngate.runner import TurnClient
from turngate.validation.service import ValidationService
from turngate_contracts import codec
from turngate_contracts.errors import ErrorCode, Refusal
from turngate_contracts.questions import QuestionOutcome
from turngate_protocol.question import (
    DecidedBy,
    ExpireAfter,
    Lineage,
    Outcome,
    OutcomeKind,
    SessionQuestions,
    request_count,
    wants_something,
)

SESSIONS = [f"session-{number}" for number in range(20)]
DECISIONS = frozenset(f"turngate.question.{kind}" for kind in OutcomeKind)


class Mail:
    """The outcomes that arrive in a runner's mailbox."""

    def __init__(self) -> None:
        self.outcomes: list[QuestionOutcome] = []

    def on_mail(self, _subject: bytes, _reply: bytes, body: bytes, _head: bytes) -> None:
        self.outcomes.append(codec.decode(body, QuestionOutcome, "a QuestionOutcome"))


@pytest_asyncio.fixture
async def second(system: System) -> AsyncIterator[ValidationService]:
    """A second validation process's share, on a connection of its own: requests go to either."""
    async with contextlib.AsyncExitStack() as stack:
        connection = await connect(system.settings.nats_url)
        stack.push_async_callback(connection.close)
        requester = await Requester.start(connection)
        stack.push_async_callback(requester.stop)
        service = ValidationService(connection, requester, system.settings)
        await service.start()
        stack.push_async_callback(service.stop)
        yield service


async def decisions(client: TurnClient) -> list[tuple[str, str]]:
    """The decisions among the events, each with its session."""
    events = [event async for event in client.events(kind="questions", until_caught_up=True)]
    return [(event.key, event.type) for event in events if event.type in DECISIONS]


async def test_of_many_answers_at_the_same_instant_one_wins_and_the_others_learn_who(
    system: System, second: ValidationService
):
    runner = await system.client()
    people = [await system.client(name) for name in ("ann", "bob", "cho", "dee")]
    requests = {session: await ask(runner, session) for session in SESSIONS}

    async def answer(person: TurnClient, session: str, label: str) -> Any:
        try:
            return await person.questions.resolve(session, requests[session], answers=[picks(label)])
        except Refusal as refusal:
            return refusal

    labels = ("Disk", "Memory", "Both", "Disk")
    results = await asyncio.gather(
        *(answer(p, s, label) for s in SESSIONS for p, label in zip(people, labels, strict=True))
    )

    for place, session in enumerate(SESSIONS):
        of_session = results[4 * place : 4 * place + 4]
        winners = [r for r in of_session if isinstance(r, QuestionOutcome)]
        losers = [r for r in of_session if isinstance(r, Refusal)]
        assert len(winners) == 1
        assert {r.code for r in losers} == {ErrorCode.ALREADY_RESOLVED}
        assert {r.details["by"] for r in losers} == {winners[0].outcome.by}
        assert await outcome_of(runner, session, requests[session].id) == winners[0].outcome
    await wait_until(lambda: _count(runner, len(SESSIONS)), why="each decision is an event")
    assert sorted(session for session, _ in await decisions(runner)) == sorted(SESSIONS)


async def test_a_cancellation_against_an_answer_leaves_one_of_them(system: System, second: ValidationService):
    runner, ann, bob = await system.client(), await system.client("ann"), await system.client("bob")
    requests = {session: await ask(runner, session) for session in SESSIONS}

    results = await asyncio.gather(
        *(
            command
            for session, request in requests.items()
            for command in (
                ann.questions.resolve(session, request, answers=[picks("Disk")]),
                bob.questions.reject(session, request),
            )
        ),
        return_exceptions=True,
    )

    for place, session in enumerate(SESSIONS):
        pair = results[2 * place : 2 * place + 2]
        (winner,) = (r for r in pair if isinstance(r, QuestionOutcome))
        (loser,) = (r for r in pair if isinstance(r, Refusal))
        assert loser.details["kind"] == winner.outcome.kind
        assert await outcome_of(runner, session, requests[session].id) == winner.outcome


async def test_answers_around_the_time_of_expiry_leave_one_outcome_each(system: System, second: ValidationService):
    runner, person = await system.client(), await system.client("ann")
    requests = {session: await ask(runner, session, policy=ExpireAfter(300)) for session in SESSIONS}
    waits = [asyncio.create_task(runner.wait(request, session)) for session, request in requests.items()]

    async def answer(session: str) -> bool:
        # The one that expires first says that the others are about to.
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        try:
            await person.questions.resolve(session, requests[session], answers=[picks("Disk")])
        except Refusal as refusal:
            late = refusal.code
        else:
            return True
        assert late is ErrorCode.ALREADY_RESOLVED
        return False

    answered = await asyncio.gather(*map(answer, SESSIONS))
    outcomes = await asyncio.gather(*waits)

    assert [outcome.kind is OutcomeKind.ANSWERED for outcome in outcomes] == answered
    assert [outcome.decided_by is DecidedBy.PERSON for outcome in outcomes] == answered
    await wait_until(lambda: _count(runner, len(SESSIONS)), why="each decision is an event")
    assert sorted(session for session, _ in await decisions(runner)) == sorted(SESSIONS)


async def test_the_same_operation_again_has_the_same_result_and_tells_the_runner_once(system: System):
    runner, person, mail = await system.client(), await system.client("ann"), Mail()
    await system.connection.listen(system.subjects.mailbox("runner-1", "outcome"), mail.on_mail)
    request = await ask(runner)

    first = await person.questions.resolve("s", request, answers=[picks("Disk")], op="op-1")
    again = await person.questions.resolve("s", request, answers=[picks("Disk")], op="op-1")

    assert (first.repeated, again.repeated) == (False, True)
    assert again.outcome == first.outcome
    await system.connection.flush()
    assert [mailed.outcome for mailed in mail.outcomes] == [first.outcome]


async def test_the_identical_call_again_gets_the_recorded_outcome(system: System):
    runner, person = await system.client(), await system.client("ann")
    request = await ask(runner)
    decided = await person.questions.resolve("s", request, answers=[picks("Disk")])
    await ask(runner, call=freeform("call-2"))

    asked = await runner.ask(structured(), "s")

    assert asked.pending is None
    assert asked.outcome is not None
    assert (asked.outcome.resolution, asked.outcome.by) == (decided.outcome.resolution, "ann")


async def test_different_questions_at_once_leave_one_waiting(system: System, second: ValidationService):
    runner = await system.client()

    asked = await asyncio.gather(*(runner.ask(structured(f"call-{n}"), "s") for n in range(10)))

    (waiting,) = (a.pending for a in asked if a.pending is not None)
    denied = [a.denied for a in asked if a.denied is not None]
    assert {d.waiting_for.request_id for d in denied if d.waiting_for} == {waiting.request.id}
    assert len(denied) == 9


async def test_the_identical_call_at_once_is_asked_once(system: System, second: ValidationService):
    runner = await system.client()

    asked = await asyncio.gather(*(runner.ask(structured(), "s") for _ in range(10)))

    assert len({a.pending.request.id for a in asked if a.pending}) == 1
    assert len({a.pending.asked_at for a in asked if a.pending}) == 1
    assert not [a for a in asked if a.pending is None]


async def test_the_outcome_goes_to_the_runner_that_asked_last(system: System):
    first, last, person = await system.client("runner-1"), await system.client("runner-2"), await system.client("ann")
    mail = {name: Mail() for name in ("runner-1", "runner-2")}
    for name, box in mail.items():
        await system.connection.listen(system.subjects.mailbox(name, "outcome"), box.on_mail)
    await ask(first)
    request = await ask(last)

    await person.questions.reject("s", request)

    outcome = await last.wait(request, "s")
    assert outcome.kind is OutcomeKind.CANCELLED
    await wait_until(lambda: mail["runner-2"].outcomes, why="the last one is told")
    assert not mail["runner-1"].outcomes


async def test_sessions_that_ask_and_are_answered_quickly_leave_nothing_behind(
    system: System, second: ValidationService
):
    runner, person = await system.client(), await system.client("ann")

    async def one(session: str) -> None:
        for number in range(10):
            request = await ask(runner, session, structured(f"call-{number}"), policy=ExpireAfter(3_600_000))
            await person.questions.resolve(session, request, answers=[picks("Disk")])

    await asyncio.gather(*map(one, SESSIONS[:8]))

    await wait_until(lambda: _nothing_is_left(system, person, SESSIONS[:8]), why="nothing is listed and nothing wanted")


async def test_whoever_decides_is_the_caller_of_the_request(system: System):
    runner, person = await system.client(), await system.client("ann")
    request = await ask(runner, lineage=Lineage("parent", "task-1"), turn=3)

    decided = await person.questions.resolve("s", request, chat="Let us talk.")

    outcome = decided.outcome
    assert (outcome.by, outcome.kind, outcome.decided_by) == ("ann", OutcomeKind.CHAT, DecidedBy.PERSON)
    assert outcome.at >= outcome.asked_at > 0
    assert (outcome.lineage, outcome.turn, outcome.runner) == (Lineage("parent", "task-1"), 3, "runner-1")


async def test_the_story_of_a_question_is_in_the_events(system: System):
    runner, person = await system.client(), await system.client("ann")
    request = await ask(runner)
    await person.questions.resolve("s", request, answers=[picks("Disk")])

    await wait_until(lambda: _settled(runner), why="the reconciler recorded that nothing is shown any more")

    events = [event async for event in runner.events(kind="questions", until_caught_up=True)]
    states = [codec.decode(event.data, SessionQuestions, "a state") for event in events]
    assert [event.type for event in events] == [
        "turngate.question.asked",
        "turngate.question.answered",
        "turngate.question.settled",
    ]
    assert [state.cause.actor for state in states] == ["runner-1", "ann", "turngate"]
    assert states[0].pending is not None
    assert request_count(states[0].pending.request) == 1


@pytest.mark.parametrize("request_id", ["q-unknown", "", "x" * 600])
async def test_what_a_session_knows_can_be_asked_for(system: System, request_id: str):
    runner, person = await system.client(), await system.client("ann")
    first = await ask(runner)
    await person.questions.reject("s", first)
    second_request = await ask(runner, call=freeform("call-2"))

    found = await runner.questions.get("s", request_id)

    assert found.pending is not None
    assert found.pending.request == second_request
    if request_id:
        assert found.outcome is None
    else:
        assert found.outcome is not None
        assert found.outcome.request_id == first.id


async def outcome_of(client: TurnClient, session: str, request_id: str) -> Outcome | None:
    """The recorded outcome, without its request, as it goes over the wire elsewhere."""
    found = await client.questions.get(session, request_id)
    asked = found.outcome
    return (
        None
        if asked is None
        else codec.decode(codec.encode(codec.to_builtins(asked) | {"request": None}), Outcome, "an outcome")
    )


async def _nothing_is_left(system: System, person: TurnClient, sessions: list[str]) -> bool:
    # A timer that a late reconciler set again may be left, and means nothing when it fires.
    store = Store(system.requester, system.subjects, "questions", "session_questions.v1")
    states = [codec.decode((await store.load(s)).value or b"", SessionQuestions, "a state") for s in sessions]
    wanted = [state.session for state in states if wants_something(state)]
    return not wanted and not (await person.inbox()).entries


async def _count(client: TurnClient, wanted: int) -> bool:
    return len(await decisions(client)) >= wanted


async def _settled(client: TurnClient) -> bool:
    events = [event.type async for event in client.events(kind="questions", until_caught_up=True)]
    return "turngate.question.settled" in events
