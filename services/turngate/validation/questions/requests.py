"""The requests of questions: asking, answering, giving up, and finding out.

All of them are idempotent: a client that got no answer asks again. Who asks is in the subject; a body can't claim it.
A call that can't be asked is no error but an answer for the model: `denied`, with the reason and a way out.
"""

from msgspec import Struct

from turngate.jetstream.api import Api, Call
from turngate.jetstream.store import Store
from turngate.validation.questions.lane import Command, Decided, QuestionLane, error_of, outcome_of
from turngate.validation.questions.reconciler import QuestionEffects
from turngate_contracts import codec
from turngate_contracts.errors import ErrorCode, IdentityMismatch, InvalidMessage, Refusal, shown
from turngate_contracts.ids import check_id
from turngate_contracts.questions import (
    AskQuestion,
    GetQuestion,
    QuestionAsked,
    QuestionDenied,
    QuestionFound,
    QuestionOutcome,
    RejectQuestion,
    ResolveQuestion,
    WaitingFor,
)
from turngate_protocol.question import asked
from turngate_protocol.question.call import TOOLS, CallDenied, decide_call
from turngate_protocol.question.errors import Refusal as QuestionRefusal
from turngate_protocol.question.errors import RefusalKind
from turngate_protocol.question.model import Resolution, tool_of
from turngate_protocol.question.session import PendingQuestion, SessionQuestions, find_outcome
from turngate_protocol.report.turn import MAX_NUMBER


class _Owner(Struct):
    """The part of a session's turns that says whose it is."""

    pool: str


class QuestionRequests:
    """Answers the requests; `register` puts them on the wire."""

    def __init__(self, api: Api, lane: QuestionLane, effects: QuestionEffects, turns: Store) -> None:
        self._api = api
        self._lane = lane
        self._effects = effects
        self._turns = turns

    async def register(self) -> None:
        """Listen for every request of questions."""
        add = self._api.add
        await add("question.ask", AskQuestion, self.ask, by_pool=True)
        await add("question.resolve", ResolveQuestion, self.resolve)
        await add("question.reject", RejectQuestion, self.reject)
        await add("question.get", GetQuestion, self.get)

    def ask(self, call: Call, request: AskQuestion) -> None:
        """Ask what a tool call asks, or find out what became of it."""
        self._count("question.ask")
        command = _ask_command(call, request)
        if isinstance(command, CallDenied):
            self._lane.counters.questions["denied"] += 1
            call.answer(QuestionAsked(request.session, denied=QuestionDenied(command.reason, command.offer)))
            return
        self._api.run(call, self._ask(request, command))

    def resolve(self, call: Call, request: ResolveQuestion) -> None:
        """Answer a question; the first decision wins."""
        self._count("question.resolve")
        resolution = Resolution(request.request_id, request.schema_digest, request.answers, request.chat)
        op = _op(request.op)

        def command(state: SessionQuestions | None, now: int) -> asked.Step | QuestionRefusal:
            return asked.resolve(state, resolution, actor=call.caller, op=op, now=now)

        self._api.run(call, self._decide(request.session, command))

    def reject(self, call: Call, request: RejectQuestion) -> None:
        """Give a question up without an answer; the first decision wins."""
        self._count("question.reject")
        op = _op(request.op)

        def command(state: SessionQuestions | None, now: int) -> asked.Step | QuestionRefusal:
            return asked.cancel(state, request.request_id, request.schema_digest, actor=call.caller, op=op, now=now)

        self._api.run(call, self._decide(request.session, command))

    def get(self, call: Call, request: GetQuestion) -> None:
        """Give what is known of a session's questions, read from the bucket and not from a cache."""
        self._count("question.get")
        self._api.run(call, self._found(check_id("session", request.session), request.request_id))

    async def _ask(self, request: AskQuestion, command: asked.AskQuestion) -> QuestionAsked:
        await self._check_pool(request.session, request.pool)
        decided = await self._lane.decide(request.session, lambda state, now: asked.ask(state, command, now))
        result = decided.result
        if isinstance(result, asked.Step):
            # The reconciler sets the timer too. But whoever hears that a question waits may rely on its time, also if
            # this process is killed right now; if it is killed before, the question is asked again.
            pending = None if result.outcome else result.pending
            if pending is not None and pending.expires_at is not None:
                await self._effects.arm(request.session)
            return QuestionAsked(request.session, pending, result.outcome)
        if result.kind is RefusalKind.ANOTHER_PENDING and decided.state and decided.state.pending:
            self._lane.counters.questions["denied"] += 1
            return QuestionAsked(request.session, denied=_denied(request, decided.state.pending))
        raise _refusal(result)

    async def _check_pool(self, session: str, pool: str) -> None:
        # A session belongs to the pool that first used it, whether with a turn or with a question.
        entry = await self._turns.load(session)
        if entry.value is None:
            return
        owner = codec.decode(entry.value, _Owner, "a session's state").pool
        if owner != pool:
            raise Refusal(
                ErrorCode.POOL_MISMATCH,
                f"session {session} belongs to pool {owner}, not {pool}; use a runner of that pool",
                session=session,
                pool=owner,
            )

    async def _decide(self, session: str, command: Command) -> QuestionOutcome:
        decided: Decided = await self._lane.decide(check_id("session", session), command)
        result = decided.result
        if isinstance(result, QuestionRefusal):
            raise _refusal(result)
        if result.outcome is None:
            raise RuntimeError("a decision came out as none")
        return outcome_of(session, result.outcome, repeated=not result.changed)

    async def _found(self, session: str, request_id: str) -> QuestionFound:
        entry = await self._lane.lanes.store.load(session)
        if entry.value is None:
            raise Refusal(ErrorCode.NOT_FOUND, f"session {session} has no questions", session=session)
        state = codec.decode(entry.value, SessionQuestions, "a session's questions")
        outcome = find_outcome(state, request_id) if request_id else next(reversed(state.outcomes), None)
        return QuestionFound(session, state.pool, entry.revision, state.pending, outcome)

    def _count(self, name: str) -> None:
        self._lane.counters.requests[name] += 1


def _ask_command(call: Call, request: AskQuestion) -> asked.AskQuestion | CallDenied:
    """Return the command that a request is, or what the model gets when it asks nothing.

    Raises:
        InvalidId, InvalidMessage, IdentityMismatch: the request itself is wrong, not the model's call.
    """
    check_id("session", request.session)
    if request.pool != call.pool:
        raise IdentityMismatch("pool", request.pool, call.pool)
    if request.runner != call.caller:
        raise IdentityMismatch("runner", request.runner, call.caller)
    if not 0 <= request.turn <= MAX_NUMBER:
        raise InvalidMessage(f"turn {shown(request.turn)} must be 0 for none, or up to {MAX_NUMBER}", field="turn")
    if request.batch < 1:
        raise InvalidMessage(f"batch {shown(request.batch)} must be 1 or more, the call itself included", field="batch")
    decision = decide_call(request.call, request.batch)
    if decision is None:
        tools = " and ".join(TOOLS)
        raise InvalidMessage(f"call.name {shown(request.call.name)} asks nothing; {tools} do", field="call.name")
    if isinstance(decision, CallDenied):
        return decision
    return asked.AskQuestion(
        request.session,
        request.pool,
        request.runner,
        decision.request,
        request.policy,
        request.lineage,
        request.turn or None,
    )


def _denied(request: AskQuestion, pending: PendingQuestion) -> QuestionDenied:
    decision = decide_call(request.call, request.batch, pending.request)
    reason = decision.reason if isinstance(decision, CallDenied) else ""
    other = pending.request
    return QuestionDenied(
        reason,
        waiting_for=WaitingFor(
            other.id, other.schema_digest, other.tool_call_id, tool_of(other), pending.runner, pending.asked_at
        ),
    )


def _refusal(refusal: QuestionRefusal) -> Refusal:
    body = error_of(refusal)
    return Refusal(body.code, body.message, **body.details)


def _op(op: str) -> str:
    return check_id("op", op) if op else ""
