"""The conditions of the machine's table, each a question about a state, an input and the moment.

A condition never changes anything and never raises: the first row of the table whose condition holds decides. They are
asked from the top, so each may count on those above it in the table not holding.
"""

from collections.abc import Callable
from typing import Any, Final

from turngate_protocol.esm.changes import Moment, role_run_of
from turngate_protocol.esm.classify import FailureKind, classify_failure
from turngate_protocol.esm.inputs import (
    Claim,
    Clear,
    Command,
    Configure,
    Create,
    Edit,
    Guide,
    Pause,
    Release,
    Resume,
    RoleFailed,
    RoleReported,
    Start,
    Timer,
    TimerKind,
    Update,
)
from turngate_protocol.esm.objective import Role, Status, can_auto_run
from turngate_protocol.esm.state import CauseType, EsmState

Condition = Callable[[EsmState, Any, Moment], bool]
Holding = Claim | Release | RoleReported | RoleFailed

_MAKES: Final[dict[type, CauseType]] = {
    Start: CauseType.CONTINUATION_STARTED,
    Create: CauseType.CREATED,
    Edit: CauseType.EDITED,
    Pause: CauseType.PAUSED,
    Resume: CauseType.RESUMED,
    Clear: CauseType.CLEARED,
    Guide: CauseType.GUIDED,
    Configure: CauseType.CONFIGURED,
    Update: CauseType.UPDATED,
}


def always(_state: EsmState, _told: object, _moment: Moment) -> bool:
    """Nothing above held."""
    return True


def seen_before(state: EsmState, told: Command | Start, _moment: Moment) -> bool:
    """The command of this id made one of the states that `state` remembers; another kind of command is another."""
    made = (told.id, _MAKES[type(told)])
    return told.id != "" and any(c is not None and (c.id, c.type) == made for c in (state.cause, *state.recent))


def has_no_objective(state: EsmState, _told: object, _moment: Moment) -> bool:
    """The session has no objective."""
    return state.objective is None


def cannot_run(state: EsmState, _told: object, _moment: Moment) -> bool:
    """The objective is neither active nor a candidate."""
    return not can_auto_run(state.objective)


def is_under_way(state: EsmState, _told: object, _moment: Moment) -> bool:
    """A continuation is under way."""
    return state.continuation is not None


def is_idle(state: EsmState, _told: object, _moment: Moment) -> bool:
    """No continuation is under way."""
    return state.continuation is None


def is_active(state: EsmState, _told: object, _moment: Moment) -> bool:
    """The objective is active."""
    return state.objective is not None and state.objective.status is Status.ACTIVE


def is_paused_by_person(state: EsmState, _told: object, _moment: Moment) -> bool:
    """A person paused the objective, and knows."""
    return state.objective is not None and state.objective.status is Status.PAUSED and state.halt is None


def is_wanted(state: EsmState, told: Holding, _moment: Moment) -> bool:
    """The message names the role run that the state wants."""
    return (
        state.continuation is not None
        and state.generation == told.generation
        and state.continuation.role_run.id == told.role_run_id
    )


def is_not_wanted(state: EsmState, told: Holding, moment: Moment) -> bool:
    """The message names a role run that is over, was fenced, or never existed."""
    return not is_wanted(state, told, moment)


def is_held(state: EsmState, told: Holding, moment: Moment) -> bool:
    """The message comes from the one claim that holds the role run under way."""
    if not is_wanted(state, told, moment):
        return False
    role_run = role_run_of(state)
    # A role run that nobody holds has an empty claim, which must not match a message that names none.
    return role_run.claim_id != "" and (role_run.claim_id, role_run.runner) == (told.claim_id, told.runner)


def is_not_held(state: EsmState, told: Holding, moment: Moment) -> bool:
    """The message comes from somebody else."""
    return not is_held(state, told, moment)


def is_claimed(state: EsmState, _told: object, _moment: Moment) -> bool:
    """Somebody holds the role run under way."""
    return role_run_of(state).claim_id != ""


def is_unclaimed(state: EsmState, _told: object, _moment: Moment) -> bool:
    """Nobody holds the role run under way."""
    return role_run_of(state).claim_id == ""


def is_from_another_pool(state: EsmState, told: Claim, _moment: Moment) -> bool:
    """The offer was one to a pool that the session has left since."""
    return told.pool != "" and state.pool not in ("", told.pool)


def is_nameless(_state: EsmState, told: Claim, _moment: Moment) -> bool:
    """The claim has no id or no runner, so that nobody could be held to it."""
    return told.claim_id == "" or told.runner == ""


def is_worker(state: EsmState, _told: object, _moment: Moment) -> bool:
    """The role under way is the worker."""
    return role_run_of(state).role is Role.WORKER


def is_review(state: EsmState, _told: object, _moment: Moment) -> bool:
    """The role under way is the critic or the audit."""
    return role_run_of(state).role in (Role.CRITIC, Role.AUDIT)


def is_observer(state: EsmState, _told: object, _moment: Moment) -> bool:
    """The role under way is the recovery observer."""
    return role_run_of(state).role is Role.RECOVERY


def failed_by(*kinds: FailureKind) -> Condition:
    """Return the condition that a role failed in one of these ways."""

    def condition(_state: EsmState, told: RoleFailed, _moment: Moment) -> bool:
        return classify_failure(told.kind, told.message) in kinds

    return condition


def is_no_timer_of_ours(state: EsmState, told: Timer, _moment: Moment) -> bool:
    """The timer is an older one, a forged one, or for what is over; what time it is does not matter."""
    if told.generation != state.generation:
        return True
    if told.kind is TimerKind.CONTINUATION:
        return state.next_at != told.at or state.continuation is not None or not can_auto_run(state.objective)
    return state.continuation is None or state.continuation.role_run.check_at != told.at


def is_silent(_state: EsmState, told: Timer, _moment: Moment) -> bool:
    """The runner that holds the role run was not lately heard to hold it."""
    return not told.runner_present


def is_overdue(state: EsmState, _told: Timer, moment: Moment) -> bool:
    """The observer holds on for longer than it may."""
    role_run, policy = role_run_of(state), moment.policy
    limit = role_run.claimed_at + policy.observer_ms + policy.grace_ms
    return role_run.role is Role.RECOVERY and moment.now > limit
