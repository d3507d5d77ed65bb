"""What is going on in a session right now, for lists and status lines: working, waiting, resting, and since when.

It is read off the state and says nothing that is not in it. Whether a pool has a live runner is not in it: whoever
shows that a role waits looks that up beside.
"""

from enum import StrEnum

from msgspec import Struct

from turngate_protocol.esm.objective import Status
from turngate_protocol.esm.state import EsmState
from turngate_protocol.spans import span


class ActivityKind(StrEnum):
    """What a session's supervisor is doing."""

    NONE = "none"
    """There is no objective."""

    RUNNING = "running"
    """A runner holds a role run."""

    WAITING_FOR_RUNNER = "waiting_for_runner"
    """A role run is offered and nobody has claimed it."""

    SCHEDULED = "scheduled"
    """The next continuation is due at some time."""

    WAITING_FOR_PERSON = "waiting_for_person"
    """Blocked, limited, or paused by a failure."""

    PAUSED = "paused"
    """A person paused it."""

    COMPLETE = "complete"
    """It is done."""


class Activity(Struct, frozen=True, omit_defaults=True):
    """What is going on.

    Attributes:
        kind: what.
        since: since when, in milliseconds since the epoch; for `scheduled`, when it is due.
        role: the role that runs or waits.
        role_run_id: its role run.
        runner: who runs it.
        pool: where it is offered, empty for the session's own pool.
        reason: why a person is waited for.
    """

    kind: ActivityKind
    since: int = 0
    role: str = ""
    role_run_id: str = ""
    runner: str = ""
    pool: str = ""
    reason: str = ""


def activity_of(state: EsmState) -> Activity:
    """Return what is going on in the session of `state`."""
    objective = state.objective
    if objective is None:
        return Activity(ActivityKind.NONE)
    if state.continuation is not None:
        run = state.continuation.role_run
        kind = ActivityKind.RUNNING if run.claim_id else ActivityKind.WAITING_FOR_RUNNER
        since = run.claimed_at if run.claim_id else run.wanted_at
        return Activity(kind, since, run.role.value, run.id, run.runner, state.pool)
    if state.halt is not None:
        return Activity(ActivityKind.WAITING_FOR_PERSON, state.halt.since, reason=state.halt.reason.value)
    if state.next_at is not None:
        return Activity(ActivityKind.SCHEDULED, state.next_at)
    kind = ActivityKind.COMPLETE if objective.status is Status.COMPLETE else ActivityKind.PAUSED
    return Activity(kind, objective.updated_at)


def doing(activity: Activity, now: int, runners: int = -1) -> str:
    """Say in words what is going on.

    Args:
        activity: what is.
        now: milliseconds since the epoch.
        runners: how many live runners could take the role that is wanted; -1 where that is not known.
    """
    ago = span(now - activity.since)
    match activity.kind:
        case ActivityKind.NONE:
            return "no objective"
        case ActivityKind.RUNNING:
            return f"{activity.role} on {activity.runner} for {ago}"
        case ActivityKind.WAITING_FOR_RUNNER:
            where = f" of pool {activity.pool}" if activity.pool else ""
            nobody = "; none is alive" if runners == 0 else ""
            return f"{activity.role} waits for a runner{where}, {ago} so far{nobody}"
        case ActivityKind.SCHEDULED:
            return f"next run in {span(activity.since - now)}" if activity.since > now else "next run is due"
        case ActivityKind.WAITING_FOR_PERSON:
            return f"waits for a person, {ago} so far: {activity.reason.replace('_', ' ')}"
        case ActivityKind.PAUSED:
            return f"paused for {ago}"
    return f"complete for {ago}"
