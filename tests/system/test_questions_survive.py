"""Questions outlive every process: kill each in turn, and all still wait, are answered once, and reach who asked.

The times that the last tests measure are printed (`pytest -s`); what they assert has room for a busy machine.
"""

import asyncio
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.system.asking_runner import POOL, Record, call_of
from tests.system.observer import Observer
from tests.system.patience import each
from tests.system.processes import Fleet, ValidationProcess
from tests.system.runners import Runners
from tests.waiting import wait_until
from turngate.jetstream.embedded import EmbeddedServer
from turngate.runner import TurnClient
from turngate_contracts import codec
from turngate_contracts.errors import ErrorCode, Refusal
from turngate_contracts.questions import QuestionOutcome
from turngate_protocol.question import DecidedBy, ExpireAfter, OutcomeKind, PendingQuestion, Request, reconcile

QUESTIONS = 200
RUNNERS = 4
EXPIRING = 500
EXPIRY_MS = 2_000
ROOM_S = 10
"""How late a policy may decide here; what is asked of it is 1 s, which is reported."""
DECISIONS = {f"turngate.question.{kind}" for kind in OutcomeKind}

SESSIONS = [f"session-{number}" for number in range(QUESTIONS)]


class RunnerProcess:
    """A runner with its agents, which may be killed and started again."""

    def __init__(self, identity: str, url: str, namespace: str, directory: Path, sessions: list[str]) -> None:
        self.identity = identity
        self.sessions = sessions
        self.record = Record(directory / f"{identity}.results")
        self._log = directory / f"{identity}.log"
        path = str(directory / f"{identity}.results")
        self._command = [sys.executable, "-m", "tests.system.asking_runner", url, namespace, identity, path, *sessions]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def kill(self) -> None:
        """End it with SIGKILL; returns when it is gone."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait(30)

    def ended(self) -> bool:
        """Whether it ended by itself, all of its agents having their results."""
        assert self._process is not None
        code = self._process.poll()
        assert code in (None, 0), f"{self.identity} ended with {code}:\n{self._log.read_text()[-3000:]}"
        return code == 0


@pytest.fixture
def asking(own_server: EmbeddedServer, namespace: str, tmp_path: Path) -> Iterator[list[RunnerProcess]]:
    """Runners that share the questions among themselves; all have ended when the test has."""
    made = [
        RunnerProcess(f"runner-{n}", own_server.url, namespace, tmp_path, SESSIONS[n::RUNNERS]) for n in range(RUNNERS)
    ]
    try:
        yield made
    finally:
        for runner in made:
            runner.kill()


class Mail:
    """Every outcome that is put into any runner's mailbox."""

    def __init__(self) -> None:
        self.outcomes: list[QuestionOutcome] = []

    def on_mail(self, _subject: bytes, _reply: bytes, body: bytes, _head: bytes) -> None:
        self.outcomes.append(codec.decode(body, QuestionOutcome, "a QuestionOutcome"))


@pytest.mark.slow
async def test_two_hundred_questions_outlive_everything_and_are_answered_once(
    own_server: EmbeddedServer, fleet: Fleet, observer: Observer, runners: Runners, asking: list[RunnerProcess]
):
    validations = await fleet.start(2)
    ann, bob = await runners.one("ann"), await runners.one("bob")
    for runner in asking:
        runner.start()
    await wait_until(lambda: _all_listed(ann), 60, "every question waits in the inbox")

    for validation in validations:
        validation.kill()
        validation.start()
        await validation.ready()
    await asyncio.to_thread(own_server.kill)
    await wait_until(lambda: not ann.connection.is_connected, why="the server is gone")
    await asyncio.to_thread(own_server.start)
    for runner in asking:
        runner.kill()
        runner.start()

    requests = dict(zip(SESSIONS, await each(SESSIONS, lambda session: _pending(ann, session)), strict=True))
    assert {s: r.id for s, r in requests.items()} == {s: _request_of(s).id for s in SESSIONS}
    await wait_until(lambda: _all_listed(ann), 60, "every question still waits in the inbox")
    mail = await _tapped(observer)

    winners = await each(SESSIONS, lambda session: _race(session, requests[session], ann, bob))

    await wait_until(lambda: _all_ended(asking), 60, "every agent has its outcome")
    _assert_each_has_its_own(asking, dict(zip(SESSIONS, winners, strict=True)))
    assert Counter(outcome.session for outcome in mail.outcomes) == Counter(SESSIONS)
    await observer.events_are_complete()
    decided = [event.key for event in await observer.events() if event.type in DECISIONS]
    assert Counter(decided) == Counter(SESSIONS)
    await wait_until(lambda: _none_listed(ann), 60, "nothing waits any more")
    fleet.assert_no_crash_was_logged()


@pytest.mark.slow
async def test_answers_given_while_everything_is_killed_reach_who_asked_once(
    own_server: EmbeddedServer, fleet: Fleet, observer: Observer, runners: Runners, asking: list[RunnerProcess]
):
    validations = await fleet.start(2)
    ann, bob = await runners.one("ann"), await runners.one("bob")
    for runner in asking:
        runner.start()
    requests = dict(zip(SESSIONS, await each(SESSIONS, lambda session: _pending(ann, session)), strict=True))

    winners: dict[str, str] = {}

    async def answer(session: str) -> None:
        winners[session] = await _race(session, requests[session], ann, bob)

    async def faults() -> None:
        victims: list[ValidationProcess | RunnerProcess | EmbeddedServer]
        victims = [validations[0], asking[0], own_server, validations[1]]
        for place, victim in enumerate(victims):
            enough = (place + 1) * QUESTIONS // 5
            await wait_until(partial(_are, winners, enough), 60, f"{enough} questions are answered")
            await asyncio.to_thread(victim.kill)
            await asyncio.to_thread(victim.start)

    await asyncio.gather(faults(), each(SESSIONS, answer))

    # Whoever missed its nudge asks again within 15 s.
    await wait_until(lambda: _all_ended(asking), 60, "every agent has its outcome")
    _assert_each_has_its_own(asking, winners)
    await observer.events_are_complete()
    decided = [event.key for event in await observer.events() if event.type in DECISIONS]
    assert Counter(decided) == Counter(SESSIONS)


@pytest.mark.slow
async def test_five_hundred_questions_expire_in_time_and_once(fleet: Fleet, observer: Observer, runners: Runners):
    await fleet.start()
    runner = await runners.one("runner-1", POOL)
    sessions = [f"session-{number}" for number in range(EXPIRING)]

    asked = await each(sessions, lambda session: _ask_for_a_while(runner, session))
    outcomes = await asyncio.gather(*map(runner.wait, [pending.request for pending in asked], sessions))

    late = sorted(o.at - o.asked_at - EXPIRY_MS for o in outcomes)
    print(f"{EXPIRING} expiries were late by {late[EXPIRING // 2]} ms (median), {late[-1]} ms (most)")
    assert {(o.kind, o.decided_by) for o in outcomes} == {(OutcomeKind.EXPIRED, DecidedBy.POLICY)}
    assert late[0] >= 0
    assert late[-1] < ROOM_S * 1000
    await _assert_each_expired_once(observer, sessions)


@pytest.mark.slow
async def test_what_was_due_while_everything_was_down_expires_after_the_restart_and_once(
    own_server: EmbeddedServer,
    fleet: Fleet,
    observer: Observer,
    runners: Runners,
):
    (validation,) = await fleet.start()
    runner = await runners.one("runner-1", POOL)
    sessions = [f"session-{number}" for number in range(EXPIRING)]
    asked = await each(sessions, lambda session: _ask_for_a_while(runner, session))
    last_due = max(pending.expires_at or 0 for pending in asked)

    validation.kill()
    down_at = time.time() * 1000
    await asyncio.to_thread(own_server.kill)
    await wait_until(lambda: time.time() * 1000 > last_due + 200, why="the last one was due")
    await asyncio.to_thread(own_server.start)
    validation.start()
    await validation.ready()
    ready_at = time.time() * 1000
    outcomes = await asyncio.gather(*map(runner.wait, [pending.request for pending in asked], sessions))

    late = sorted(o.at - ready_at for o in outcomes if o.at > down_at)
    print(
        f"{len(late)} expiries came {late[len(late) // 2]:.0f} ms (median), {late[-1]:.0f} ms (most) after the restart"
    )
    assert {o.kind for o in outcomes} == {OutcomeKind.EXPIRED}
    assert late[-1] < ROOM_S * 1000
    await _assert_each_expired_once(observer, sessions)


async def _tapped(observer: Observer) -> Mail:
    """Listen to every mailbox; what comes from now on is heard."""
    mail = Mail()
    await wait_until(lambda: observer.connection.is_connected, why="the observer is back")
    await observer.connection.listen(f"{observer.subjects.namespace}.to.*.outcome", mail.on_mail)
    await observer.connection.flush()
    return mail


def _all_ended(asking: list[RunnerProcess]) -> bool:
    ended = [runner.ended() for runner in asking]  # each is looked at, so that one that failed says so at once
    return all(ended)


async def _race(session: str, request: Request, *people: TurnClient) -> str:
    """Have people answer the same question at the same time; return the answer that won."""

    async def answer(person: TurnClient) -> tuple[str, str]:
        text = f"{person.identity} on {session}"
        try:
            await person.questions.resolve(session, request, chat=text, timeout_ms=60_000)
        except Refusal as refusal:
            code, by = refusal.code, str(refusal.details.get("by"))
        else:
            return text, person.identity
        assert code is ErrorCode.ALREADY_RESOLVED
        return "", by

    answers = await asyncio.gather(*map(answer, people))
    (won,) = (text for text, _ in answers if text)
    assert len({by for _, by in answers}) == 1, "the one who lost learns who won"
    return won


def _assert_each_has_its_own(asking: list[RunnerProcess], winners: dict[str, str]) -> None:
    for runner in asking:
        results = runner.record.results()
        assert Counter(result["session"] for result in results) == Counter(runner.sessions)
        for result in results:
            assert result["request_id"] == _request_of(result["session"]).id
            assert json.loads(result["result"]) == {"chat": winners[result["session"]]}


async def _assert_each_expired_once(observer: Observer, sessions: list[str]) -> None:
    async def no_timer_left() -> bool:
        info = await observer.stream(observer.subjects.stream("timers"))
        return int(info["state"]["messages"]) == 0

    await wait_until(no_timer_left, 60, "every timer was taken")
    await observer.events_are_complete()
    events = [event for event in await observer.events() if event.type in DECISIONS]
    assert Counter(event.key for event in events) == Counter(sessions)
    assert {event.type for event in events} == {"turngate.question.expired"}


async def _ask_for_a_while(runner: TurnClient, session: str) -> PendingQuestion:
    asked = await runner.ask(call_of(session), session, policy=ExpireAfter(EXPIRY_MS))
    assert asked.pending is not None
    return asked.pending


async def _pending(client: TurnClient, session: str) -> Request:
    found: list[Request] = []

    async def waits() -> bool:
        try:
            pending = (await client.questions.get(session, timeout_ms=60_000)).pending
        except Refusal as refusal:
            missing = refusal.code
        else:
            found.extend([pending.request] if pending else [])
            return bool(found)
        assert missing is ErrorCode.NOT_FOUND
        return False

    await wait_until(waits, 60, f"{session} waits for its answer")
    return found[-1]


def _are(winners: dict[str, str], enough: int) -> bool:
    return len(winners) >= enough


def _request_of(session: str) -> Request:
    request = reconcile([call_of(session)])
    assert request is not None
    return request


async def _listed(client: TurnClient) -> set[str]:
    page = await client.inbox(limit=1000, kind="question")
    assert not page.more
    return {entry.session for entry in page.entries}


async def _all_listed(client: TurnClient) -> bool:
    return await _listed(client) == set(SESSIONS)


async def _none_listed(client: TurnClient) -> bool:
    return not await _listed(client)
