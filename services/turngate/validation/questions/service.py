"""The wiring of questions in one validation process: what they consume, what they answer, and how they drain."""

from turngate.clock import Clock
from turngate.jetstream.api import Api
from turngate.jetstream.connect import Connection
from turngate.jetstream.consume import ConsumeLoop
from turngate.jetstream.deadletter import DeadLetters
from turngate.jetstream.inbox import Inbox
from turngate.jetstream.keyed import Lanes
from turngate.jetstream.mailbox import Mailboxes
from turngate.jetstream.reconcile import Reconciler
from turngate.jetstream.request import Requester
from turngate.jetstream.store import Store
from turngate.jetstream.suspects import Suspects
from turngate.jetstream.timers import Timers
from turngate.validation.metrics import Counters
from turngate.validation.questions.expiry import Expiry
from turngate.validation.questions.lane import QuestionLane
from turngate.validation.questions.reconciler import QuestionEffects
from turngate.validation.questions.requests import QuestionRequests
from turngate_contracts import codec
from turngate_contracts.messages import SCHEMAS
from turngate_contracts.subjects import Subjects
from turngate_contracts.topology import QUESTION_TIMER, QUESTIONS_RECONCILER
from turngate_protocol.question.session import SessionQuestions


class Questions:
    """One process's share of the questions."""

    def __init__(
        self,
        connection: Connection,
        requester: Requester,
        subjects: Subjects,
        inbox: Inbox,
        turns: Store,
        clock: Clock,
        counters: Counters,
    ) -> None:
        store = Store(requester, subjects, "questions", SCHEMAS[SessionQuestions])
        self.lanes: Lanes[SessionQuestions] = Lanes(store, codec.encode, codec.decoder(SessionQuestions).decode)
        self._turns = turns
        self._lane = QuestionLane(self.lanes, Mailboxes(connection, subjects), clock, counters)
        self._effects = QuestionEffects(self._lane, inbox, Timers(requester, subjects))
        dead = DeadLetters(requester, subjects, clock)
        self.reconciler = Reconciler(connection, store, QUESTIONS_RECONCILER, self._effects.perform, dead)
        timers = subjects.stream("timers")
        careful = Suspects(dead, timers, Expiry(timers, self._lane, dead).on_delivery)
        self.loop = ConsumeLoop(connection, timers, subjects.timer_consumer(QUESTION_TIMER), careful.on_delivery)

    async def start(self, api: Api) -> None:
        """Begin to take timers, to reconcile states and to answer requests."""
        await QuestionRequests(api, self._lane, self._effects, self._turns).register()
        await self.reconciler.start()
        await self.loop.start()

    async def stop(self, timeout_ms: int = 10_000) -> bool:
        """Take no more, finish what is under way, and say whether all of it was finished."""
        taken = await self.loop.stop(timeout_ms)
        return await self.reconciler.stop(timeout_ms) and taken
