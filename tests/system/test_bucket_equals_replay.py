"""Each session's state is the replay of its history, and what it wants is done once, wherever a process is killed."""

import asyncio
import contextlib
import itertools
import json
import random
from collections.abc import AsyncIterator
from types import TracebackType
from typing import Self

import pytest

from tests.fundamentals.reports import CARD, DONE, UNCHECKED
from tests.system.ledger import Ledger
from tests.system.nothing_lost import assert_nothing_lost
from tests.system.observer import Observer
from tests.system.processes import Fleet, ValidationProcess
from tests.system.runners import Runners
from tests.waiting import wait_until
from turngate.jetstream.direct import Stored
from turngate.runner import TurnClient
from turngate_contracts import codec
from turngate_contracts.errors import Refusal
from turngate_contracts.topology import TURNS_RECONCILER
from turngate_protocol.report.session import SessionTurns

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

ROUNDS = 10
ROUNDS_BEFORE = 2
CARDS = 16
CONTENDED_SESSIONS = 24
CONTENDED_TURNS = 6
TAKEN_S = 60
FAR_FUTURE = "2100-01-01T00:00:00Z"


async def test_prompts_of_answers_are_delivered_once_wherever_the_process_is_killed(
    fleet: Fleet, observer: Observer, runners: Runners
):
    seed = random.randrange(10**6)
    print(f"prompts: seed {seed}")
    rng = random.Random(seed)
    (process,) = await fleet.start()
    runner, person, ledger = await runners.one("runner-1", "pool-1"), await runners.person(), Ledger()
    killer = await Killer.watch(observer, process)
    owed = 0

    async with Taker(await runners.one("taker", "pool-1")) as taker:
        for round_ in range(ROUNDS):
            sessions = [f"card-{round_}-{number}" for number in range(CARDS)]
            body = json.dumps(CARD).encode()
            await asyncio.gather(*(ledger.report(runner, session, 1, 1, body) for session in sessions))
            # In the first rounds before anything is dispatched, later in the middle of it.
            after = rng.randint(1, CARDS - 1) if round_ >= ROUNDS_BEFORE else 0
            when = ("dispatched", "noted")[round_ % 2]
            async with paused_reconciler(observer):
                await asyncio.gather(*(ledger.answer(person, session, 1, number=1) for session in sessions))
                killer.kill_after(after, when)
            # The server goes on with a consumer that was paused when its stream gets the next message.
            waking = asyncio.create_task(ledger.report(runner, f"waking-{round_}", 1, 1, json.dumps(DONE).encode()))
            await wait_until(lambda: not process.running, why=f"{after} prompts of round {round_} are {when}")
            owed += await still_owed(observer, sessions)
            process.start()
            await process.ready()
            await waking
            await observer.assert_sequences_rise()
        await observer.hasten()
        await wait_until(lambda: len(taker.taken) >= len(ledger.expected_prompts), TAKEN_S)
        await observer.quiet()

    print(f"{owed} of {len(ledger.expected_prompts)} prompts were owed by processes that were killed")
    assert owed >= ROUNDS_BEFORE * CARDS, "no process was killed between an answer and its prompt"
    twice = {prompt for prompt in taker.taken if taker.taken.count(prompt) > 1}
    assert not twice, f"{len(twice)} prompts were delivered more than once, such as {sorted(twice)[:5]}"
    lost = ledger.expected_prompts - set(taker.taken)
    assert not lost, f"{len(lost)} prompts were never delivered, such as {sorted(lost)[:5]}"
    await assert_nothing_lost(observer, ledger)
    fleet.assert_no_crash_was_logged()


async def test_what_many_do_to_one_session_at_once_is_one_history(fleet: Fleet, observer: Observer, runners: Runners):
    seed = random.randrange(10**6)
    print(f"contention: seed {seed}")
    processes = await fleet.start(2)
    people = [await runners.one(name) for name in ("ann", "bob", "cem")]
    contention = Contention(await runners.several(2), people, Ledger(), random.Random(seed))

    playing = asyncio.gather(*(contention.play(f"shared-{number}") for number in range(CONTENDED_SESSIONS)))
    turns = CONTENDED_SESSIONS * CONTENDED_TURNS
    for number, process in enumerate(processes, 1):
        await contention.reached(turns * number // 4)
        process.kill()
        process.start()
        await process.ready()
        await observer.assert_sequences_rise()
    await playing

    await observer.hasten()
    await observer.quiet()
    wanted = prompts_ever_wanted(await observer.history(observer.turns))
    lost = contention.ledger.expected_prompts - wanted
    assert not lost, f"{len(lost)} prompts were promised and never wanted, such as {sorted(lost)[:5]}"
    # Whose confirmation was lost may have been told that the next turn came first: the state says what was recorded.
    contention.ledger.expected_prompts |= wanted
    await assert_nothing_lost(observer, contention.ledger)
    fleet.assert_no_crash_was_logged()


class Killer:
    """Kills a process in the very moment in which the n-th prompt from now was dispatched, or noted as dispatched."""

    def __init__(self, process: ValidationProcess) -> None:
        self._process = process
        self._when = ""
        self._left = 0

    @classmethod
    async def watch(cls, observer: Observer, process: ValidationProcess) -> "Killer":
        """Watch what is put into the queues of pools, and what sessions note about it."""
        made = cls(process)
        namespace = observer.subjects.namespace
        await observer.connection.listen(f"{namespace}.work.*.prompt.*", made._on_prompt)
        await observer.connection.listen(f"{namespace}.live.turns.>", made._on_event)
        return made

    def kill_after(self, prompts: int, when: str) -> None:
        """Kill when so many prompts are `dispatched` or `noted`; at once for 0."""
        self._left, self._when = prompts, when
        if prompts == 0:
            self._process.kill()

    def _on_prompt(self, _subject: bytes, _reply: bytes, _body: bytes, _head: bytes) -> None:
        self._count("dispatched")

    def _on_event(self, _subject: bytes, _reply: bytes, _body: bytes, head: bytes) -> None:
        if b"turngate.turn.prompt_sent" in head:
            self._count("noted")

    def _count(self, what: str) -> None:
        self._left -= what == self._when
        if self._left == 0 and what == self._when:
            self._process.kill()


class Taker:
    """A runner that takes the prompts of its pool."""

    def __init__(self, client: TurnClient) -> None:
        self.taken: list[str] = []
        self._client = client
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._take())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._task is not None
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

    async def _take(self) -> None:
        async with contextlib.aclosing(self._client.prompts()) as prompts:
            async for incoming in prompts:
                await incoming.take()
                self.taken.append(incoming.prompt.id)


class Contention:
    """Sessions that a runner, a service and three people change at the same time."""

    def __init__(self, runners: list[TurnClient], people: list[TurnClient], ledger: Ledger, rng: random.Random) -> None:
        self.ledger = ledger
        self.turns = 0
        self._runners = itertools.cycle(runners)
        self._people = people
        self._random = rng

    async def play(self, session: str) -> None:
        """Play a session; whoever is not waited for may come too late and is refused."""
        runner = next(self._runners)
        others: list[asyncio.Task[None]] = []
        for turn in range(1, CONTENDED_TURNS + 1):
            for attempt, report in enumerate(self._random.choice([[CARD], [CARD], [UNCHECKED, DONE]]), 1):
                await self.ledger.report(runner, session, turn, attempt, json.dumps(report).encode())
            crowd = [asyncio.create_task(self._decide(person, session, turn)) for person in self._people]
            crowd.append(asyncio.create_task(self._notify(runner, session, turn)))
            others += crowd
            if self._random.random() < 0.5:
                await asyncio.wait(crowd, return_when=asyncio.FIRST_COMPLETED)
            self.turns += 1
        await asyncio.gather(*others)

    async def reached(self, turns: int) -> None:
        """Wait until so many turns have been played."""
        await wait_until(lambda: self.turns >= turns, TAKEN_S, f"{turns} turns are played")

    async def _decide(self, person: TurnClient, session: str, turn: int) -> None:
        with contextlib.suppress(Refusal):
            if self._random.random() < 0.2:
                await self.ledger.dismiss(person, session, turn)
            else:
                await self.ledger.answer(person, session, turn, self._random.randint(1, 3))

    async def _notify(self, runner: TurnClient, session: str, turn: int) -> None:
        await self.ledger.prompt(runner, session, f"task-{session}-{turn}", "A task has finished: look at it.")


@contextlib.asynccontextmanager
async def paused_reconciler(observer: Observer) -> AsyncIterator[None]:
    """Have the server deliver no state to reconcile meanwhile, so that answers are recorded and not acted upon."""
    subject = f"CONSUMER.PAUSE.{observer.turns.stream}.{TURNS_RECONCILER}"
    await observer.requester.api(subject, {"pause_until": FAR_FUTURE})
    yield
    await observer.requester.api(subject, {})


async def still_owed(observer: Observer, sessions: list[str]) -> int:
    """How many prompts the states of these sessions still want, nobody being there to send them."""
    newest = await observer.newest(observer.turns, sessions)
    return sum(len(codec.decode(e.value or b"", SessionTurns, "a state").outgoing) for e in newest.values())


def prompts_ever_wanted(history: dict[str, list[Stored]]) -> set[str]:
    """The ids of all prompts that any revision had on their way."""
    states = (codec.decode(r.body, SessionTurns, "a state") for revisions in history.values() for r in revisions)
    return {prompt.id for state in states for prompt in state.outgoing}
