"""What the validation service does: verdicts, endings, cards, prompts, questions, and what it can't use."""

import asyncio
from collections import Counter
from collections.abc import Awaitable
from functools import partial
from typing import Final

from tests.fundamentals.reports import CARD, DONE, UNCHECKED
from tests.system.faults.walk.scene import PRESENCE_MS, Scene
from tests.system.ledger import Ledger
from tests.system.nothing_lost import (
    assert_events_tell_all,
    assert_inbox_lists_what_waits,
    assert_leftovers_are_decided,
    assert_newest_is_the_replay,
    assert_one_verdict_each,
    assert_prompts_are_there_once,
)
from tests.system.patience import PATIENCE_MS, patiently
from tests.waiting import wait_until
from turngate.jetstream.consume import ConsumeLoop, Delivery
from turngate.jetstream.provision import provision
from turngate.jetstream.store import Store
from turngate.runner import TurnClient
from turngate_contracts import codec
from turngate_contracts.errors import ErrorCode, Refusal
from turngate_contracts.messages import SCHEMAS, GetSchema, ReportSchema
from turngate_contracts.sessions import ListSessions, SessionsPage
from turngate_contracts.subjects import Subjects
from turngate_contracts.topology import Durability, Topology
from turngate_protocol.question import ExpireAfter, OutcomeKind, Request, ToolCall, reconcile
from turngate_protocol.question.policy import Policy, WaitForEver
from turngate_protocol.question.session import SessionQuestions
from turngate_protocol.report.session import EndingOutcome, Outcome

EXPIRY_MS: Final = 300
CROWD: Final = 48
FOR_EVER: Final = WaitForEver()
DECIDED: Final = {f"turngate.question.{kind}" for kind in OutcomeKind}


async def usual(scene: Scene, tag: str) -> None:
    """Everything that goes well, or that is told to be wrong."""
    runner, person = await _clients(scene)
    await asyncio.gather(
        _card(scene.ledger, runner, person, f"{tag}-card"),
        _dismissed(scene.ledger, runner, person, f"{tag}-dismissed"),
        _silent(scene.ledger, runner, f"{tag}-silent"),
        _reminded(scene.ledger, runner, f"{tag}-reminded"),
        _conflict(scene.ledger, runner, f"{tag}-conflict"),
        _resolved(scene, runner, person, f"{tag}-resolved"),
        _rejected(scene, runner, person, f"{tag}-rejected"),
        _expires(scene, runner, f"{tag}-expired", ExpireAfter(EXPIRY_MS)),
        _asked(runner),
    )


async def spoiled(scene: Scene, tag: str) -> None:
    """What can't be read, in each queue; and a report that was in hand too often to be trusted."""
    s, runner = scene.subjects, (await _clients(scene))[0]
    for subject in (s.turn_report(runner.pool, runner.identity, f"{tag}-bad"), s.timer_due("question", f"{tag}-bad")):
        ack = await patiently(partial(scene.requester.publish, subject, b'{"turn":'))
        scene.notes.setdefault("poison", set()).add((ack.stream, ack.seq))
    await scene.ledger.report(runner, f"{tag}-suspect", 1, 1, _json(DONE))


async def before_spoiled(scene: Scene, tag: str) -> None:
    """Have a report delivered some times before any service sees it."""
    runner, _ = await _clients(scene)
    task = asyncio.create_task(scene.ledger.report(runner, f"{tag}-doubted", 1, 1, _json(DONE)))
    scene.notes.setdefault("doubted", []).append(task)
    await deliver(scene, scene.subjects.stream("turns"), "validation", 4)


async def refused(scene: Scene, tag: str) -> None:
    """Nothing can be stored for a while: what was taken is given back, and comes again."""
    runner, person = await _clients(scene)
    session = f"{tag}-late"
    async with scene.refusing(scene.subjects.bucket_stream("turns")):
        report = asyncio.create_task(scene.ledger.report(runner, session, 1, 1, _json(CARD)))
        await asyncio.sleep(1)
    await report
    async with scene.refusing(scene.subjects.stream("work"), scene.subjects.bucket_stream("inbox")):
        answered = asyncio.create_task(scene.ledger.answer(person, session, 1, 1))
        asked = asyncio.create_task(_resolved(scene, runner, person, f"{tag}-later"))
        await asyncio.sleep(1)
    await asyncio.gather(answered, asked)


async def crowd(scene: Scene, tag: str) -> None:
    """Many sessions at once, so that their saves are stored together where the server syncs each write."""
    runner, _ = await _clients(scene)
    sessions = [f"{tag}-crowd-{number}" for number in range(CROWD)]
    await asyncio.gather(*(scene.ledger.report(runner, session, 1, 1, _json(DONE)) for session in sessions))


async def before_behind(scene: Scene, tag: str) -> None:
    """Have a service ask whose clock is right."""
    asker = await scene.clean("validation")
    runner, _ = await _clients(scene)
    await _ask(runner, f"{tag}-behind", ExpireAfter(1_000))
    await scene.drain(asker)


async def behind(scene: Scene, tag: str) -> None:
    """A question is due by the server's clock, and not by the service's."""
    runner, _ = await _clients(scene)
    await _expires(scene, runner, f"{tag}-behind", ExpireAfter(1_000))


async def provisioned(scene: Scene, tag: str) -> None:
    """A service that makes the topology of a namespace goes on where another one ended."""
    namespace = f"{scene.subjects.namespace}{tag}"
    await scene.drain(await scene.start_and_wait("validation", TURNGATE_NAMESPACE=namespace))
    topology = Topology(Subjects(namespace), Durability.RELAXED, presence_ms=PRESENCE_MS)
    left = await provision(scene.requester, topology)
    assert (left.created, left.updated) == ((), ()), f"the topology was not whole: {left}"


async def settled(scene: Scene) -> int:
    """Settle the accounts; returns how many operations were acknowledged."""
    observer, ledger = scene.observer, scene.ledger
    await asyncio.gather(*scene.notes.get("doubted", ()))
    await observer.quiet()
    await assert_leftovers_are_decided(observer, ledger)
    await observer.events_are_complete()
    history = await observer.history(observer.turns)
    assert_one_verdict_each(ledger, history)
    await assert_newest_is_the_replay(observer, ledger, history)
    events = await observer.events()
    assert_events_tell_all(history, events)
    await assert_prompts_are_there_once(observer, ledger)
    await assert_inbox_lists_what_waits(observer, history)
    await poison_is_buried(scene)
    asked = scene.notes.get("questions", {})
    store = Store(scene.requester, scene.subjects, "questions", SCHEMAS[SessionQuestions])
    for session, revisions in (await observer.history(store)).items():
        state = codec.decode(revisions[-1].body, SessionQuestions, "the questions of a session")
        assert state.pending is None, f"{session} still waits"
        assert [outcome.kind for outcome in state.outcomes] == [asked[session]], session
    told = Counter(event.key for event in events if event.type in DECIDED)
    assert told == Counter(dict.fromkeys(asked, 1)), "a question was decided twice, or never"
    return len(ledger.reports) + len(ledger.endings) + len(ledger.expected_prompts) + len(asked)


async def poison_is_buried(scene: Scene) -> None:
    """Fail unless exactly what can't be used has a letter, and one each."""
    poison = scene.notes.get("poison", set())

    async def letters() -> list[tuple[str, int]]:
        stream = scene.subjects.stream("dead")
        found = [m async for m in scene.observer.messages(stream, scene.subjects.dead_letters())]
        return [(m.subject.split(".")[2], int(m.fields["Turngate-Origin-Sequence"])) for m in found]

    async def all_there() -> bool:
        return len(await letters()) >= len(poison)

    await wait_until(all_there, 20, f"{len(poison)} messages are buried")
    assert Counter(await letters()) == Counter(poison)


async def deliver(scene: Scene, stream: str, consumer: str, times: int) -> None:
    """Take a queue's messages and give them back, until one has been delivered so often."""
    most = 0

    def take(delivery: Delivery) -> None:
        nonlocal most
        most = max(most, delivery.deliveries)
        delivery.nak(50)

    loop = ConsumeLoop(scene.observer.connection, stream, consumer, take)
    await loop.start()
    await wait_until(lambda: most >= times, why="a message was delivered often")
    await loop.stop()


async def _clients(scene: Scene) -> tuple[TurnClient, TurnClient]:
    if "clients" not in scene.notes:
        scene.notes["clients"] = (await scene.runners.one("runner-1", "pool-1"), await scene.runners.person())
    found: tuple[TurnClient, TurnClient] = scene.notes["clients"]
    return found


async def _card(ledger: Ledger, runner: TurnClient, person: TurnClient, session: str) -> None:
    assert (await ledger.report(runner, session, 1, 1, _json(UNCHECKED))).outcome is Outcome.REJECTED
    assert (await ledger.report(runner, session, 1, 2, _json(CARD))).outcome is Outcome.ACCEPTED
    await ledger.prompt(runner, session, f"held-{session}", "A task has finished: look at it.")
    await ledger.answer(person, session, 1, 1)


async def _dismissed(ledger: Ledger, runner: TurnClient, person: TurnClient, session: str) -> None:
    await ledger.report(runner, session, 1, 1, _json(CARD))
    await ledger.dismiss(person, session, 1)


async def _silent(ledger: Ledger, runner: TurnClient, session: str) -> None:
    for ending, outcome in enumerate((EndingOutcome.REMINDER, EndingOutcome.REMINDER, EndingOutcome.UNREPORTED), 1):
        assert (await ledger.end(runner, session, 1, ending)).outcome is outcome


async def _reminded(ledger: Ledger, runner: TurnClient, session: str) -> None:
    assert (await ledger.end(runner, session, 1)).outcome is EndingOutcome.REMINDER
    await ledger.report(runner, session, 1, 1, _json(DONE))
    assert (await ledger.end(runner, session, 1, 2)).outcome is EndingOutcome.SETTLED


async def _conflict(ledger: Ledger, runner: TurnClient, session: str) -> None:
    await ledger.report(runner, session, 1, 1, _json(DONE))
    await _is_refused(ErrorCode.ATTEMPT_CONFLICT, runner.submit_report(session, 1, CARD, timeout_ms=PATIENCE_MS))


async def _resolved(scene: Scene, runner: TurnClient, person: TurnClient, session: str) -> None:
    request = await _ask(runner, session)
    waiting = asyncio.create_task(_outcome(runner, request, session))
    told = await person.questions.resolve(session, request, chat="On.", op=f"op-{session}", timeout_ms=PATIENCE_MS)
    assert await waiting is told.outcome.kind
    scene.notes.setdefault("questions", {})[session] = told.outcome.kind


async def _rejected(scene: Scene, runner: TurnClient, person: TurnClient, session: str) -> None:
    request = await _ask(runner, session)
    told = await person.questions.reject(session, request, op=f"op-{session}", timeout_ms=PATIENCE_MS)
    scene.notes.setdefault("questions", {})[session] = told.outcome.kind


async def _expires(scene: Scene, runner: TurnClient, session: str, policy: ExpireAfter) -> None:
    request = await _ask(runner, session, policy)
    kind = await _outcome(runner, request, session)
    assert kind is OutcomeKind.EXPIRED
    scene.notes.setdefault("questions", {})[session] = kind


async def _outcome(runner: TurnClient, request: Request, session: str) -> OutcomeKind:
    """Wait as a runner does, which asks each time that it begins to: a nudge may be lost with a service."""
    return (await patiently(lambda: runner.wait(request, session, timeout_ms=700))).kind


async def _ask(runner: TurnClient, session: str, policy: Policy = FOR_EVER) -> Request:
    call = ToolCall("ask_user_text", session, '{"question":"How on?"}')
    await patiently(lambda: runner.ask(call, session, policy=policy))
    request = reconcile([call])
    assert request is not None
    return request


async def _asked(runner: TurnClient) -> None:
    """Everything that only reads, and a runner's joining."""
    await patiently(lambda: runner.join("pool-1"))
    await patiently(lambda: runner.check_report(DONE))
    await patiently(runner.inbox)
    await patiently(lambda: runner.call("report.schema", GetSchema(), ReportSchema))
    await patiently(lambda: runner.call("turn.list", ListSessions(), SessionsPage))
    await _is_refused(ErrorCode.NOT_FOUND, patiently(lambda: runner.get("nobody")))


async def _is_refused(code: ErrorCode, asked: Awaitable[object]) -> None:
    try:
        answer = await asked
    except Refusal as refusal:
        told = refusal.code
    else:
        raise AssertionError(f"not refused as {code}, but {answer}")
    assert told is code


def _json(report: dict[str, object]) -> bytes:
    return codec.encode(report)
