"""The moves that every row of the machine is made of: note a cause, want a role, give a run up, end a continuation.

Each takes a state and returns the next one. They know nothing of what led to them: the table in `continuation` chooses,
these keep the book. Nothing here reads a clock: `Moment` brings the time and the patience along.
"""

from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from turngate_protocol.esm.objective import Objective, Role, Status, can_auto_run
from turngate_protocol.esm.state import (
    ABANDONED_KEPT,
    IGNORED_KEPT,
    RECENT_KEPT,
    Abandoned,
    Cause,
    CauseType,
    Continuation,
    EsmState,
    Halt,
    HaltReason,
    Policy,
    RoleRun,
)
from turngate_protocol.text import cut_bytes

ROLE_RUN_SUFFIX: Final[dict[Role, str]] = {
    Role.WORKER: "worker",
    Role.CRITIC: "critic",
    Role.AUDIT: "audit",
    Role.RECOVERY: "recovery-observer",
}
"""What stands behind a base run id in the id of a role run."""


CAUSE_BYTES: Final = 1024
"""Longest reason or message of a cause: a state carries many of them."""


class Moment(NamedTuple):
    """When something happens, in milliseconds since the epoch, and how patient the machine is."""

    now: int
    policy: Policy


def changed(state: EsmState, cause: Cause, **fields: Any) -> EsmState:
    """Return `state` with `fields` changed because of `cause`; the cause before it joins the earlier ones."""
    revision = state.revision + 1
    recent, ignored, before = state.recent, state.ignored, state.cause
    if before is not None and before.type is CauseType.RESULT_IGNORED:
        ignored = (*ignored, before)[-IGNORED_KEPT:]
    elif before is not None and before.type is not CauseType.WATCHED:
        # A look of the watchdog is no news to anybody: it would push the news out.
        recent = (*recent, before)[-RECENT_KEPT:]
    cause = replace(
        cause,
        revision=revision,
        generation=cause.generation or fields.get("generation", state.generation),
        reason=cut_bytes(cause.reason, CAUSE_BYTES),
        message=cut_bytes(cause.message, CAUSE_BYTES),
    )
    return replace(state, revision=revision, cause=cause, recent=recent, ignored=ignored, **fields)


def under_way(state: EsmState) -> Continuation:
    """Return the continuation under way; to ask where there is none is a mistake of the caller."""
    if state.continuation is None:
        raise AssertionError("no continuation is under way")
    return state.continuation


def role_run_of(state: EsmState) -> RoleRun:
    """Return the role run under way; there is one whenever there is a continuation."""
    return under_way(state).role_run


def wanted(run_id: str, role: Role, moment: Moment, *, interrupted: str = "", interruption: str = "") -> RoleRun:
    """Return a role run of `run_id` that waits for a runner."""
    return RoleRun(
        id=f"{run_id}-{ROLE_RUN_SUFFIX[role]}",
        role=role,
        wanted_at=moment.now,
        check_at=moment.now + moment.policy.redispatch_ms,
        interrupted=interrupted,
        interruption=interruption,
    )


def unclaimed(role_run: RoleRun, moment: Moment) -> RoleRun:
    """Return `role_run` waiting for a runner again, with nothing left of the claim."""
    return RoleRun(
        id=role_run.id,
        role=role_run.role,
        wanted_at=moment.now,
        check_at=moment.now + moment.policy.redispatch_ms,
        interrupted=role_run.interrupted,
        interruption=role_run.interruption,
    )


def given_up(state: EsmState, reason: str) -> tuple[Abandoned, ...]:
    """Return the abandoned runs of `state` with the claimed role run under way among them."""
    continuation, objective = state.continuation, state.objective
    if continuation is None or objective is None or not continuation.role_run.claim_id:
        return state.abandoned
    role_run = continuation.role_run
    entry = Abandoned(
        role_run_id=role_run.id,
        role=role_run.role,
        claim_id=role_run.claim_id,
        runner=role_run.runner,
        esm_id=objective.esm_id,
        generation=state.generation,
        revision=state.revision + 1,
        reason=reason,
    )
    return (*state.abandoned, entry)[-ABANDONED_KEPT:]


def fenced(state: EsmState, reason: str) -> EsmState:
    """Return `state` with the continuation under way given up: nothing that belongs to it changes the objective now."""
    return replace(
        state,
        abandoned=given_up(state, reason),
        continuation=None,
        generation=state.generation + 1,
        next_at=None,
    )


def advanced(state: EsmState, role_run: RoleRun) -> Continuation:
    """Return the continuation under way with `role_run` as its role."""
    return replace(under_way(state), role_run=role_run)


def ended(state: EsmState, objective: Objective, moment: Moment, *, progress: bool, message: str) -> dict[str, Any]:
    """Return the fields of a state whose continuation is over.

    After progress the next one is due at once, else with a delay that doubles every time. An objective that can't run
    wants none; one that is blocked, limited or was paused by a failure waits for a person.
    """
    fruitless = 0 if progress else state.fruitless + 1
    due = can_auto_run(objective)
    return {
        "objective": objective,
        "continuation": None,
        "fruitless": fruitless,
        "next_at": moment.now + delay_ms(fruitless, moment.policy) if due else None,
        **halted(objective, message, moment.now),
    }


def delay_ms(fruitless: int, policy: Policy) -> int:
    """Return how long to wait after this many continuations in a row without progress, in milliseconds."""
    if fruitless == 0:
        return 0
    # The exponent is bounded so that no streak, however long, makes a number of thousands of digits.
    return min(policy.first_delay_ms << min(fruitless - 1, 32), policy.longest_delay_ms)


_HALTS: Final[dict[Status, HaltReason]] = {
    Status.BLOCKED: HaltReason.BLOCKED,
    Status.USAGE_LIMITED: HaltReason.USAGE_LIMITED,
    Status.PAUSED: HaltReason.FAILED,
}


def halted(objective: Objective, message: str, now: int) -> dict[str, Any]:
    """Return the fields that say whether `objective`, left as it is by the machine, waits for a person."""
    reason = _HALTS.get(objective.status)
    if reason is None:
        return {"halt": None}
    if reason is HaltReason.BLOCKED:
        message = objective.blocked_reason
    return {"halt": Halt(reason, message, now), "halted_before": True}
