"""The requests of the validation service: checking, asking, answering, dismissing, prompting, listing, joining.

All of them are idempotent: a client that got no answer asks again. Who asks is in the subject; a body can't claim it.
"""

from collections.abc import Callable
from typing import Any

from msgspec import Raw, Struct

from turngate import tracing
from turngate.jetstream.api import Api, Call
from turngate.jetstream.inbox import Inbox
from turngate.jetstream.keyed import Lanes, Save
from turngate.jetstream.pools import ensure_pool
from turngate.jetstream.store import Event
from turngate.validation import listing
from turngate.validation.handler import Intake
from turngate.validation.verdicts import found, refusal_of
from turngate_contracts import codec
from turngate_contracts.errors import ErrorCode, IdentityMismatch, InvalidMessage, Refusal, TurngateError
from turngate_contracts.ids import check_id
from turngate_contracts.messages import (
    AnswerRecorded,
    AnswerTurn,
    CheckReport,
    DismissTurn,
    GetSchema,
    GetTurn,
    InboxPage,
    JoinRunner,
    ListInbox,
    PromptQueued,
    ReportChecked,
    ReportSchema,
    RunnerJoined,
    SendPrompt,
    TurnAnswered,
    TurnDismissed,
    report_bytes,
)
from turngate_contracts.sessions import MAX_SEARCH, ListSessions
from turngate_contracts.topology import Topology
from turngate_protocol.cause import Cause
from turngate_protocol.report.answering import (
    Changed,
    Pick,
    Unchanged,
    answer,
    answer_of,
    dismiss,
    enqueue,
    wants_something,
)
from turngate_protocol.report.decode import decode
from turngate_protocol.report.lookup import Refused, pool_mismatch
from turngate_protocol.report.model import Report
from turngate_protocol.report.normalise import normalise
from turngate_protocol.report.order import choices
from turngate_protocol.report.rules import Rules, buried_proposal_hint, validate
from turngate_protocol.report.schema import json_schema
from turngate_protocol.report.session import MAX_PROBLEMS, Phase, Prompt, SessionTurns, Turn
from turngate_protocol.report.texts import rejection_text
from turngate_protocol.report.turn import MAX_NUMBER

Decided = Changed | Unchanged | Refused
Decide = Callable[[SessionTurns | None], Decided]
Told = Callable[[SessionTurns, bool], Struct]


class Requests:
    """Answers the requests; `register` puts them on the wire."""

    def __init__(self, api: Api, intake: Intake, inbox: Inbox, topology: Topology) -> None:
        self._api = api
        self._intake = intake
        self._lanes: Lanes[SessionTurns] = intake.lanes
        self._inbox = inbox
        self._topology = topology

    async def register(self) -> None:
        """Listen for every request of this service."""
        add = self._api.add
        await add("report.check", CheckReport, self.check)
        await add("report.schema", GetSchema, self.schema)
        await add("turn.get", GetTurn, self.get)
        await add("turn.answer", AnswerTurn, self.answer)
        await add("turn.dismiss", DismissTurn, self.dismiss)
        await add("turn.prompt", SendPrompt, self.prompt)
        await add("turn.list", ListSessions, self.list_sessions)
        await add("inbox.list", ListInbox, self.list_inbox)
        await add("runner.join", JoinRunner, self.join, by_pool=True)

    def check(self, call: Call, request: CheckReport) -> None:
        """Check a report and record nothing."""
        self._count("report.check")
        call.answer(check_report(report_bytes(request), request.mutated, request.max_blocks or self._max_blocks))

    def schema(self, call: Call, request: GetSchema) -> None:
        """Give the report's JSON Schema."""
        self._count("report.schema")
        call.answer(ReportSchema(json_schema(request.max_blocks or self._max_blocks)))

    def get(self, call: Call, request: GetTurn) -> None:
        """Give what is known of a session, read from the bucket and not from a cache."""
        self._count("turn.get")
        session = check_id("session", request.session)

        async def load() -> Struct:
            entry = await self._lanes.store.load(session)
            if entry.value is None:
                raise Refusal(ErrorCode.NOT_FOUND, f"session {session} is not known", session=session)
            state = codec.decode(entry.value, SessionTurns, "a session's state")
            if request.pool not in ("", state.pool):
                refused = refusal_of(pool_mismatch(state, request.pool))
                raise Refusal(refused.code, refused.message, **refused.details)
            return found(state, entry.revision, request)

        self._api.run(call, load())

    def answer(self, call: Call, request: AnswerTurn) -> None:
        """Answer a card; the first answer wins."""
        self._count("turn.answer")
        pick = Pick(
            _turn(request.turn),
            call.caller,
            request.number,
            request.block,
            request.option,
            request.text,
            _op(request.op),
        )

        def told(state: SessionTurns, repeated: bool) -> Struct:
            given = answer_of(state, request.turn)
            if given is None:
                raise InvalidMessage("the answer is gone: a newer turn replaced it")
            if not repeated:
                self._nudge_answered(state, TurnAnswered(state.session, request.turn, given))
            return AnswerRecorded(state.session, request.turn, given, repeated)

        self._change(call, request.session, lambda s, now: answer(s, pick, now), told)

    def dismiss(self, call: Call, request: DismissTurn) -> None:
        """Close a card without an answer."""
        self._count("turn.dismiss")
        turn, op = _turn(request.turn), _op(request.op)

        def told(state: SessionTurns, repeated: bool) -> Struct:
            by = state.current.dismissal.actor if state.current.dismissal else call.caller
            if not repeated:
                self._nudge_answered(state, TurnAnswered(state.session, turn, None, by))
            return TurnDismissed(state.session, turn, by, len(state.outgoing))

        self._change(call, request.session, lambda s, now: dismiss(s, turn, call.caller, now, op), told)

    def prompt(self, call: Call, request: SendPrompt) -> None:
        """Have a service's prompt started in a session, held while a card waits."""
        self._count("turn.prompt")
        session, pool = check_id("session", request.session), check_id("pool", request.pool)
        wanted = check_id("id", request.id)
        kind = check_id("kind", request.kind)

        def decide(state: SessionTurns | None, now: int) -> Decided:
            if state is None:
                turn = Turn(0, now, call.caller, Phase.ENDED)
                state = SessionTurns(session, pool, turn, Cause("turn.prompt_queued", call.caller, now))
            elif state.pool != pool:
                return pool_mismatch(state, pool)
            return enqueue(state, Prompt(wanted, session, request.text, kind, now, actor=call.caller), now)

        def told(state: SessionTurns, _repeated: bool) -> Struct:
            return PromptQueued(wanted, any(p.id == wanted for p in state.held))

        self._change(call, session, decide, told)

    def list_sessions(self, call: Call, request: ListSessions) -> None:
        """List sessions, the last changed first, a page at a time."""
        self._count("turn.list")
        if request.cursor < 0:
            raise InvalidMessage(f"cursor {request.cursor} must be 0 or one that a page gave", field="cursor")
        pool = check_id("pool", request.pool) if request.pool else ""
        if len(request.text) > MAX_SEARCH:
            raise InvalidMessage(
                f"text has {len(request.text)} characters; search for at most {MAX_SEARCH}", field="text"
            )
        self._api.run(call, listing.page(self._lanes.store, request.cursor, request.limit, pool, request.text))

    def list_inbox(self, call: Call, request: ListInbox) -> None:
        """List what waits for a person, oldest first, a page at a time."""
        self._count("inbox.list")
        if request.cursor < 0:
            raise InvalidMessage(f"cursor {request.cursor} must be 0 or one that a page gave", field="cursor")

        async def page() -> InboxPage:
            return await self._inbox.page(request.cursor, request.limit, request.kind)

        self._api.run(call, page())

    def join(self, call: Call, request: JoinRunner) -> None:
        """Make the consumers that a runner of a pool pulls from."""
        self._count("runner.join")
        if request.runner != call.caller:
            raise IdentityMismatch("runner", request.runner, call.caller)
        pool, roles = call.pool, list(dict.fromkeys(role.value for role in request.roles))

        async def made() -> Struct:
            await ensure_pool(self._lanes.store.requester, self._topology, pool, roles)
            subjects, rules = self._topology.subjects, self._intake.rules
            offers = {pool: {role: subjects.role_consumer(pool, role) for role in roles}} if roles else {}
            return RunnerJoined({pool: subjects.prompt_consumer(pool)}, rules.mode.value, rules.max_blocks, offers)

        self._api.run(call, made())

    @property
    def _max_blocks(self) -> int:
        return self._intake.rules.max_blocks

    def _count(self, name: str) -> None:
        self._intake.counters.requests[name] += 1

    def _nudge_answered(self, state: SessionTurns, message: TurnAnswered) -> None:
        self._intake.mailboxes.nudge(state.current.runner, "answered", message)

    def _change(
        self, call: Call, session: str, decide: Callable[[SessionTurns | None, int], Decided], told: Told
    ) -> None:
        clock = self._intake.clock
        self._lanes.submit(_Change(call, check_id("session", session), lambda state: decide(state, clock()), told))


class _Change:
    """A request that changes a session's state, on its way through the lanes."""

    __slots__ = ("_call", "_decide", "_result", "_told", "_trace_parent", "key", "likely_new")

    def __init__(self, call: Call, session: str, decide: Decide, told: Told) -> None:
        self.key = session
        self.likely_new = False
        self._call = call
        self._decide = decide
        self._told = told
        self._result: Decided | None = None
        self._trace_parent = tracing.current()

    def decide(self, state: SessionTurns | None) -> Save[SessionTurns] | None:
        self._result = result = self._decide(state)
        if not isinstance(result, Changed):
            return None
        new = result.state
        return Save(new, Event(new.cause.type, new.cause.at, wants_something(new), self._trace_parent))

    def done(self, _state: SessionTurns | None, _revision: int) -> None:
        result = self._result
        if isinstance(result, Refused):
            self._call.error(refusal_of(result))
        elif isinstance(result, (Changed, Unchanged)):
            try:
                self._call.answer(self._told(result.state, isinstance(result, Unchanged)))
            except TurngateError as error:
                self._call.error(error)

    def failed(self, error: Exception) -> None:
        self._call.error(error)


def check_report(data: bytes | None, mutated: bool, max_blocks: int) -> ReportChecked:
    """Check a report as the gate would, recording nothing."""
    decoded = decode(data)
    if not isinstance(decoded, Report):
        return _rejected(decoded, False)
    report = normalise(decoded)
    problems = validate(report, Rules(max_blocks, mutated))
    if problems:
        return _rejected(problems, buried_proposal_hint(report))
    return ReportChecked(True, report=Raw(codec.encode(report)), choices=tuple(choices(report)))


def _rejected(problems: list[Any], hint: bool) -> ReportChecked:
    kept = tuple(problems[:MAX_PROBLEMS])
    text = rejection_text(kept, len(problems), hint)
    return ReportChecked(False, kept, len(problems), hint, text)


def _turn(turn: int) -> int:
    if not 1 <= turn <= MAX_NUMBER:
        raise InvalidMessage(f"turn {turn} must be a number from 1 to {MAX_NUMBER}", field="turn")
    return turn


def _op(op: str) -> str:
    return check_id("op", op) if op else ""
