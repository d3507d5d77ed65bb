"""Questions for a runner, and answers for a person's client, over the client's one connection.

`ask` is idempotent by the call itself, so nothing has to be remembered: a runner that restarts asks the same again, or
has `reconcile` do it from the calls that have no result yet. `wait` rests on the mailbox for speed only. The truth is
asked for at first, on each reconnect and every 15 s; killing any process on the way, this one included, changes how
long it takes and never what comes out.
"""

import asyncio
import random
from collections.abc import Sequence
from typing import Final, TypeVar

from msgspec import Struct

from turngate.jetstream.connect import Connection
from turngate.runner.calls import Caller, operation_id
from turngate_contracts import codec
from turngate_contracts import questions as q
from turngate_contracts.errors import ErrorCode, InvalidMessage, Refusal, Unavailable, shown
from turngate_contracts.ids import check_id
from turngate_protocol.question.call import TOOLS, CallDenied, ToolCall, decide_call
from turngate_protocol.question.model import Answer, Request
from turngate_protocol.question.policy import AnswerAfter, Policy, WaitForEver
from turngate_protocol.question.session import Lineage, Outcome
from turngate_protocol.text import has_surrogate

R = TypeVar("R", bound=Struct)

POLL_S: Final = 15.0
"""How often a waiting client asks for the truth while its mailbox is silent."""
TIMEOUT_MS: Final = 30_000
AT_ONCE: Final = 32
"""How many waits ask for the truth at the same time: a reconnect wakes all of them."""

FOR_EVER: Final = WaitForEver()
"""The policy of a question that names none."""

_Key = tuple[str, str]


class OutcomeTimeout(Unavailable):
    """The question was not decided in time; it still waits, and waiting for it again is fine."""

    def __init__(self, session: str, request_id: str, timeout_ms: int) -> None:
        super().__init__(
            f"the question {request_id} of session {session} was not decided within {timeout_ms} ms; it still waits",
            session=session,
            request_id=request_id,
        )


class Questions:
    """The questions of one client."""

    def __init__(self, connection: Connection, call: Caller, identity: str, pool: str) -> None:
        self._call = call
        self._identity = identity
        self._pool = pool
        self._waiting: dict[_Key, list[_Waiter]] = {}
        self._asking = asyncio.Semaphore(AT_ONCE)
        connection.on_reconnect(self._on_reconnect)

    async def ask(
        self,
        call: ToolCall,
        session: str,
        *,
        policy: Policy = FOR_EVER,
        lineage: Lineage | None = None,
        turn: int = 0,
        batch: int = 1,
        timeout_ms: int = TIMEOUT_MS,
    ) -> q.QuestionAsked:
        """Ask a session's user what a model's tool call asks; see `TurnClient.ask`."""
        check_id("session", session)
        _check_tool(call)
        if isinstance(policy, AnswerAfter):
            _check_texts(policy.chat, policy.answers)
        if lineage is not None:
            _check_texts(lineage.parent_session + lineage.task)
        if has_surrogate(call.id):
            # No message can carry such an id, but the rules say what the model gets for it.
            denied = decide_call(call, batch)
            reason = denied.reason if isinstance(denied, CallDenied) else "the call's id is not valid Unicode"
            return q.QuestionAsked(session, denied=q.QuestionDenied(reason))
        request = q.AskQuestion(session, self._pool, self._identity, _sendable(call), policy, lineage, turn, batch)
        return await self._call("question.ask", request, q.QuestionAsked, timeout_ms, pool=self._pool)

    async def wait(self, request: Request | str, session: str, *, timeout_ms: int = 0) -> Outcome:
        """Wait until a question is decided; see `TurnClient.wait`."""
        request_id = request if isinstance(request, str) else request.id
        key = check_id("session", session), request_id
        waiter = _Waiter()
        self._waiting.setdefault(key, []).append(waiter)
        try:
            async with asyncio.timeout(timeout_ms / 1000 if timeout_ms else None):
                return await self._outcome(waiter, session, request_id)
        except TimeoutError:
            raise OutcomeTimeout(session, request_id, timeout_ms) from None
        finally:
            waiters = self._waiting[key]
            waiters.remove(waiter)
            if not waiters:
                del self._waiting[key]

    async def reconcile(
        self,
        pending_calls: Sequence[ToolCall],
        session: str,
        *,
        policy: Policy = FOR_EVER,
        lineage: Lineage | None = None,
        turn: int = 0,
        timeout_ms: int = TIMEOUT_MS,
    ) -> q.QuestionAsked | None:
        """Find again what a session waits for; see `TurnClient.reconcile`."""
        if not pending_calls or pending_calls[0].name not in TOOLS:
            return None
        first = pending_calls[0]
        return await self.ask(first, session, policy=policy, lineage=lineage, turn=turn, timeout_ms=timeout_ms)

    async def get(self, session: str, request_id: str = "", *, timeout_ms: int = TIMEOUT_MS) -> q.QuestionFound:
        """Return the question that a session waits for, and the outcome of one, or of its last one.

        Args:
            session: the session's id.
            request_id: the question whose outcome is asked for.
            timeout_ms: how long to try.

        Raises:
            Refusal: not_found when the session never asked anything.
            Unavailable: nobody answered in time.
        """
        check_id("session", session)
        _check_texts(request_id)
        return await self._call("question.get", q.GetQuestion(session, request_id), q.QuestionFound, timeout_ms)

    async def resolve(
        self,
        session: str,
        request: Request,
        *,
        answers: Sequence[Answer] = (),
        chat: str = "",
        op: str = "",
        timeout_ms: int = TIMEOUT_MS,
    ) -> q.QuestionOutcome:
        """Answer a question, or reply to it in chat, as this client's identity.

        Args:
            session: the session that asked.
            request: the question as it was read; an answer to another version of it is refused.
            answers: an answer to each of its questions, in their order.
            chat: one text instead of answers.
            op: this operation's id; without one a random id makes a repeat after a lost reply harmless.
            timeout_ms: how long to try.

        Raises:
            Refusal: already_resolved (details say by whom), no_pending, mismatch, blank_answer, or invalid with the
                part of the answer that does not fit.
            Unavailable: nobody answered in time.
        """
        check_id("session", session)
        _check_texts(chat, answers)
        op = check_id("op", op or operation_id())
        given = q.ResolveQuestion(session, request.id, request.schema_digest, tuple(answers), chat, op)
        return await self._call("question.resolve", given, q.QuestionOutcome, timeout_ms)

    async def reject(
        self, session: str, request: Request, *, op: str = "", timeout_ms: int = TIMEOUT_MS
    ) -> q.QuestionOutcome:
        """Give a question up without an answer; arguments and errors as for `resolve`."""
        check_id("session", session)
        op = check_id("op", op or operation_id())
        given = q.RejectQuestion(session, request.id, request.schema_digest, op)
        return await self._call("question.reject", given, q.QuestionOutcome, timeout_ms)

    def on_mail(self, body: bytes) -> None:
        """Take a nudge from the mailbox: whoever waits for this question has its outcome now."""
        mail = codec.decode(body, q.QuestionOutcome, "a QuestionOutcome")
        for waiter in self._waiting.get((mail.session, mail.outcome.request_id), ()):
            waiter.outcome = mail.outcome
            waiter.woken.set()

    def _on_reconnect(self) -> None:
        # A nudge may have gone by while nobody listened.
        for waiters in self._waiting.values():
            for waiter in waiters:
                waiter.woken.set()

    async def _outcome(self, waiter: "_Waiter", session: str, request_id: str) -> Outcome:
        while True:
            waiter.woken.clear()
            found = await self._found(session, request_id)
            if waiter.outcome is not None:
                return waiter.outcome
            if found is not None:
                if found.outcome is not None:
                    return found.outcome
                if found.pending is None or found.pending.request.id != request_id:
                    raise _nothing_asked(session, request_id)
            try:
                # Spread, so that what began to wait together does not ask together for ever.
                async with asyncio.timeout(POLL_S * random.uniform(0.8, 1.0)):  # noqa: S311
                    await waiter.woken.wait()
            except TimeoutError:
                continue
            if waiter.outcome is not None:
                return waiter.outcome

    async def _found(self, session: str, request_id: str) -> q.QuestionFound | None:
        """Ask for the truth; None while nobody can tell it."""
        try:
            async with self._asking:
                return await self.get(session, request_id, timeout_ms=5_000)
        except Unavailable:
            return None
        except Refusal as error:
            if error.code is ErrorCode.NOT_FOUND:
                raise _nothing_asked(session, request_id) from None
            if error.code is not ErrorCode.UNAVAILABLE:
                raise
            return None


class AsksQuestions:
    """The part of `TurnClient` that a runner asks with; a person's part is `questions`."""

    questions: Questions

    async def ask(
        self,
        call: ToolCall,
        session: str,
        *,
        policy: Policy = FOR_EVER,
        lineage: Lineage | None = None,
        turn: int = 0,
        batch: int = 1,
        timeout_ms: int = TIMEOUT_MS,
    ) -> q.QuestionAsked:
        """Ask a session's user what a model's tool call asks, or find out what became of it.

        Args:
            call: the call of `ask_user` or `ask_user_text`, as the model made it.
            session: the session's id.
            policy: what happens if nobody answers; by default the question waits as long as it takes.
            lineage: where a delegated session comes from; the inbox shows it.
            turn: the turn in which it is asked; 0 if the runner counts none.
            batch: how many calls the model made at once, this one included.
            timeout_ms: how long to try.

        Returns:
            The question that waits now (`wait` for it), or its recorded outcome when the identical call was decided
            before, or `denied` with what the model should read, and which other question waits where that is why.

        Raises:
            Refusal: pool_mismatch; invalid for a policy that does not fit; mismatch.
            InvalidId, InvalidMessage, PayloadTooLarge: it was not sent.
            Unavailable: nobody answered in time; asking again is fine.
        """
        return await self.questions.ask(
            call, session, policy=policy, lineage=lineage, turn=turn, batch=batch, timeout_ms=timeout_ms
        )

    async def wait(self, request: Request | str, session: str, *, timeout_ms: int = 0) -> Outcome:
        """Wait until a question is decided, through restarts of everything.

        Args:
            request: the request, or its id.
            session: the session that asked it.
            timeout_ms: how long to wait; 0 as long as it takes.

        Returns:
            The outcome; `turngate_protocol.question.tool_result` makes of it what the model gets.

        Raises:
            Refusal: no_pending, when this question neither waits nor is remembered: ask it (again).
            OutcomeTimeout: it still waits.
        """
        return await self.questions.wait(request, session, timeout_ms=timeout_ms)

    async def reconcile(
        self,
        pending_calls: Sequence[ToolCall],
        session: str,
        *,
        policy: Policy = FOR_EVER,
        lineage: Lineage | None = None,
        turn: int = 0,
        timeout_ms: int = TIMEOUT_MS,
    ) -> q.QuestionAsked | None:
        """Find again what a session waits for, from the tool calls that have no result yet, oldest first.

        Args:
            pending_calls: the calls; the first one decides.
            session: the session's id.
            policy: as for `ask`, for a question that was never asked because its runner died before.
            lineage: likewise.
            turn: likewise.
            timeout_ms: how long to try.

        Returns:
            What `ask` returns for the first call; None when there is none or it is another tool's, whose owner decides.

        Raises:
            Refusal, InvalidId, Unavailable: as for `ask`.
        """
        return await self.questions.reconcile(
            pending_calls, session, policy=policy, lineage=lineage, turn=turn, timeout_ms=timeout_ms
        )


class _Waiter:
    """Somebody who waits for an outcome."""

    def __init__(self) -> None:
        self.woken = asyncio.Event()
        self.outcome: Outcome | None = None


def _nothing_asked(session: str, request_id: str) -> Refusal:
    return Refusal(
        ErrorCode.NO_PENDING,
        f"the question {shown(request_id)} neither waits in session {session} nor is remembered there; ask it",
        session=session,
        request_id=request_id,
    )


def _check_tool(call: ToolCall) -> None:
    if call.name not in TOOLS:
        raise InvalidMessage(f"call.name {shown(call.name)} asks nothing; {' and '.join(TOOLS)} do", field="call.name")


def _sendable(call: ToolCall) -> ToolCall:
    # In JSON a lone surrogate and its escape are the same character, and UTF-8 carries the escape only.
    if not has_surrogate(call.args):
        return call
    escaped = "".join(f"\\u{ord(char):04x}" if has_surrogate(char) else char for char in call.args)
    return ToolCall(call.name, call.id, escaped)


def _check_texts(one: str, answers: Sequence[Answer] = ()) -> None:
    for text in (one, *(part for answer in answers for part in (answer.custom, *answer.selections))):
        if has_surrogate(text):
            raise InvalidMessage(f"{shown(text)} is not valid Unicode; leave out the lone surrogate")
