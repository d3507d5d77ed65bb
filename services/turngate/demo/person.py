"""The person of the demo: follows events, looks at each card that waits, and answers it with one key."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

from turngate.demo.stories import Story
from turngate.runner import TurnClient
from turngate_contracts import codec
from turngate_contracts.errors import ErrorCode, Refusal
from turngate_contracts.messages import AnswerRecorded
from turngate_protocol.report.answering import prompt_id
from turngate_protocol.report.model import Report
from turngate_protocol.report.session import SessionTurns

OnCard = Callable[[SessionTurns, Report, int], None]
"""Called with a session, its card, and the key that is about to be pressed (0: Esc)."""

COLLECTED: Final = "Use 250 requests a minute, and say so in the documentation."


class Person:
    """Answers the cards of the demo, one after the other, as their stories say."""

    def __init__(self, client: TurnClient, rival: TurnClient, stories: Mapping[str, Story], pause_s: float) -> None:
        self.answered = 0
        self.expected_prompts: set[str] = set()
        self.cursor = 0
        self._client = client
        self._rival = rival
        self._stories = stories
        self._pause_s = pause_s

    async def work(self, on_card: OnCard) -> None:
        """Follow events for ever and answer what waits."""
        async for event in self._client.events(kind="turns"):
            self.cursor = event.cursor
            state = codec.decode(event.data, SessionTurns, "a session's state")
            if state.waiting and state.current.answer is None and state.cause.type == "turn.report_accepted":
                await self._answer(state, on_card)

    async def _answer(self, state: SessionTurns, on_card: OnCard) -> None:
        reply = self._stories[state.session].reply
        if reply is None:
            return
        session, turn = state.session, state.current.turn
        report = codec.decode(bytes(state.current.report), Report, "a report")
        on_card(state, report, reply)
        await asyncio.sleep(self._pause_s)
        if reply == 0:
            # A service wants something in this session too: it waits behind the card until that is dismissed.
            held = f"held-{session}"
            self.expected_prompts.add(held)
            text = "A delegated task has finished: look at its result."
            await self._client.send_prompt(session, held, text, pool=state.pool)
            await self._client.dismiss(session, turn)
            self.answered += 1
            return
        answer = (await self._first_of_two(session, turn, reply)).answer
        self.answered += 1
        if answer.effect == "dispatch":
            self.expected_prompts.add(prompt_id(session, turn, "answer"))
        elif answer.effect == "collect":
            edited = f"edited-{session}"
            self.expected_prompts.add(edited)
            await self._client.send_prompt(session, edited, f"{answer.editor_text}: {COLLECTED}", pool=state.pool)

    async def _first_of_two(self, session: str, turn: int, number: int) -> AnswerRecorded:
        """Two people press the same key at once: one wins, the other is told who did."""
        results = await asyncio.gather(
            self._client.answer(session, turn, number),
            self._rival.answer(session, turn, number),
            return_exceptions=True,
        )
        winners = [r for r in results if not isinstance(r, BaseException)]
        for result in results:
            # The winner's prompt may have begun the next turn before the loser was heard.
            lost = isinstance(result, Refusal) and result.code in (ErrorCode.ALREADY_ANSWERED, ErrorCode.SUPERSEDED)
            if isinstance(result, BaseException) and not lost:
                raise result
        if len(winners) != 1:
            raise AssertionError(f"{len(winners)} answers to turn {turn} of {session} were recorded")
        return winners[0]
