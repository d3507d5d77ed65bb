"""What people and models may command at any time, whatever is running.

Every function here is the right-hand side of a row of the table in `continuation`. A command that changes what is
pursued or whether it is pursued fences the continuation under way: its runner is told to stop, its result changes
nothing. A command that is not allowed raises a typed error and leaves the state as it was.
"""

from typing import Any, Final

from msgspec.structs import replace

from turngate_protocol.esm import transitions
from turngate_protocol.esm.changes import Moment, changed, fenced, halted
from turngate_protocol.esm.errors import InvalidArgumentError, NotFoundError, StaleRunError, shown
from turngate_protocol.esm.guidance import add_guidance
from turngate_protocol.esm.inputs import Clear, Command, Configure, Create, Edit, Guide, Pause, Resume, Update
from turngate_protocol.esm.objective import Objective, Role, Status, can_auto_run
from turngate_protocol.esm.state import Cause, CauseType, EsmState
from turngate_protocol.esm.texts import required

ESM_ID_CHARACTERS: Final = 100
"""Longest id of an objective: with a run number behind it, it is still a base run id of at most 110 characters."""

REASON_BYTES: Final = 16 * 1024
"""Longest reason that a model may give with its tool, in UTF-8 bytes."""


def create(state: EsmState, told: Create, moment: Moment) -> EsmState:
    """The session gets an objective, and its first run is due at once."""
    if not 1 <= len(told.esm_id) <= ESM_ID_CHARACTERS:
        raise InvalidArgumentError("esm_id", told.esm_id, f"use 1 to {ESM_ID_CHARACTERS} characters")
    objective = transitions.create(state.objective, state.session_id, told.esm_id, told.text, now=moment.now)
    return changed(
        fenced(state, "created"),
        _cause(CauseType.CREATED, told, objective, moment),
        objective=objective,
        runs=0,
        pool=told.pool or state.pool,
        work_dir=told.work_dir or state.work_dir,
        mode=told.mode or state.mode,
        **_due_now(moment),
    )


def edit(state: EsmState, told: Edit, moment: Moment) -> EsmState:
    """The objective gets a new text; what ran for the old one is fenced, a candidate is worked on again."""
    objective = transitions.edit(state.objective, told.text, now=moment.now)
    objective = transitions.reopen(objective, now=moment.now)
    again = _due_now(moment) if can_auto_run(objective) else {}
    cause = _cause(CauseType.EDITED, told, objective, moment)
    return changed(fenced(state, "edited"), cause, objective=objective, **again)


def pause(state: EsmState, told: Pause, moment: Moment) -> EsmState:
    """Nothing runs any more until a person resumes it; the inbox keeps it in mind."""
    objective = transitions.pause(state.objective, now=moment.now)
    cause = _cause(CauseType.PAUSED, told, objective, moment)
    return changed(fenced(state, "paused"), cause, objective=objective, halt=None, halted_before=True)


def resume(state: EsmState, told: Resume, moment: Moment) -> EsmState:
    """A stopped objective goes on at once."""
    objective = transitions.resume(state.objective, now=moment.now)
    return changed(state, _cause(CauseType.RESUMED, told, objective, moment), objective=objective, **_due_now(moment))


def clear(state: EsmState, told: Clear, moment: Moment) -> EsmState:
    """The objective is gone; the guidance and the generation stay."""
    cause = _cause(CauseType.CLEARED, told, None, moment)
    return changed(fenced(state, "cleared"), cause, objective=None, runs=0, fruitless=0, halt=None)


def guide(state: EsmState, told: Guide, moment: Moment) -> EsmState:
    """A text of a person waits for the next role run, and the next run is not delayed any longer."""
    count = state.guidance_count + 1
    queue = add_guidance(state.guidance, state.objective, f"g{count}", told.text, now=moment.now)
    idle = state.continuation is None and can_auto_run(state.objective)
    cause = _cause(CauseType.GUIDED, told, state.objective, moment)
    return changed(state, cause, guidance=queue, guidance_count=count, **(_due_now(moment) if idle else {}))


def configure(state: EsmState, told: Configure, moment: Moment) -> EsmState:
    """The session prefers another pool, directory or mode; a role run that nobody has claimed moves along."""
    if state.objective is None:
        raise NotFoundError
    pool, work_dir, mode = told.pool or state.pool, told.work_dir or state.work_dir, told.mode or state.mode
    if (pool, work_dir, mode) == (state.pool, state.work_dir, state.mode):
        return state
    cause = _cause(CauseType.CONFIGURED, told, state.objective, moment)
    return changed(state, cause, pool=pool, work_dir=work_dir, mode=mode)


def update(state: EsmState, told: Update, moment: Moment) -> EsmState:
    """A model's claim is recorded: by the worker under way while it goes on, by any other agent as the latest word."""
    required("reason", told.reason, f"say why the objective is {shown(told.status)}", REASON_BYTES)
    run_id, ours = _claimant(state, told)
    before = state.objective
    objective = transitions.update_from_model(before, told.status, told.reason, run_id, now=moment.now)
    cause = replace(_cause(CauseType.UPDATED, told, objective, moment), run_id=run_id, verdict=told.status)
    if objective.status is Status.ACTIVE or (ours and objective.status is Status.COMPLETE_CANDIDATE):
        # A blocker that counts on, or the worker's own claim, which its final report has to back.
        return changed(state, cause, objective=objective)
    stopped = fenced(state, "updated")
    if objective.status is Status.BLOCKED:
        return changed(stopped, cause, objective=objective, **halted(objective, "", moment.now))
    return changed(stopped, cause, objective=objective, **_due_now(moment))


def _claimant(state: EsmState, told: Update) -> tuple[str, bool]:
    """Return the base id of the run that speaks, and whether it is the worker under way.

    Raises:
        StaleRunError: it is a role run of this objective that is over, fenced, or no worker.
    """
    continuation, objective = state.continuation, state.objective
    current = continuation.run_id if continuation else ""
    if continuation is not None and told.run_id in (current, continuation.role_run.id):
        role_run = continuation.role_run
        of_this = told.generation in (None, state.generation)
        if role_run.role is Role.WORKER and role_run.claim_id and of_this:
            return current, True
        raise StaleRunError(told.run_id, current)
    ours_once = objective is not None and told.run_id.startswith(f"{objective.esm_id}-")
    if ours_once or told.generation is not None:
        raise StaleRunError(told.run_id, current)
    return told.run_id, False


def _due_now(moment: Moment) -> dict[str, Any]:
    """Return the fields of a state whose next run a person wants now: no delay, and nobody is waited for."""
    return {"next_at": moment.now, "fruitless": 0, "halt": None}


def _cause(kind: CauseType, told: Command, objective: Objective | None, moment: Moment) -> Cause:
    status = objective.status.value if objective else ""
    return Cause(kind, moment.now, id=told.id, actor=told.actor, status=status)
