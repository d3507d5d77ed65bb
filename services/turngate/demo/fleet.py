"""One runner process of the demo: it hosts the agents of a pool, as a real runner would, and says what it sees."""

import argparse
import asyncio
import contextlib
import random
import sys
import time
from typing import Any

from turngate.demo.hosting import host, say
from turngate.demo.stories import Story, Turn, Written, follow_up, stories
from turngate.runner import TurnClient
from turngate_protocol.report.session import EndingOutcome, Outcome, Prompt


class Runner:
    """The agents of one pool, scripted."""

    def __init__(self, client: TurnClient, pace_s: float, seed: str) -> None:
        self._client = client
        self._pace_s = pace_s
        self._random = random.Random(seed)  # noqa: S311  it only makes agents think for different times
        self._hosting: dict[str, asyncio.Lock] = {}

    async def tell(self, story: Story) -> None:
        """Play a session's turns."""
        async with self._lock(story.session):
            for number, turn in enumerate(story.turns, 1):
                await self._play(story.session, number, turn)
        say(kind="story_done", session=story.session)

    async def take_prompts(self) -> None:
        """Take the pool's prompts and do what each asks for, as the next turn of its session."""
        async with contextlib.aclosing(self._client.prompts()) as prompts:
            async for incoming in prompts:
                await incoming.take()
                await self._follow(incoming.prompt)

    async def _follow(self, prompt: Prompt) -> None:
        async with self._lock(prompt.session):
            found = await self._client.get(prompt.session)
            await self._play(prompt.session, found.state.current.turn + 1, Turn((follow_up(prompt.session),)))
        say(kind="prompt_done", session=prompt.session, prompt=prompt.id, source=prompt.kind)

    async def _play(self, session: str, number: int, turn: Turn) -> None:
        ending = 0
        for _ in range(turn.endings_before):
            await self._think()
            ending += 1
            await self._end(session, number, ending, turn.mutated)
        for attempt, written in enumerate(turn.reports, 1):
            await self._think()
            if await self._report(session, number, attempt, written, turn.mutated) is not Outcome.REJECTED:
                break
        ending += 1
        outcome = await self._end(session, number, ending, turn.mutated)
        if outcome is EndingOutcome.REMINDER:
            await self._end(session, number, ending + 1, turn.mutated)

    async def _report(self, session: str, turn: int, attempt: int, written: Written, mutated: bool) -> Outcome:
        began = time.perf_counter()
        verdict = await self._client.submit_report(session, turn, written, attempt=attempt, mutated=mutated)
        say(
            kind="verdict",
            session=session,
            turn=turn,
            attempt=attempt,
            outcome=verdict.outcome.value,
            codes=[problem.code for problem in verdict.problems],
            buried=verdict.buried_proposal,
            ms=(time.perf_counter() - began) * 1000,
        )
        return verdict.outcome

    async def _end(self, session: str, turn: int, ending: int, mutated: bool) -> EndingOutcome:
        ended = await self._client.end_turn(session, turn, ending=ending, mutated=mutated)
        say(kind="ending", session=session, turn=turn, ending=ending, outcome=ended.outcome.value)
        return ended.outcome

    async def _think(self) -> None:
        await asyncio.sleep(self._pace_s * self._random.uniform(0.5, 2.0))

    def _lock(self, session: str) -> asyncio.Lock:
        return self._hosting.setdefault(session, asyncio.Lock())


async def _main(args: argparse.Namespace, ended: "asyncio.Future[None]") -> None:
    mine = [story for story in stories() if story.pool == args.pool]
    async with await TurnClient.connect(
        args.identity, pool=args.pool, url=args.url, namespace=args.namespace
    ) as client:
        runner = Runner(client, args.pace, args.identity)
        taking = asyncio.create_task(runner.take_prompts())
        telling = asyncio.gather(*(runner.tell(story) for story in mine))
        waiting: set[asyncio.Future[Any]] = {taking, telling, ended}
        while not ended.done():
            done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        for task in (taking, telling):
            task.cancel()
        await asyncio.gather(taking, telling, return_exceptions=True)


if __name__ == "__main__":
    sys.exit(host("fleet", _main))
