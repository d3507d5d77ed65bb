"""What follows when a role run ends: with a report, with a failure, or too late to matter.

Every function here is the right-hand side of a row of the table in `continuation`. Usage is accounted in each of them,
once per claim. Guidance is consumed only by a role that was applied; a role that failed leaves it for the next.
"""

from typing import Any

from msgspec.structs import replace

from turngate_protocol.esm import transitions
from turngate_protocol.esm.changes import Moment, advanced, changed, ended, halted, role_run_of, under_way, wanted
from turngate_protocol.esm.classify import classify_failure
from turngate_protocol.esm.conditions import is_wanted
from turngate_protocol.esm.guidance import consume_guidance
from turngate_protocol.esm.inputs import RoleFailed, RoleReported
from turngate_protocol.esm.judgement import (
    Outcome,
    apply_interruption,
    apply_recovery,
    apply_review,
    apply_unobserved_recovery,
    apply_worker,
    interruption,
)
from turngate_protocol.esm.objective import Objective, Role, Status, counter
from turngate_protocol.esm.role_reports import WorkerStatus
from turngate_protocol.esm.state import Abandoned, Cause, CauseType, EsmState

Result = RoleReported | RoleFailed


def worker_reported(state: EsmState, told: RoleReported, moment: Moment) -> EsmState:
    """The worker's report is judged: a believable claim goes on to the critic, anything else ends the continuation."""
    before = _accounted(state, told, moment)
    # A claim made with the tool while the worker ran: its report is its last word.
    before = transitions.reopen(before, now=moment.now)
    outcome = apply_worker(before, under_way(state).run_id, told.response, told.evidence, now=moment.now)
    return _applied(state, told, outcome, moment, progress=_is_progress(before, outcome, told))


def review_reported(state: EsmState, told: RoleReported, moment: Moment) -> EsmState:
    """A review is judged: a critic's pass goes on to the audit, an audit's pass completes, anything else rejects."""
    role = role_run_of(state).role
    before = _accounted(state, told, moment)
    outcome = apply_review(before, under_way(state).run_id, role, told.response, told.evidence, now=moment.now)
    return _applied(state, told, outcome, moment, progress=outcome.completed)


def observer_reported(state: EsmState, told: RoleReported, moment: Moment) -> EsmState:
    """What the observer found is recorded; the continuation ends as one that failed."""
    observed = role_run_of(state).interruption
    before = _accounted(state, told, moment)
    outcome = apply_recovery(before, under_way(state).run_id, observed, told.response, told.evidence, now=moment.now)
    cause = _cause(state, told, CauseType.RECOVERY_FINISHED, moment, outcome)
    return changed(state, cause, **ended(state, outcome.objective, moment, progress=False, message=outcome.message))


def observer_failed(state: EsmState, told: RoleFailed, moment: Moment) -> EsmState:
    """Nobody could look at what was left behind; the interruption is recorded all the same."""
    objective = apply_unobserved_recovery(
        _accounted(state, told, moment), role_run_of(state).interruption, now=moment.now
    )
    cause = _failure(state, told, CauseType.RECOVERY_FAILED, moment)
    return changed(state, cause, **ended(state, objective, moment, progress=False, message=cause.message))


def observer_wanted(state: EsmState, told: RoleFailed, moment: Moment) -> EsmState:
    """The role was cut off and could not say where it stood: an observer looks, in the same continuation."""
    role = role_run_of(state).role
    what = interruption(role, told.kind, told.message)
    observer = wanted(under_way(state).run_id, Role.RECOVERY, moment, interrupted=role.value, interruption=what)
    return changed(
        state,
        _failure(state, told, CauseType.ROLE_FAILED, moment),
        objective=_interrupted(state, told, moment),
        continuation=advanced(state, observer),
    )


def recovered(state: EsmState, told: RoleFailed, moment: Moment) -> EsmState:
    """The role stopped in a way that the next continuation can go on from."""
    kind = classify_failure(told.kind, told.message)
    what = interruption(role_run_of(state).role, kind, told.message)
    objective = apply_unobserved_recovery(_interrupted(state, told, moment), what, now=moment.now)
    cause = _failure(state, told, CauseType.ROLE_FAILED, moment)
    return changed(state, cause, **ended(state, objective, moment, progress=False, message=cause.message))


def limited(state: EsmState, told: RoleFailed, moment: Moment) -> EsmState:
    """The provider's limit is reached: every further run would fail, a person decides when to go on."""
    objective = transitions.mark_usage_limited(_interrupted(state, told, moment), now=moment.now)
    return _halted(state, told, objective, moment)


def stopped(state: EsmState, told: RoleFailed, moment: Moment) -> EsmState:
    """The role failed in a way that nobody foresaw: nothing runs until a person has looked."""
    objective = transitions.pause(_interrupted(state, told, moment), now=moment.now)
    return _halted(state, told, objective, moment)


def ignored(state: EsmState, told: Result, moment: Moment) -> EsmState:
    """The result can't change the objective any more: its usage counts if it has not yet, and the reason is kept."""
    late = next((entry for entry in state.abandoned if _is_result_of(entry, told)), None)
    reason = late.reason if late else _why_ignored(state, told, moment)
    if late is None and any(_is_same(cause, told, reason) for cause in (state.cause, *state.ignored)):
        return state  # told again and again: once is enough to know
    objective, counted = state.objective, False
    if late is not None and objective is not None and objective.esm_id == late.esm_id:
        objective, counted = transitions.account_usage(objective, told.tokens, told.duration_ms, now=moment.now), True
    cause = Cause(
        CauseType.RESULT_IGNORED, moment.now, generation=told.generation, role_run_id=told.role_run_id,
        role=late.role.value if late else "", claim_id=told.claim_id, runner=told.runner, reason=reason,
        tokens=counter(told.tokens) if counted else 0, duration_ms=counter(told.duration_ms) if counted else 0,
        status=objective.status.value if objective else "",
    )  # fmt: skip
    left = tuple(entry for entry in state.abandoned if entry is not late)
    return changed(state, cause, objective=objective, abandoned=left)


def _applied(state: EsmState, told: RoleReported, outcome: Outcome, moment: Moment, *, progress: bool) -> EsmState:
    """Return the state after a role that was applied: the next role wanted, or the continuation over."""
    role_run, objective = role_run_of(state), outcome.objective
    cause = _cause(state, told, CauseType.ROLE_FINISHED, moment, outcome)
    guidance = consume_guidance(state.guidance, role_run.guidance)
    if objective.status is Status.COMPLETE_CANDIDATE:
        following = wanted(under_way(state).run_id, Role.CRITIC if role_run.role is Role.WORKER else Role.AUDIT, moment)
        continuation = advanced(state, following)
        return changed(state, cause, objective=objective, guidance=guidance, continuation=continuation)
    if not (outcome.rejected and role_run.role is Role.WORKER):
        # A worker's rejected report says nothing about a blocker that an earlier run met: that streak stays.
        objective = transitions.finish_run(objective, under_way(state).run_id, now=moment.now)
    over = ended(state, objective, moment, progress=progress, message=outcome.message)
    return changed(state, cause, guidance=guidance, **over)


def _is_progress(before: Objective, outcome: Outcome, told: RoleReported) -> bool:
    """Say whether a worker got on: it goes on, used a tool with success, and reports something new."""
    after, evidence = outcome.objective, told.evidence
    return (
        outcome.verdict == WorkerStatus.CONTINUE.value
        and evidence.tool_calls > max(evidence.tool_errors, 0)
        and (after.progress_summary, after.remaining_work) != (before.progress_summary, before.remaining_work)
    )


def _interrupted(state: EsmState, told: RoleFailed, moment: Moment) -> Objective:
    """Return the objective after the failure itself: usage accounted, a claim under review rejected."""
    role = role_run_of(state).role
    objective = _accounted(state, told, moment)
    if role is Role.WORKER:
        objective = transitions.reopen(objective, now=moment.now)
    kind = classify_failure(told.kind, told.message)
    return apply_interruption(objective, under_way(state).run_id, role, kind, told.message, now=moment.now)


def _halted(state: EsmState, told: RoleFailed, objective: Objective, moment: Moment) -> EsmState:
    cause = _failure(state, told, CauseType.ROLE_FAILED, moment)
    fields: dict[str, Any] = {"objective": objective, "continuation": None, "next_at": None}
    return changed(state, cause, **fields, **halted(objective, cause.message, moment.now))


def _accounted(state: EsmState, told: Result, moment: Moment) -> Objective:
    return transitions.account_usage(state.objective, told.tokens, told.duration_ms, now=moment.now)


def _cause(state: EsmState, told: RoleReported, kind: CauseType, moment: Moment, outcome: Outcome) -> Cause:
    return replace(
        _result_cause(state, told, kind, moment),
        status=outcome.objective.status.value,
        verdict=outcome.verdict,
        reason=outcome.reason,
        message=outcome.message,
    )


def _failure(state: EsmState, told: RoleFailed, kind: CauseType, moment: Moment) -> Cause:
    failure = classify_failure(told.kind, told.message)
    message = interruption(role_run_of(state).role, failure, told.message)
    cause = _result_cause(state, told, kind, moment)
    return replace(cause, status="failed", reason=failure.value, message=message)


def _result_cause(state: EsmState, told: Result, kind: CauseType, moment: Moment) -> Cause:
    return Cause(
        kind, moment.now, generation=told.generation, run_id=under_way(state).run_id, role_run_id=told.role_run_id,
        role=role_run_of(state).role.value, claim_id=told.claim_id, runner=told.runner, tokens=counter(told.tokens),
        duration_ms=counter(told.duration_ms), tool_calls=counter(told.evidence.tool_calls),
    )  # fmt: skip


def _is_result_of(entry: Abandoned, told: Result) -> bool:
    return (entry.role_run_id, entry.claim_id, entry.runner) == (told.role_run_id, told.claim_id, told.runner)


def _is_same(cause: Cause | None, told: Result, reason: str) -> bool:
    return (
        cause is not None
        and cause.type is CauseType.RESULT_IGNORED
        and (cause.role_run_id, cause.claim_id, cause.runner, cause.reason)
        == (told.role_run_id, told.claim_id, told.runner, reason)
    )


_SETTLING = (
    CauseType.ROLE_FINISHED, CauseType.ROLE_FAILED, CauseType.RECOVERY_FINISHED, CauseType.RECOVERY_FAILED,
    CauseType.RESULT_IGNORED,
)  # fmt: skip


def _why_ignored(state: EsmState, told: Result, moment: Moment) -> str:
    if is_wanted(state, told, moment):
        return "other_claim" if role_run_of(state).claim_id else "not_claimed"
    told_before = any(
        cause is not None
        and cause.type in _SETTLING
        and cause.reason not in ("unknown", "other_claim", "not_claimed")
        and (cause.role_run_id, cause.claim_id) == (told.role_run_id, told.claim_id)
        for cause in (state.cause, *state.recent, *state.ignored)
    )
    return "duplicate" if told_before else "unknown"
