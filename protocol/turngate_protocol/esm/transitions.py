"""Everything that may happen to an objective: one function a row, frozen structs in, frozen structs out.

    operation                      from                      effect
    -----------------------------  ------------------------  ----------------------------------------------------------
    create                         nothing, complete         active, a new esm id
    edit                           unfinished                new text, everything learnt about the old one forgotten
    clear                          any                       gone
    pause                          unfinished                paused
    mark_usage_limited             active (else unchanged)   usage_limited
    resume                         paused, blocked, limited  active, phase worker; streaks and the claim forgotten
    reopen                         complete_candidate        active, phase worker; the claim forgotten
                                   (else unchanged)
    set_phase                      see PHASE_FROM            phase
    record_worker_progress         active                    summary and remaining work; the recoveries are over
    record_recovery                active                    one more recovery; never a reason to stop
    account_usage                  any                       tokens and milliseconds added
    update_from_model: complete    active                    complete_candidate, phase critic
    update_from_model: blocked     active                    one more, or the first, run with this blocker; 3: blocked
    mark_complete_from_audit       complete_candidate        complete
    reject_completion_candidate    complete_candidate        active, one more rejected run
    reject_worker_report           active                    the same
    record_completion_review       unfinished                the review alone
    finish_run                     active (else unchanged)   streaks that another run left are over

The rules are ESM's. What a row does not name it leaves alone. An argument that can't be used is found before a missing
objective, a missing objective before a transition that is not allowed. Nothing here reads a clock or makes an id: `now`
is in milliseconds since the epoch, ids come in.
"""

from collections.abc import Iterable
from typing import Any, Final

from msgspec.structs import replace

from turngate_protocol.esm.casing import fold
from turngate_protocol.esm.errors import (
    InvalidArgumentError,
    InvalidTransitionError,
    NotFoundError,
    ObjectiveExistsError,
)
from turngate_protocol.esm.objective import (
    BLOCKED_LIMIT,
    Objective,
    Phase,
    Status,
    counter,
    is_unfinished,
)
from turngate_protocol.esm.texts import kept_items, objective_text, required
from turngate_protocol.text import is_blank, trim

UNFINISHED: Final = frozenset(Status) - {Status.COMPLETE}

ALLOWED_FROM: Final[dict[str, frozenset[Status]]] = {
    "edit": UNFINISHED,
    "pause": UNFINISHED,
    "resume": frozenset({Status.PAUSED, Status.BLOCKED, Status.USAGE_LIMITED}),
    "record_worker_progress": frozenset({Status.ACTIVE}),
    "record_recovery": frozenset({Status.ACTIVE}),
    "update_from_model": frozenset({Status.ACTIVE}),
    "mark_complete_from_audit": frozenset({Status.COMPLETE_CANDIDATE}),
    "reject_completion_candidate": frozenset({Status.COMPLETE_CANDIDATE}),
    "reject_worker_report": frozenset({Status.ACTIVE}),
    "record_completion_review": UNFINISHED,
}
"""The column "from" of the table, for the operations that refuse anything else."""

PHASE_FROM: Final[dict[Phase, Status]] = {
    Phase.WORKER: Status.ACTIVE,
    Phase.CRITIC: Status.COMPLETE_CANDIDATE,
    Phase.AUDIT: Status.COMPLETE_CANDIDATE,
    Phase.COMPLETE: Status.COMPLETE,
}
"""The status in which an objective may be in a phase."""

DEFAULT_RECOVERY_SUMMARY: Final = "The last role stopped before it could report: look at what is there before going on."
"""Stands for the summary of a recovery that came without one."""


def create(current: Objective | None, session_id: str, esm_id: str, text: str, *, now: int) -> Objective:
    """Return a new objective for a session that has none, or only a complete one.

    Args:
        current: what the session has.
        session_id: the session.
        esm_id: the id of the new objective; never one that was used before.
        text: what is to be achieved; trimmed, 1 to 65,536 UTF-8 bytes.
        now: milliseconds since the epoch.

    Raises:
        InvalidObjectiveError: the text can't be one.
        ObjectiveExistsError: the session has an unfinished objective.
    """
    text = objective_text(text)
    if current is not None and is_unfinished(current):
        raise ObjectiveExistsError(current)
    return Objective(session_id=session_id, esm_id=esm_id, text=text, created_at=now, updated_at=now)


def edit(current: Objective | None, text: str, *, now: int) -> Objective:
    """Return the objective with a new text, and nothing of what was learnt about the old one; the status stays.

    Raises:
        InvalidObjectiveError: the text can't be one.
        NotFoundError: there is no objective.
        InvalidTransitionError: it is complete.
    """
    text = objective_text(text)
    return _changed(
        _allowed("edit", current),
        now,
        text=text,
        phase=Phase.WORKER,
        progress_summary="",
        remaining_work=(),
        **_NO_BLOCKER,
        **_NO_COMPLETION,
        completion_review="",
        **_NO_REJECTION,
        **_NO_RECOVERY,
    )


def pause(current: Objective | None, *, now: int) -> Objective:
    """Return the objective paused: nothing runs until a person resumes it."""
    return _changed(_allowed("pause", current), now, status=Status.PAUSED)


def mark_usage_limited(current: Objective | None, *, now: int) -> Objective:
    """Return an active objective as usage_limited; any other is returned unchanged."""
    objective = _existing(current)
    if objective.status is not Status.ACTIVE:
        return objective
    return _changed(objective, now, status=Status.USAGE_LIMITED)


def resume(current: Objective | None, *, now: int) -> Objective:
    """Return a stopped objective as active; review, progress and remaining work stay, an active one is unchanged."""
    if _existing(current).status is Status.ACTIVE:
        return _existing(current)
    return _changed(
        _allowed("resume", current),
        now,
        status=Status.ACTIVE,
        phase=Phase.WORKER,
        **_NO_BLOCKER,
        **_NO_COMPLETION,
        **_NO_REJECTION,
        **_NO_RECOVERY,
    )


def reopen(current: Objective | None, *, now: int) -> Objective:
    """Return a candidate as active, its claim forgotten and nothing rejected; any other is returned unchanged.

    This row is ours: the rule book leaves a candidate that was edited a candidate, and the new text would be reviewed
    without a worker ever having seen it.
    """
    objective = _existing(current)
    if objective.status is not Status.COMPLETE_CANDIDATE:
        return objective
    return _changed(objective, now, status=Status.ACTIVE, phase=Phase.WORKER, **_NO_COMPLETION)


def set_phase(current: Objective | None, phase: str, *, now: int) -> Objective:
    """Return the objective in `phase`.

    Raises:
        InvalidArgumentError: there is no such phase.
        NotFoundError: there is no objective.
        InvalidTransitionError: its status has no such phase.
    """
    try:
        wanted = Phase(phase)
    except ValueError:
        raise InvalidArgumentError("phase", phase, f"use one of {', '.join(Phase)}") from None
    objective = _existing(current)
    if objective.status is not PHASE_FROM[wanted]:
        raise InvalidTransitionError("set_phase", objective)
    return _changed(objective, now, phase=wanted)


def record_worker_progress(current: Objective | None, summary: str, remaining: Iterable[str], *, now: int) -> Objective:
    """Return the objective with what its worker reported; the streak of recoveries ends with it."""
    return _changed(
        _allowed("record_worker_progress", current),
        now,
        phase=Phase.WORKER,
        progress_summary=trim(summary),
        remaining_work=kept_items(remaining),
        **_NO_RECOVERY,
    )


def record_recovery(
    current: Objective | None, reason: str, summary: str, remaining: Iterable[str] | None, *, now: int
) -> Objective:
    """Return the objective with one more recovery; it stays active however many there are.

    Args:
        current: the objective.
        reason: what interrupted the role; not blank.
        summary: what was found; a sentence of ours when blank.
        remaining: what is left, or None to keep what was recorded. An empty list clears it.
        now: milliseconds since the epoch.
    """
    reason = required("reason", reason, "say what interrupted the role")
    objective = _allowed("record_recovery", current)
    return _changed(
        objective,
        now,
        recovery_count=objective.recovery_count + 1,
        recovery_reason=reason,
        progress_summary=trim(summary) or DEFAULT_RECOVERY_SUMMARY,
        remaining_work=objective.remaining_work if remaining is None else kept_items(remaining),
    )


def account_usage(current: Objective | None, tokens: int, duration_ms: int, *, now: int) -> Objective:
    """Return the objective with the usage of a run added; negative numbers count as 0, counters stop at 2^53 - 1.

    The version stays: usage is not news to anybody who works on the objective.
    """
    objective = _existing(current)
    if tokens <= 0 and duration_ms <= 0:
        return objective
    return replace(
        objective,
        tokens_used=counter(objective.tokens_used + counter(tokens)),
        time_used_ms=counter(objective.time_used_ms + counter(duration_ms)),
        updated_at=now,
    )


def update_from_model(current: Objective | None, status: str, reason: str, run_id: str, *, now: int) -> Objective:
    """Return the objective after a model's claim that it is complete, or blocked.

    A claim of completion makes a candidate, never a complete objective. A blocker counts once a run; the third run in a
    row with the same one blocks the objective.

    Raises:
        InvalidArgumentError: another status, a blank reason, or a blocker without a run.
        NotFoundError: there is no objective.
        InvalidTransitionError: it is not active.
    """
    run_id = trim(run_id)
    if status not in ("complete", "blocked"):
        raise InvalidArgumentError("status", status, "a model may say complete or blocked")
    reason = required("reason", reason, f"say why the objective is {status}")
    if status == "blocked" and not run_id:
        raise InvalidArgumentError("run_id", run_id, "a blocker is counted by run, name the run")
    objective = _allowed("update_from_model", current)
    if status == "complete":
        return _candidate(objective, reason, run_id, now)
    return _blocker(objective, reason, run_id, now)


def mark_complete_from_audit(current: Objective | None, review: str, *, now: int) -> Objective:
    """Return a candidate as complete: an audit held it against the objective and found nothing missing."""
    review = required("review", review, "say what was found")
    return _changed(
        _allowed("mark_complete_from_audit", current),
        now,
        status=Status.COMPLETE,
        phase=Phase.COMPLETE,
        completion_review=review,
        remaining_work=(),
        **_NO_BLOCKER,
        **_NO_REJECTION,
    )


def reject_completion_candidate(
    current: Objective | None, review: str, missing: Iterable[str] = (), *, run_id: str = "", now: int
) -> Objective:
    """Return a candidate as active again: what is missing is the remaining work.

    Args:
        current: the objective.
        review: why the claim was not accepted; not blank.
        missing: what is left to do.
        run_id: the run whose claim it was, once counted however often it is rejected; empty for the run of the claim.
        now: milliseconds since the epoch.
    """
    if is_blank(run_id):
        run_id = _existing(current).completion_run_id
    return _rejected("reject_completion_candidate", current, run_id, review, missing, now)


def reject_worker_report(
    current: Objective | None, run_id: str, review: str, remaining: Iterable[str] = (), *, now: int
) -> Objective:
    """Return the objective after a report of its worker that could not be accepted: the same as a rejected claim."""
    return _rejected("reject_worker_report", current, run_id, review, remaining, now)


def record_completion_review(current: Objective | None, review: str, *, now: int) -> Objective:
    """Return the objective with a review noted and nothing else changed."""
    review = required("review", review, "say what was found")
    return _changed(_allowed("record_completion_review", current), now, completion_review=review)


def finish_run(current: Objective | None, run_id: str, *, now: int) -> Objective:
    """Return the objective after a run that ended: a streak that another run left was not continued, so it is over."""
    objective, run_id = _existing(current), trim(run_id)
    if objective.status is not Status.ACTIVE or not run_id:
        return objective
    over: dict[str, Any] = {}
    if objective.blocked_run_id not in ("", run_id):
        over |= _NO_BLOCKER
    if objective.rejection_run_id not in ("", run_id):
        over |= _NO_REJECTION
    return _changed(objective, now, **over) if over else objective


_NO_BLOCKER: Final = {"blocked_count": 0, "blocked_reason": "", "blocked_run_id": ""}
_NO_COMPLETION: Final = {"completion_reason": "", "completion_run_id": ""}
_NO_REJECTION: Final = {"rejection_count": 0, "rejection_run_id": ""}
_NO_RECOVERY: Final = {"recovery_count": 0, "recovery_reason": ""}


def _changed(objective: Objective, now: int, **fields: Any) -> Objective:
    return replace(objective, **fields, updated_at=now, version=objective.version + 1)


def _existing(objective: Objective | None) -> Objective:
    if objective is None:
        raise NotFoundError
    return objective


def _allowed(operation: str, current: Objective | None) -> Objective:
    objective = _existing(current)
    if objective.status not in ALLOWED_FROM[operation]:
        raise InvalidTransitionError(operation, objective)
    return objective


def _candidate(objective: Objective, reason: str, run_id: str, now: int) -> Objective:
    return _changed(
        objective,
        now,
        status=Status.COMPLETE_CANDIDATE,
        phase=Phase.CRITIC,
        completion_reason=reason,
        completion_run_id=run_id,
        completion_review="",
        **_NO_BLOCKER,
    )


def _blocker(objective: Objective, reason: str, run_id: str, now: int) -> Objective:
    same = objective.blocked_count > 0 and fold(objective.blocked_reason) == fold(reason)
    # A run counts once, however often it says the same.
    count = objective.blocked_count + (objective.blocked_run_id != run_id) if same else 1
    return _changed(
        objective,
        now,
        status=Status.BLOCKED if count >= BLOCKED_LIMIT else Status.ACTIVE,
        blocked_count=count,
        blocked_reason=reason,
        blocked_run_id=run_id,
        completion_review="",
        **_NO_COMPLETION,
        **_NO_REJECTION,
    )


def _rejected(
    operation: str, current: Objective | None, run_id: str, review: str, missing: Iterable[str], now: int
) -> Objective:
    review, run_id = required("review", review, "say what was found"), trim(run_id)
    objective = _existing(current)
    counted = run_id != "" and objective.rejection_run_id == run_id
    if counted and objective.status not in ALLOWED_FROM[operation]:
        return objective  # the same rejection, told twice
    objective = _allowed(operation, objective)
    return _changed(
        objective,
        now,
        status=Status.ACTIVE,
        completion_review=review,
        remaining_work=kept_items(missing),
        rejection_count=objective.rejection_count + (not counted),
        rejection_run_id=run_id,
    )
