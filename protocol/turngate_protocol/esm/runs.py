"""How a continuation comes about and who holds its role run: start, claim, release, the looks of the watchdog.

Every function here is the right-hand side of a row of the table in `continuation`.
"""

from msgspec.structs import replace

from turngate_protocol.esm import transitions
from turngate_protocol.esm.changes import Moment, advanced, changed, given_up, role_run_of, unclaimed, under_way, wanted
from turngate_protocol.esm.classify import FailureKind
from turngate_protocol.esm.errors import ClaimRefusedError, NotFoundError
from turngate_protocol.esm.guidance import pending_guidance
from turngate_protocol.esm.inputs import Claim, Release, RoleFailed, Start, Timer
from turngate_protocol.esm.objective import Phase, Role, Status
from turngate_protocol.esm.state import Cause, CauseType, Continuation, EsmState, RoleRun


def start(state: EsmState, told: Start | Timer, moment: Moment) -> EsmState:
    """A continuation starts: with the worker, or with the critic when there is a candidate to challenge.

    Raises:
        NotFoundError: there is no objective.
    """
    objective = state.objective
    if objective is None:
        raise NotFoundError
    candidate = objective.status is Status.COMPLETE_CANDIDATE
    role, phase = (Role.CRITIC, Phase.CRITIC) if candidate else (Role.WORKER, Phase.WORKER)
    if objective.phase is not phase:
        objective = transitions.set_phase(objective, phase, now=moment.now)
    runs = state.runs + 1
    asked = told.run_id if isinstance(told, Start) else None
    run_id = f"{objective.esm_id}-{runs}" if asked is None else asked
    actor, command_id = (told.actor, told.id) if isinstance(told, Start) else ("", "")
    fruitless = 0 if isinstance(told, Start) else state.fruitless
    return changed(
        state,
        Cause(
            CauseType.CONTINUATION_STARTED, moment.now, id=command_id, actor=actor, run_id=run_id,
            status=objective.status.value,
        ),
        objective=objective,
        runs=runs,
        generation=state.generation + 1,
        continuation=Continuation(run_id, moment.now, wanted(run_id, role, moment)),
        next_at=None,
        fruitless=fruitless,
    )  # fmt: skip


def claim(state: EsmState, told: Claim, moment: Moment) -> EsmState:
    """A runner gets the role run: what its prompt is built from is fixed now, the watchdog looks after it."""
    role_run, objective = role_run_of(state), state.objective
    recovery = role_run.role is Role.RECOVERY
    carried = () if recovery else tuple(g.id for g in pending_guidance(state.guidance))
    held = replace(
        role_run,
        claim_id=told.claim_id,
        runner=told.runner,
        claimed_at=moment.now,
        check_at=moment.now + moment.policy.watchdog_ms,
        version=objective.version if objective else 0,
        guidance=carried,
    )
    kind = CauseType.RECOVERY_STARTED if recovery else CauseType.ROLE_STARTED
    return changed(state, _of(state, kind, held, moment, status="running"), continuation=advanced(state, held))


def refuse_unwanted(_state: EsmState, told: Claim, _moment: Moment) -> EsmState:
    """The role run is over, was fenced, or never existed."""
    raise ClaimRefusedError(told.role_run_id, "not_wanted")


def refuse_taken(_state: EsmState, told: Claim, _moment: Moment) -> EsmState:
    """Another claim holds the role run."""
    raise ClaimRefusedError(told.role_run_id, "taken")


def refuse_pool(_state: EsmState, told: Claim, _moment: Moment) -> EsmState:
    """The offer is one of a pool that the session has left since."""
    raise ClaimRefusedError(told.role_run_id, "wrong_pool")


def release(state: EsmState, _told: Release, moment: Moment) -> EsmState:
    """The role run waits for a runner again."""
    held = role_run_of(state)
    cause = _of(state, CauseType.ROLE_RELEASED, held, moment)
    return changed(state, cause, continuation=advanced(state, unclaimed(held, moment)))


def look_again(state: EsmState, _told: Timer, moment: Moment) -> EsmState:
    """All is well, or nobody has claimed yet: the watchdog is set again, an unclaimed role run is offered again."""
    role_run, policy = role_run_of(state), moment.policy
    later = moment.now + (policy.watchdog_ms if role_run.claim_id else policy.redispatch_ms)
    # Another clock may be behind the one that set this timer; a timer that is not later would be the same one.
    later = max(later, role_run.check_at + 1)
    cause = _of(state, CauseType.WATCHED, role_run, moment)
    return changed(state, cause, continuation=advanced(state, replace(role_run, check_at=later)))


def lost(state: EsmState, kind: FailureKind) -> tuple[EsmState, RoleFailed]:
    """Return the state with the held role run given up, and the failure that follows from it."""
    held = role_run_of(state)
    message = "its runner was not heard of any more" if kind is FailureKind.LOST else "it did not end in its time"
    failure = RoleFailed(
        role_run_id=held.id,
        generation=state.generation,
        claim_id=held.claim_id,
        runner=held.runner,
        kind=kind,
        message=message,
    )
    return replace(state, abandoned=given_up(state, kind.value)), failure


def _of(state: EsmState, kind: CauseType, role_run: RoleRun, moment: Moment, status: str = "") -> Cause:
    return Cause(
        kind, moment.now, run_id=under_way(state).run_id, role_run_id=role_run.id, role=role_run.role.value,
        claim_id=role_run.claim_id, runner=role_run.runner, status=status,
    )  # fmt: skip
