"""Load as fleets make it: new sessions and long ones, reports that fit, that are repaired or given up, and cards.

It always plays somewhat more than what was waited for, so that a fault meets work under way, and no more than that, so
that a slow machine does not make more work. What it plays is drawn from a seed.
"""

import asyncio
import itertools
import json
import random
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Final, Self

from tests.fundamentals.reports import CARD, DONE, UNCHECKED
from tests.system.ledger import Ledger
from tests.waiting import wait_until
from turngate.runner import TurnClient
from turngate_protocol.report.session import EndingOutcome, Outcome

PROGRESS_S: Final = 90
AHEAD: Final = 150
"""Turns that are played beyond what was waited for."""
LONGEST_SESSION: Final = 12
"""Turns; with them a session's revisions stay within its bucket's history, so that all of them can be replayed."""

# How often a turn of each kind is played.
_KINDS: Final = {
    "fits": 40,
    "repaired": 25,
    "exhausted": 4,
    "no_json": 5,
    "card": 16,
    "reminded": 5,
    "silent": 5,
}


class Load:
    """Workers that play one session after the other, for as long as the `async with` block lasts."""

    def __init__(
        self,
        runners: Sequence[TurnClient],
        person: TurnClient,
        seed: int,
        *,
        in_flight: int = 48,
        longest: int = LONGEST_SESSION,
    ) -> None:
        """Describe the load.

        Args:
            runners: the clients that host the sessions.
            person: who answers the cards.
            seed: what the load is drawn from.
            in_flight: how many sessions are played at once.
            longest: most turns of a session.
        """
        print(f"load: seed {seed}")
        self.ledger = Ledger()
        self.turns = 0
        self._runners = runners
        self._person = person
        self._seed = seed
        self._in_flight = in_flight
        self._longest = longest
        self._allowed = 0
        self._more = asyncio.Event()
        self._stopping = False
        self._workers: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        for number in range(self._in_flight):
            worker = _Worker(self, self._runners[number % len(self._runners)], self._person, self._seed, number)
            self._workers.append(asyncio.create_task(worker.run(self._longest)))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            await self.end()
            return
        for worker in self._workers:
            worker.cancel()
        await asyncio.gather(*self._workers, return_exceptions=True)

    async def end(self) -> None:
        """Have every session stop after its present turn, and wait until all have; raises what a worker met."""
        self._stopping = True
        self._more.set()
        await asyncio.gather(*self._workers)

    async def reached(self, turns: int) -> None:
        """Wait until so many turns have been played."""
        self._allowed = max(self._allowed, turns + AHEAD)
        self._more.set()

        def is_reached() -> bool:
            for worker in self._workers:
                if worker.done():
                    worker.result()
            return self.turns >= turns

        await wait_until(is_reached, PROGRESS_S, f"{turns} turns are played; there are {self.turns}, the rest hangs")

    async def goes_on(self, turns: int) -> None:
        """Wait until so many further turns have been played."""
        await self.reached(self.turns + turns)

    async def may_play(self) -> bool:
        """Wait until another turn may begin, and say whether it should."""
        while self.turns >= self._allowed and not self._stopping:
            self._more.clear()
            await self._more.wait()
        return not self._stopping


class _Worker:
    """Plays one session after the other."""

    def __init__(self, load: Load, runner: TurnClient, person: TurnClient, seed: int, number: int) -> None:
        self._load = load
        self._ledger = load.ledger
        self._runner = runner
        self._person = person
        self._random = random.Random(f"{seed}-{number}")
        self._number = number

    async def run(self, longest: int) -> None:
        for count in itertools.count(1):
            session = f"s{self._number}-{count}"
            turns = 1 if self._random.random() < 0.5 else self._random.randint(2, longest)
            for turn in range(1, turns + 1):
                if not await self._load.may_play():
                    return
                kind = self._random.choices(list(_KINDS), list(_KINDS.values()))[0]
                await getattr(self, f"_play_{kind}")(session, turn)
                self._load.turns += 1

    async def _play_fits(self, session: str, turn: int) -> None:
        await self._report(session, turn, 1, self._padded(DONE), Outcome.ACCEPTED)

    async def _play_repaired(self, session: str, turn: int) -> None:
        rejected = self._random.randint(1, 3)
        for attempt in range(1, rejected + 1):
            await self._report(session, turn, attempt, self._padded(UNCHECKED), Outcome.REJECTED)
        await self._report(session, turn, rejected + 1, self._padded(DONE), Outcome.ACCEPTED)

    async def _play_exhausted(self, session: str, turn: int) -> None:
        for attempt in (1, 2, 3):
            await self._report(session, turn, attempt, UNCHECKED, Outcome.REJECTED)
        await self._report(session, turn, 4, UNCHECKED, Outcome.EXHAUSTED)
        await self._end(session, turn, 1, EndingOutcome.UNREPORTED)

    async def _play_no_json(self, session: str, turn: int) -> None:
        await self._report(session, turn, 1, b'I am done {"task_status', Outcome.REJECTED)
        await self._report(session, turn, 2, DONE, Outcome.ACCEPTED)

    async def _play_card(self, session: str, turn: int) -> None:
        await self._report(session, turn, 1, CARD, Outcome.ACCEPTED)
        if self._random.random() < 0.3:
            prompt = f"task-{session}-{turn}"
            queued = await self._ledger.prompt(self._runner, session, prompt, "A task has finished: look at it.")
            assert queued.held, f"prompt {prompt} was not held behind the card"
        what = self._random.choice(["dispatch", "dispatch", "collect", "resolve", "dismiss", "leave"])
        if what == "dismiss":
            await self._ledger.dismiss(self._person, session, turn)
        elif what != "leave":
            number = ("dispatch", "collect", "resolve").index(what) + 1
            recorded = await self._ledger.answer(self._person, session, turn, number)
            assert recorded.answer.effect == what

    async def _play_reminded(self, session: str, turn: int) -> None:
        await self._end(session, turn, 1, EndingOutcome.REMINDER)
        await self._report(session, turn, 1, DONE, Outcome.ACCEPTED)
        await self._end(session, turn, 2, EndingOutcome.SETTLED)

    async def _play_silent(self, session: str, turn: int) -> None:
        mutated = self._random.random() < 0.5
        outcomes = (
            [EndingOutcome.REMINDER, EndingOutcome.REMINDER, EndingOutcome.UNREPORTED]
            if mutated
            else [EndingOutcome.SETTLED]
        )
        for ending, outcome in enumerate(outcomes, 1):
            await self._end(session, turn, ending, outcome, mutated=mutated)

    async def _report(
        self, session: str, turn: int, attempt: int, report: dict[str, Any] | bytes, expected: Outcome
    ) -> None:
        body = report if isinstance(report, bytes) else json.dumps(report).encode()
        verdict = await self._ledger.report(self._runner, session, turn, attempt, body)
        what = f"attempt {attempt} of turn {turn} of {session}"
        assert verdict.outcome is expected, f"{what} is {verdict.outcome}, not {expected}"

    async def _end(
        self, session: str, turn: int, ending: int, expected: EndingOutcome, *, mutated: bool = True
    ) -> None:
        ended = await self._ledger.end(self._runner, session, turn, ending, mutated=mutated)
        what = f"ending {ending} of turn {turn} of {session}"
        assert ended.outcome is expected, f"{what} is {ended.outcome}, not {expected}"

    def _padded(self, report: dict[str, Any]) -> dict[str, Any]:
        if self._random.random() < 0.9:
            return report
        first, *others = report["blocks"]
        details = "word " * self._random.randint(1, 1200)
        return {**report, "blocks": [{**first, "details": details.strip()}, *others]}
