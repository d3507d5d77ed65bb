"""The ceilings: services with the same connection and the same consume loop that decide nothing and keep nothing.

The one for turns stores one short event, which the runner's mailbox hears, and acks when it is stored; the bare one
stores nothing and acks at once. The one for role runs answers a claim and publishes the next offer, the one for
questions has one question for everybody and passes on its answer, the one for tasks queues a prompt for each: what no
service on this client can do without.
"""

import json
from typing import Final

from bench.checked import add_stream
from turngate import __version__
from turngate.jetstream.api import Api, Call
from turngate.jetstream.connect import Connection
from turngate.jetstream.consume import ConsumeLoop, Delivery
from turngate.jetstream.mailbox import Mailboxes
from turngate.jetstream.request import Requester
from turngate.settings import Settings
from turngate_contracts import codec
from turngate_contracts.esm import ClaimRole, RoleClaimed, RoleOffer
from turngate_contracts.questions import (
    AskQuestion,
    GetQuestion,
    QuestionAsked,
    QuestionFound,
    QuestionOutcome,
    ResolveQuestion,
)
from turngate_contracts.subjects import Subjects, sender_and_session
from turngate_contracts.topology import CONCLUSION, SUPERVISOR, VALIDATION
from turngate_protocol.esm.objective import Objective, Role
from turngate_protocol.esm.roles import RoleRequest
from turngate_protocol.question import AskQuestion as AskCommand
from turngate_protocol.question import CallAccepted, Resolution, Step, ToolCall, ask, decide_call, resolve

RUNNER: Final = "bench"
"""The runner, and its pool."""
CHOICE: Final = "Postgres"
_OPTIONS: Final = [{"label": CHOICE, "description": "Survives a restart"}, {"label": "Memory", "description": "Fast"}]
_PART: Final = {"header": "Store", "question": "Where shall the sessions be kept?", "options": _OPTIONS}
QUESTION: Final = ToolCall("ask_user", "call-1", json.dumps({"questions": [_PART]}))
"""What is asked where questions are measured, and above it what is chosen."""

_PROMPT: Final = "Work on the objective and report as JSON. " * 100
"""As long as the prompt of a worker is."""


class Idle:
    """Takes nothing: what is published stays in its stream, where it can be measured."""

    async def start(self) -> None:
        """Do nothing."""

    async def stop(self, _timeout_ms: int = 10_000) -> bool:
        """Do nothing."""
        return True


class BareService:
    """Takes turns as the validation service does, decides nothing and stores nothing."""

    def __init__(self, connection: Connection, requester: Requester, settings: Settings) -> None:
        self.requester = requester
        self._connection = connection
        self._durability = settings.durability
        self._subjects = Subjects(settings.namespace)
        stream = self._subjects.stream("turns")
        self._loop = ConsumeLoop(connection, stream, VALIDATION, self._on_delivery, window=settings.window)

    async def start(self) -> None:
        """Begin to take turns."""
        await self._loop.start()

    async def stop(self, timeout_ms: int = 10_000) -> bool:
        """Take no more, and say whether all that was taken is acked."""
        return await self._loop.stop(timeout_ms)

    def _on_delivery(self, delivery: Delivery) -> None:
        runner, session = sender_and_session(delivery.subject)
        self.tell(
            self._subjects.mailbox(runner, "verdict"),
            b'{"session":"%b","outcome":"accepted"}' % session.encode(),
            delivery,
        )

    def tell(self, subject: str, event: bytes, delivery: Delivery) -> None:
        """Tell the runner and ack."""
        self._connection.send(subject, event)
        delivery.ack()


class NoopService(BareService):
    """Takes turns, decides nothing, and acks each when its event is stored: the least that loses no outcome."""

    async def start(self) -> None:
        """Make the stream of the events and begin to take turns."""
        await add_stream(self.requester, self._subjects, self._durability)
        await super().start()

    def tell(self, subject: str, event: bytes, delivery: Delivery) -> None:
        """Store the event, which the runner hears, and ack when it is stored."""
        self.requester.publish_nowait(subject, event, lambda _: delivery.ack())


class NoopSupervisor:
    """Takes results and claims as the supervisor does, keeps no state, and offers the next role run at once."""

    def __init__(self, connection: Connection, requester: Requester, settings: Settings) -> None:
        self._connection = connection
        self._requester = requester
        self._subjects = Subjects(settings.namespace)
        self._runs = 0
        stream = self._subjects.stream("esm")
        self._loop = ConsumeLoop(connection, stream, SUPERVISOR, self._on_delivery, window=settings.window)
        self._api: Api | None = None

    async def start(self) -> None:
        """Begin to take results and claims."""
        self._api = await Api.start(self._connection, self._subjects, "supervisor", __version__)
        await self._api.add("role.claim", ClaimRole, self._on_claim, by_pool=True)
        await self._loop.start()
        await self._connection.flush()

    async def stop(self, timeout_ms: int = 10_000) -> bool:
        """Take no more, and say whether all that was taken is acked."""
        ended = await self._loop.stop(timeout_ms)
        if self._api is not None:
            await self._api.stop()
        return ended

    def _on_claim(self, call: Call, claim: ClaimRole) -> None:
        request = RoleRequest(
            session_id=claim.session,
            run_id=claim.role_run,
            base_run_id=claim.role_run,
            generation=claim.generation,
            claim_id=claim.claim,
            role=Role.WORKER,
            prompt=_PROMPT,
            objective=Objective(claim.session, "noop", "Make every test of the parser pass"),
        )
        call.answer(RoleClaimed(request))

    def _on_delivery(self, delivery: Delivery) -> None:
        runner, session = sender_and_session(delivery.subject)
        self._runs += 1
        offer = RoleOffer(session, f"noop-{self._runs}-worker", Role.WORKER, self._runs, runner, 0)
        subject = self._subjects.role_offer(offer.pool, offer.role.value, f"{session}-{offer.role_run}")
        self._requester.publish_nowait(subject, codec.encode(offer), lambda _: delivery.ack())


class NoopQuestions:
    """Answers every request as if one question waited everywhere, and tells its runner of the answer at once."""

    def __init__(self, connection: Connection, _requester: Requester, settings: Settings) -> None:
        self._connection = connection
        self._subjects = Subjects(settings.namespace)
        self._mail = Mailboxes(connection, self._subjects)
        accepted = decide_call(QUESTION)
        assert isinstance(accepted, CallAccepted), "it is a good question"
        step = ask(None, AskCommand("noop", RUNNER, RUNNER, accepted.request), 1)
        assert isinstance(step, Step), "nothing else waits"
        self._pending = step.pending
        self._state = step.state
        self._api: Api | None = None

    async def start(self) -> None:
        """Begin to answer."""
        self._api = await Api.start(self._connection, self._subjects, "validation", __version__)
        await self._api.add("question.ask", AskQuestion, self._on_ask, by_pool=True)
        await self._api.add("question.get", GetQuestion, self._on_get)
        await self._api.add("question.resolve", ResolveQuestion, self._on_resolve)
        await self._connection.flush()

    async def stop(self, _timeout_ms: int = 10_000) -> bool:
        """Answer no more."""
        if self._api is not None:
            await self._api.stop()
        return True

    def _on_ask(self, call: Call, asked: AskQuestion) -> None:
        call.answer(QuestionAsked(asked.session, self._pending))

    def _on_get(self, call: Call, wanted: GetQuestion) -> None:
        call.answer(QuestionFound(wanted.session, RUNNER, 1, self._pending))

    def _on_resolve(self, call: Call, given: ResolveQuestion) -> None:
        resolution = Resolution(given.request_id, given.schema_digest, given.answers)
        step = resolve(self._state, resolution, actor=call.caller, op=given.op, now=2)
        assert isinstance(step, Step), "the question waits"
        assert step.outcome is not None, "it was answered"
        outcome = QuestionOutcome(given.session, step.outcome)
        call.answer(outcome)
        self._mail.nudge(RUNNER, "outcome", outcome)


class NoopTasks:
    """Takes finished tasks as the conclusion service does, and has the parent prompted at once."""

    def __init__(self, connection: Connection, requester: Requester, settings: Settings) -> None:
        self._requester = requester
        self._subjects = Subjects(settings.namespace)
        stream = self._subjects.stream("tasks")
        self._loop = ConsumeLoop(connection, stream, CONCLUSION, self._on_delivery, window=settings.window)
        self._tasks = 0

    async def start(self) -> None:
        """Begin to take tasks."""
        await self._loop.start()

    async def stop(self, timeout_ms: int = 10_000) -> bool:
        """Take no more, and say whether all that was taken is acked."""
        return await self._loop.stop(timeout_ms)

    def _on_delivery(self, delivery: Delivery) -> None:
        pool, session = sender_and_session(delivery.subject)
        self._tasks += 1
        prompt = f'{{"session":"{session}","text":"{_PROMPT[:500]}"}}'
        subject = self._subjects.prompt(pool, f"noop-{self._tasks}")
        self._requester.publish_nowait(subject, prompt.encode(), lambda _: delivery.ack())
