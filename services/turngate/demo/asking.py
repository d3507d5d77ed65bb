"""The questions of the demo: what agents ask, what a person replies, and the runner process that asks and waits.

One question is asked by a runner that is killed while it waits; started again, it finds its question by the tool call
that has no result yet, and gets the answer. Another one is answered by nobody: its policy does.
"""

import argparse
import asyncio
import json
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import Any, Final, NamedTuple

from turngate.demo.hosting import host, say
from turngate.jetstream.events import StreamEvent
from turngate.runner import TurnClient
from turngate_contracts import codec
from turngate_protocol.question import (
    Answer,
    AnswerAfter,
    Lineage,
    OutcomeKind,
    Policy,
    SessionQuestions,
    ToolCall,
    WaitForEver,
    tool_result,
)
from turngate_protocol.question.session import PendingQuestion

POOL: Final = "asking"
RUNNER: Final = "asker"

_STORE: Final = {
    "header": "Store",
    "question": "Where shall the sessions be kept?",
    "options": [
        {"label": "Postgres", "description": "They survive a restart", "preview": "CREATE TABLE sessions (…);"},
        {"label": "Memory", "description": "Fast, and gone at exit"},
    ],
}
_TARGETS: Final = {
    "header": "Targets",
    "question": "Which of these shall the release contain?",
    "multiple": True,
    "options": [
        {"label": "Linux", "description": "deb and rpm"},
        {"label": "macOS", "description": "signed"},
        {"label": "Windows", "description": "an installer"},
    ],
}


class Asked(NamedTuple):
    """A question of the demo: who asks what, how a person replies, and what must come of it.

    Attributes:
        session: the session that asks.
        call: the model's tool call.
        answers: the person's answers.
        chat: what the person says instead.
        gives_up: whether the person gives it up.
        policy: what happens if nobody answers.
        restarts: whether its runner is killed while it waits.
        outcome: how it must come out.
    """

    session: str
    call: ToolCall
    answers: tuple[Answer, ...] = ()
    chat: str = ""
    gives_up: bool = False
    policy: Policy = WaitForEver()
    restarts: bool = False
    outcome: OutcomeKind = OutcomeKind.ANSWERED


def asked() -> list[Asked]:
    """Return the questions of the demo."""
    return [
        Asked("ask-single", _structured(_STORE), (Answer(("Postgres",)),)),
        Asked("ask-multiple", _structured(_STORE, _TARGETS), (Answer(("Memory",)), Answer(("Linux", "Windows")))),
        Asked("ask-custom", _structured(_STORE), (Answer(custom="In Redis, next to the rate limits"),)),
        Asked("ask-chat", _structured(_TARGETS), chat="Which of them do customers use?", outcome=OutcomeKind.CHAT),
        Asked(
            "ask-freeform",
            ToolCall("ask_user_text", "call-1", json.dumps({"question": "What shall the tool be called?"})),
            chat="Turngate",
            outcome=OutcomeKind.CHAT,
        ),
        Asked("ask-given-up", _structured(_STORE), gives_up=True, outcome=OutcomeKind.CANCELLED),
        Asked("ask-nobody", _structured(_STORE), policy=AnswerAfter(1_500, (Answer(("Memory",)),))),
        Asked("ask-restart", _structured(_TARGETS), (Answer(("macOS",)),), restarts=True),
    ]


def _structured(*questions: Mapping[str, Any]) -> ToolCall:
    return ToolCall("ask_user", "call-1", json.dumps({"questions": questions}))


class Answering:
    """The person who answers; `play` returns when the runner has the outcome of every question."""

    name = "questions"

    def __init__(
        self,
        client: TurnClient,
        restart: Callable[[], Awaitable[None]],
        note: Callable[[str, str, str], None],
        pause_s: float,
    ) -> None:
        self.failures: list[str] = []
        self._client = client
        self._restart = restart
        self._note = note
        self._pause_s = pause_s
        self._asked = {question.session: question for question in asked()}
        self.wanted = len(self._asked)
        self._replied: set[str] = set()
        self._outcomes: dict[str, str] = {}
        self._restarts = 0
        self._complete = asyncio.Event()

    @property
    def done(self) -> int:
        """How many outcomes the runner has."""
        return len(self._outcomes)

    def add(self, fact: Mapping[str, Any]) -> None:
        """Take in what the runner says."""
        if fact["kind"] == "error":
            self.failures.append(str(fact["message"]))
        if fact["kind"] != "outcome":
            return
        question = self._asked[fact["session"]]
        before = self._outcomes.setdefault(question.session, fact["outcome"])
        if before != fact["outcome"] or fact["outcome"] != question.outcome:
            wanted = question.outcome.value
            self.failures.append(f"question of {question.session}: {fact['outcome']}, it should be {wanted}")
        self._note(f"question of {question.session}", fact["outcome"], fact["content"])
        if self.done == self.wanted:
            self._complete.set()

    async def play(self) -> None:
        """Reply to every question that waits, as the person of the demo does."""
        answering = asyncio.create_task(self._reply())
        complete = asyncio.create_task(self._complete.wait())
        try:
            await asyncio.wait({answering, complete}, return_when=asyncio.FIRST_COMPLETED)
            if answering.done():
                answering.result()
        finally:
            for task in (answering, complete):
                task.cancel()
            await asyncio.gather(answering, complete, return_exceptions=True)

    def unfinished(self) -> list[str]:
        """Say which questions have no outcome."""
        return [
            f"question of {session}: {'replied' if session in self._replied else 'not replied'}, no outcome yet"
            for session in self._asked.keys() - self._outcomes.keys()
        ]

    def summary(self) -> dict[str, Any]:
        """Return the rows of the end table."""
        return {
            "count": self.done,
            **dict(sorted(Counter(self._outcomes.values()).items())),
            "runners_restarted": self._restarts,
        }

    async def _reply(self) -> None:
        events: AsyncGenerator[StreamEvent, None] = self._client.events(kind="questions")
        async with aclosing(events):
            async for event in events:
                state = codec.decode(event.data, SessionQuestions, "a session's questions")
                if state.pending is not None and state.session not in self._replied:
                    await self._reply_to(self._asked[state.session], state.pending)

    async def _reply_to(self, question: Asked, pending: PendingQuestion) -> None:
        self._replied.add(question.session)
        if not isinstance(question.policy, WaitForEver):
            return
        if question.restarts:
            self._restarts += 1
            self._note(f"runner {RUNNER}", "killed", f"while {question.session} waits for an answer")
            await self._restart()
        await asyncio.sleep(self._pause_s)
        if question.gives_up:
            await self._client.questions.reject(question.session, pending.request)
            return
        await self._client.questions.resolve(
            question.session, pending.request, answers=question.answers, chat=question.chat
        )


async def _main(args: argparse.Namespace, ended: "asyncio.Future[None]") -> None:
    async with await TurnClient.connect(
        args.identity, pool=args.pool, url=args.url, namespace=args.namespace
    ) as client:
        # A real runner finds its calls without a result in its own records; the demo's are always these.
        waiting = asyncio.gather(*(_ask(client, question, args.pace) for question in asked()))
        ends: set[asyncio.Future[Any]] = {waiting, ended}
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        if waiting.done():
            waiting.result()
            await ended
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)


async def _ask(client: TurnClient, question: Asked, pace_s: float) -> None:
    await asyncio.sleep(pace_s)
    lineage = Lineage("release-31", "task-7") if question.restarts else None
    found = await client.reconcile([question.call], question.session, policy=question.policy, lineage=lineage)
    if found is None or found.denied is not None:
        say(kind="error", message=f"the question of {question.session} was not asked: {found}")
        return
    outcome = found.outcome
    if outcome is None and found.pending is not None:
        outcome = await client.wait(found.pending.request, question.session)
    if outcome is not None:
        result = tool_result(outcome)
        say(kind="outcome", session=question.session, outcome=outcome.kind.value, content=result.content)


if __name__ == "__main__":
    sys.exit(host("asking", _main))
