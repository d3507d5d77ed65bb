"""What a session's supervisor knows, saved whole at every step.

One `EsmState` is one value of the bucket of objectives: the objective, the guidance that waits, the continuation under
way, the runs that were given up, and why the state came to be. Whoever reads one revision needs no other to go on. It
only grows by fields with defaults. Nothing here changes anything: `continuation` says what follows what.
"""

from enum import StrEnum
from typing import Final

from msgspec import Struct

from turngate_protocol.esm.guidance import Guidance
from turngate_protocol.esm.objective import Objective, Role

RECENT_KEPT: Final = 32
"""Earlier causes that a state carries."""

IGNORED_KEPT: Final = 16
"""Results that changed nothing that a state carries."""

ABANDONED_KEPT: Final = 32
"""Role runs that were given up whose results may still come."""


class CauseType(StrEnum):
    """What can have made a state, as events in the past tense."""

    CREATED = "created"
    EDITED = "edited"
    CLEARED = "cleared"
    PAUSED = "paused"
    RESUMED = "resumed"
    GUIDED = "guided"
    CONFIGURED = "configured"
    UPDATED = "updated"
    CONTINUATION_STARTED = "continuation_started"
    ROLE_STARTED = "role_started"
    ROLE_RELEASED = "role_released"
    ROLE_FINISHED = "role_finished"
    ROLE_FAILED = "role_failed"
    RECOVERY_STARTED = "recovery_started"
    RECOVERY_FINISHED = "recovery_finished"
    RECOVERY_FAILED = "recovery_failed"
    WATCHED = "watched"
    RESULT_IGNORED = "result_ignored"


class Cause(Struct, frozen=True, omit_defaults=True):
    """Why a state came to be: the event that UIs and the history show.

    Attributes:
        type: what happened.
        at: when, in milliseconds since the epoch.
        revision: which change of the session's state it was, from 1.
        id: the id of the command, so that the same command is recognised when it comes again.
        actor: who commanded it.
        generation: the generation it belongs to.
        run_id: the base id of the run.
        role_run_id: the role run.
        role: its role.
        claim_id: the claim under which it ran.
        runner: who ran it.
        status: `running` for a role that started, `failed` for one that failed, else where the objective stands now.
        verdict: what the role said.
        reason: why a report was rejected, a role failed, or a result was ignored.
        message: one line for people.
        tokens: tokens that were accounted.
        duration_ms: milliseconds that were accounted.
        tool_calls: tool calls that the runner saw.
    """

    type: CauseType
    at: int
    revision: int = 0
    id: str = ""
    actor: str = ""
    generation: int = 0
    run_id: str = ""
    role_run_id: str = ""
    role: str = ""
    claim_id: str = ""
    runner: str = ""
    status: str = ""
    verdict: str = ""
    reason: str = ""
    message: str = ""
    tokens: int = 0
    duration_ms: int = 0
    tool_calls: int = 0


class RoleRun(Struct, frozen=True, omit_defaults=True):
    """One role of a continuation, from wanting it to its result.

    Attributes:
        id: the base run id with the role behind it.
        role: the role.
        wanted_at: since when it is wanted, in milliseconds since the epoch.
        check_at: when the watchdog looks at it next, likewise.
        interruption: for the recovery observer, what interrupted the role before it.
        interrupted: for the recovery observer, which role that was.
        claim_id: the claim that holds it, empty while it waits for a runner.
        runner: who holds it.
        claimed_at: since when.
        version: the version of the objective that its prompt was built from.
        guidance: ids of the guidance that its prompt carries.
    """

    id: str
    role: Role
    wanted_at: int
    check_at: int
    interruption: str = ""
    interrupted: str = ""
    claim_id: str = ""
    runner: str = ""
    claimed_at: int = 0
    version: int = 0
    guidance: tuple[str, ...] = ()


class Continuation(Struct, frozen=True, omit_defaults=True):
    """One run of the worker, critic, audit pipeline.

    Attributes:
        run_id: its base id, which every durable write uses.
        started_at: when it started, in milliseconds since the epoch.
        role_run: the role that is wanted or running; there is exactly one.
    """

    run_id: str
    started_at: int
    role_run: RoleRun


class Abandoned(Struct, frozen=True, omit_defaults=True):
    """A claimed role run that was given up: its result can change nothing, its usage still counts, once.

    Attributes:
        role_run_id: the role run.
        role: its role.
        claim_id: the claim under which it runs.
        runner: who runs it.
        esm_id: the objective it ran for.
        generation: its generation.
        revision: the change of the state that gave it up.
        reason: why it was given up.
    """

    role_run_id: str
    role: Role
    claim_id: str
    runner: str
    esm_id: str
    generation: int
    revision: int
    reason: str


class HaltReason(StrEnum):
    """Why an objective waits for a person."""

    BLOCKED = "blocked"
    USAGE_LIMITED = "usage_limited"
    FAILED = "failed"
    PAUSED = "paused"
    """A person paused it: no run waits for them, and they may forget."""


class Halt(Struct, frozen=True, omit_defaults=True):
    """That an objective waits for a person: why, what to know, and since when (milliseconds since the epoch)."""

    reason: HaltReason
    message: str
    since: int


class EsmState(Struct, frozen=True, omit_defaults=True):
    """Everything about one session's objective.

    Attributes:
        session_id: the session.
        revision: counts the changes of this state.
        objective: the objective, None before the first and after a clear.
        guidance: texts of people that wait for a role run.
        guidance_count: how many were ever added; the next id is counted from it.
        generation: counts continuations and fences; what belongs to an older one changes nothing any more.
        runs: runs of this objective; the next run id is counted from it.
        continuation: the run under way, None between runs.
        next_at: when the next one is due (milliseconds since the epoch), None when none is wanted.
        fruitless: continuations in a row without progress; the delay grows with them.
        halt: why a person is waited for, None when nobody is.
        halted_before: whether an inbox entry was ever wanted, so that one may have to be taken back.
        pool: the pool whose runners are preferred; while it is empty, a claim from any pool is taken.
        work_dir: where the agents work, on the runner's host.
        mode: the mode that agents are run in, passed on as it is.
        abandoned: claimed role runs that were given up and whose results have not come, oldest first.
        cause: what made this state.
        recent: earlier causes, oldest first.
        ignored: results that changed nothing, oldest first, each with its reason.
        op: the operation that saved this revision, so that a save whose confirmation got lost can be told; not ours.
    """

    session_id: str
    revision: int = 0
    objective: Objective | None = None
    guidance: tuple[Guidance, ...] = ()
    guidance_count: int = 0
    generation: int = 0
    runs: int = 0
    continuation: Continuation | None = None
    next_at: int | None = None
    fruitless: int = 0
    halt: Halt | None = None
    halted_before: bool = False
    pool: str = ""
    work_dir: str = ""
    mode: str = ""
    abandoned: tuple[Abandoned, ...] = ()
    cause: Cause | None = None
    recent: tuple[Cause, ...] = ()
    ignored: tuple[Cause, ...] = ()
    op: str = ""


class Policy(Struct, frozen=True):
    """How patient the machine is; every duration in milliseconds.

    Attributes:
        first_delay_ms: the delay after the first continuation without progress; it doubles with every further one.
        longest_delay_ms: where it stops growing.
        watchdog_ms: how often a claimed role run is looked at.
        redispatch_ms: how often a role run that nobody claims is offered again.
        observer_ms: how long a recovery observer may take; its runner enforces it, the watchdog makes sure.
        grace_ms: how much later than that the watchdog gives it up.
    """

    first_delay_ms: int = 1_000
    longest_delay_ms: int = 5 * 60_000
    watchdog_ms: int = 30_000
    redispatch_ms: int = 15 * 60_000
    observer_ms: int = 5 * 60_000
    grace_ms: int = 60_000


DEFAULT_POLICY: Final = Policy()


def causes(state: EsmState) -> tuple[Cause, ...]:
    """Return what made `state`, the newest last; ignored results are in `state.ignored`."""
    return (*state.recent, state.cause) if state.cause else state.recent
