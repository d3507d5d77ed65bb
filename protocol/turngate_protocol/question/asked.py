"""The life of a question in its session: asked once, waiting as long as it takes, decided once.

What counts as an answer comes from the question protocol; that a decision is kept, found again and has an author are
rules of this system's own. Nothing here saves, sends or waits: a command and a state give a new state or a refusal, and
whoever saves the new state with compare-and-set makes it true. Two answers that race both get a step from the same
state; the save lets one through, and the other, tried again, finds the decision.

What a command finds of the question it names, and what becomes of it (`=` leaves the state as it is):

    command   never asked       pending                     decided
    -------   ---------------   -------------------------   ----------------------------------------------
    ask       pending           = pending (1)               = the outcome
    resolve   no_pending (2)    answered or chat            = the outcome (3), else already_resolved
    cancel    no_pending (2)    cancelled                   = the outcome (3), else already_resolved
    expire    no_pending (2)    expired, or answered or     already_resolved
                                chat by policy; not_due
                                before its time

1. The identical call from another runner of the pool moves the outcome there: the agent goes on where it asked last.
   Policy, lineage and time stay those of the first.
2. While another question waits: `mismatch` for resolve, cancel and expire, `another_pending` for ask, with the identity
   of the one that waits. The right id with another digest changes nothing in any column: `another_pending` for ask
   while the id's question waits, else `mismatch`.
3. When actor and operation are those of the decision and it was of that sort (an answer or a cancellation): a client
   that did not hear the reply may say it again.

A question is the same when id and digest are. An answer counts until the expiry is recorded, even after its time: what
was saved first decides, not whose clock is ahead. The session remembers its last outcomes only; a call older than those
is a new question.
"""

import re
from collections.abc import Callable
from functools import wraps
from typing import Final, ParamSpec

from msgspec import Struct
from msgspec.structs import replace

from turngate_protocol.cause import Cause
from turngate_protocol.question.errors import (
    InvalidIdError,
    InvalidQuestionError,
    QuestionError,
    Refusal,
    refusal_of,
)
from turngate_protocol.question.model import Request, Resolution, is_same
from turngate_protocol.question.policy import Policy, WaitForEver, check_policy, default_resolution, expires_at
from turngate_protocol.question.refusals import (
    already_resolved,
    another_pending,
    blank_answer,
    no_pending,
    not_due,
    pool_mismatch,
    reused_id,
)
from turngate_protocol.question.rules import (
    blank_part,
    check_same,
    validate_request,
    validate_resolution,
    validate_resolution_shape,
)
from turngate_protocol.question.session import (
    Lineage,
    Outcome,
    OutcomeKind,
    PendingQuestion,
    SessionQuestions,
    find_outcome,
    settle,
)
from turngate_protocol.question.spec import check_identity

_ID: Final = re.compile("[A-Za-z0-9_-]{1,128}")


class AskQuestion(Struct, frozen=True, omit_defaults=True):
    """The command to ask: a runner's question for the user of a session.

    Attributes:
        session: the session that asks.
        pool: the pool of the runner.
        runner: the runner that waits for the outcome.
        request: what is asked.
        policy: what happens if nobody answers.
        lineage: where the session comes from, if it is a delegated one.
        turn: the turn in which it is asked, from 1, if the runner counts turns.
    """

    session: str
    pool: str
    runner: str
    request: Request
    policy: Policy = WaitForEver()
    lineage: Lineage | None = None
    turn: int | None = None


class Step(Struct, frozen=True):
    """A command that was accepted.

    Attributes:
        state: the session after it; to be saved when `changed`.
        changed: whether it differs from before.
        pending: the question, when it waits now.
        outcome: its outcome, when it is decided.
    """

    state: SessionQuestions
    changed: bool
    pending: PendingQuestion | None = None
    outcome: Outcome | None = None


_Arguments = ParamSpec("_Arguments")


def _refusing(transition: Callable[_Arguments, Step]) -> Callable[_Arguments, Step | Refusal]:
    """Let a transition stop where it finds that it can't happen, and return that as data."""

    @wraps(transition)
    def decide(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> Step | Refusal:
        try:
            return transition(*args, **kwargs)
        except QuestionError as error:
            return refusal_of(error)

    return decide


@_refusing
def ask(state: SessionQuestions | None, command: AskQuestion, now: int) -> Step:
    """Ask a question, or find out what became of it if it was asked before.

    Args:
        state: the session, or None when it is not known yet.
        command: the question.
        now: ms since the epoch.

    Returns:
        A step with the question waiting or with its recorded outcome; or a refusal: invalid, invalid_id, pool_mismatch,
        another_pending, mismatch.
    """
    _check_command(command)
    if state is None:
        return _waiting(None, command, _new_pending(command, now), "question.asked", now)
    if command.pool != state.pool:
        raise pool_mismatch(command.session, command.pool, state.pool)
    request = command.request
    if outcome := find_outcome(state, request.id):
        if outcome.schema_digest != request.schema_digest:
            raise reused_id(outcome)
        return Step(state, changed=False, outcome=outcome)
    pending = state.pending
    if pending is None:
        return _waiting(state, command, _new_pending(command, now), "question.asked", now)
    if not is_same(pending.request, request):
        raise another_pending(pending)
    if pending.runner == command.runner:
        return Step(state, changed=False, pending=pending)
    return _waiting(state, command, replace(pending, runner=command.runner), "question.moved", now)


@_refusing
def resolve(state: SessionQuestions | None, resolution: Resolution, *, actor: str, op: str, now: int) -> Step:
    """Answer the question that waits, or reply to it in chat.

    Args:
        state: the session, or None when it is not known.
        resolution: the response; it names the request and the digest that it is for.
        actor: who answers.
        op: the client's name for this operation, the same when it tries again; empty for none.
        now: ms since the epoch.

    Returns:
        A step with the outcome; or a refusal: invalid, blank_answer, no_pending, mismatch, already_resolved.
    """
    validate_resolution_shape(resolution)
    _check_actor(actor, op)
    state, found = _find(state, resolution.request_id, resolution.schema_digest)
    if isinstance(found, Outcome):
        return _again(state, found, actor, op, cancels=False)
    validate_resolution(found.request, resolution)
    if (path := blank_part(resolution)) is not None:
        raise blank_answer(path)
    state, outcome = settle(state, found, _kind_of(resolution), now, resolution=resolution, by=actor, op=op)
    return Step(state, changed=True, outcome=outcome)


@_refusing
def cancel(
    state: SessionQuestions | None, request_id: str, schema_digest: str, *, actor: str, op: str, now: int
) -> Step:
    """Give up the question that waits without an answer.

    Args:
        state: the session, or None when it is not known.
        request_id: the question's id.
        schema_digest: its digest.
        actor: who cancels.
        op: the client's name for this operation, the same when it tries again; empty for none.
        now: ms since the epoch.

    Returns:
        A step with the outcome; or a refusal: invalid, no_pending, mismatch, already_resolved.
    """
    _check_actor(actor, op)
    state, found = _find(state, request_id, schema_digest)
    if isinstance(found, Outcome):
        return _again(state, found, actor, op, cancels=True)
    state, outcome = settle(state, found, OutcomeKind.CANCELLED, now, by=actor, op=op)
    return Step(state, changed=True, outcome=outcome)


@_refusing
def expire(state: SessionQuestions | None, request_id: str, schema_digest: str, now: int) -> Step:
    """Let the policy of a question decide, if its time has come and nobody did.

    Args:
        state: the session, or None when it is not known.
        request_id: the question's id.
        schema_digest: its digest.
        now: ms since the epoch.

    Returns:
        A step with the outcome; or a refusal: no_pending, mismatch, already_resolved, not_due.
    """
    state, found = _find(state, request_id, schema_digest)
    if isinstance(found, Outcome):
        raise already_resolved(found)
    if found.expires_at is None or now < found.expires_at:
        raise not_due(found, now)
    resolution = default_resolution(found.policy, found.request)
    kind = OutcomeKind.EXPIRED if resolution is None else _kind_of(resolution)
    state, outcome = settle(state, found, kind, now, resolution=resolution)
    return Step(state, changed=True, outcome=outcome)


def _find(
    state: SessionQuestions | None, request_id: str, schema_digest: str
) -> tuple[SessionQuestions, PendingQuestion | Outcome]:
    if state is not None and (outcome := find_outcome(state, request_id)):
        check_same("schema_digest", schema_digest, outcome.schema_digest)
        return state, outcome
    if state is None or state.pending is None:
        raise no_pending(request_id)
    request = state.pending.request
    check_same("request_id", request_id, request.id)
    check_same("schema_digest", schema_digest, request.schema_digest)
    return state, state.pending


def _again(state: SessionQuestions, outcome: Outcome, actor: str, op: str, *, cancels: bool) -> Step:
    # The same word twice from the same client: it has not heard the first reply.
    said_before = op != "" and (outcome.by, outcome.op) == (actor, op)
    if said_before and cancels == (outcome.kind is OutcomeKind.CANCELLED):
        return Step(state, changed=False, outcome=outcome)
    raise already_resolved(outcome)


def _waiting(
    state: SessionQuestions | None, command: AskQuestion, pending: PendingQuestion, kind: str, now: int
) -> Step:
    cause = Cause(kind, command.runner, now, pending.turn or 0, message=pending.request.id)
    if state is None:
        state = SessionQuestions(command.session, command.pool, cause)
    state = replace(state, cause=cause, pending=pending, listed=True)
    return Step(state, changed=True, pending=pending)


def _new_pending(command: AskQuestion, now: int) -> PendingQuestion:
    return PendingQuestion(
        request=command.request,
        runner=command.runner,
        asked_at=now,
        asked_by=command.runner,
        policy=command.policy,
        expires_at=expires_at(command.policy, now),
        lineage=command.lineage,
        turn=command.turn,
    )


def _kind_of(resolution: Resolution) -> OutcomeKind:
    return OutcomeKind.CHAT if resolution.chat else OutcomeKind.ANSWERED


def _check_command(command: AskQuestion) -> None:
    lineage = command.lineage
    ids = [("session", command.session), ("pool", command.pool), ("runner", command.runner)]
    if lineage is not None:
        ids.append(("lineage.parent_session", lineage.parent_session))
        if lineage.task:
            ids.append(("lineage.task", lineage.task))
    for field, value in ids:
        if not _ID.fullmatch(value):
            raise InvalidIdError(field, value)
    if command.turn is not None and command.turn < 1:
        raise InvalidQuestionError("turn", f"is {command.turn}", "count turns from 1")
    validate_request(command.request)
    check_policy(command.policy, command.request)


def _check_actor(actor: str, op: str) -> None:
    check_identity("actor", actor)
    if op:
        check_identity("op", op)
