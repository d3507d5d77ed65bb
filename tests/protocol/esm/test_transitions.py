"""The table of transitions: from where each is allowed, and what it changes; the vectors hold the rest."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from turngate_protocol.esm import (
    InvalidArgumentError,
    InvalidObjectiveError,
    InvalidTransitionError,
    NotFoundError,
    Objective,
    ObjectiveExistsError,
    Phase,
    Status,
    transitions,
)

THEN, NOW = 1_000, 2_000

FULL = Objective(
    session_id="s1",
    esm_id="e1",
    text="build",
    tokens_used=5,
    time_used_ms=6,
    blocked_count=2,
    blocked_reason="no steel",
    blocked_run_id="r1",
    completion_reason="it stands",
    completion_run_id="r2",
    completion_review="no railing",
    progress_summary="a pier",
    remaining_work=("the deck",),
    rejection_count=2,
    rejection_run_id="r2",
    recovery_count=3,
    recovery_reason="worker deadline",
    created_at=THEN,
    updated_at=THEN,
    version=9,
)
"""An objective with something in every field."""

Operation = Callable[[Objective | None], Objective]

OPERATIONS: dict[str, tuple[Operation, set[str]]] = {
    "edit": (
        lambda o: transitions.edit(o, "rebuild", now=NOW),
        {"active", "paused", "blocked", "usage_limited", "complete_candidate"},
    ),
    "pause": (
        lambda o: transitions.pause(o, now=NOW),
        {"active", "paused", "blocked", "usage_limited", "complete_candidate"},
    ),
    "mark_usage_limited": (lambda o: transitions.mark_usage_limited(o, now=NOW), set(Status)),
    "resume": (lambda o: transitions.resume(o, now=NOW), {"active", "paused", "blocked", "usage_limited"}),
    "reopen": (lambda o: transitions.reopen(o, now=NOW), set(Status)),
    "set_phase worker": (lambda o: transitions.set_phase(o, "worker", now=NOW), {"active"}),
    "set_phase critic": (lambda o: transitions.set_phase(o, "critic", now=NOW), {"complete_candidate"}),
    "set_phase audit": (lambda o: transitions.set_phase(o, "audit", now=NOW), {"complete_candidate"}),
    "set_phase complete": (lambda o: transitions.set_phase(o, "complete", now=NOW), {"complete"}),
    "record_worker_progress": (lambda o: transitions.record_worker_progress(o, "s", ["r"], now=NOW), {"active"}),
    "record_recovery": (lambda o: transitions.record_recovery(o, "why", "s", None, now=NOW), {"active"}),
    "account_usage": (lambda o: transitions.account_usage(o, 1, 1, now=NOW), set(Status)),
    "update complete": (lambda o: transitions.update_from_model(o, "complete", "why", "r9", now=NOW), {"active"}),
    "update blocked": (lambda o: transitions.update_from_model(o, "blocked", "why", "r9", now=NOW), {"active"}),
    "mark_complete_from_audit": (
        lambda o: transitions.mark_complete_from_audit(o, "sound", now=NOW),
        {"complete_candidate"},
    ),
    "reject_completion_candidate": (
        lambda o: transitions.reject_completion_candidate(o, "no", run_id="r9", now=NOW),
        {"complete_candidate"},
    ),
    "reject_worker_report": (lambda o: transitions.reject_worker_report(o, "r9", "no", now=NOW), {"active"}),
    "record_completion_review": (
        lambda o: transitions.record_completion_review(o, "hm", now=NOW),
        {"active", "paused", "blocked", "usage_limited", "complete_candidate"},
    ),
    "finish_run": (lambda o: transitions.finish_run(o, "r9", now=NOW), set(Status)),
}


@pytest.mark.parametrize("status", list(Status))
@pytest.mark.parametrize("name", list(OPERATIONS))
def test_an_operation_is_allowed_exactly_from_where_the_table_says(name, status):
    operation, allowed = OPERATIONS[name]
    objective = replace(FULL, status=status)
    if status in allowed:
        operation(objective)
    else:
        with pytest.raises(InvalidTransitionError) as refused:
            operation(objective)
        assert refused.value.objective == objective


@pytest.mark.parametrize("name", list(OPERATIONS))
def test_an_operation_needs_an_objective(name):
    with pytest.raises(NotFoundError):
        OPERATIONS[name][0](None)


@pytest.mark.parametrize("name", list(OPERATIONS))
def test_an_operation_that_changes_something_counts_a_version_but_usage_does_not(name):
    operation, allowed = OPERATIONS[name]
    for status in map(Status, allowed):
        objective = replace(FULL, status=status)
        after = operation(objective)
        assert (after.version == objective.version) == (after is objective or name == "account_usage")
        assert after is objective or (after.updated_at, after.created_at) == (NOW, THEN)


def test_create_trims_and_starts_afresh():
    objective = transitions.create(None, "s1", "e2", " build ", now=NOW)
    assert objective == Objective("s1", "e2", "build", created_at=NOW, updated_at=NOW)


@pytest.mark.parametrize(
    ("status", "remedy"),
    [(Status.PAUSED, "a person resumes it"), (Status.COMPLETE_CANDIDATE, "by itself"), (Status.COMPLETE, "create the")],
)
def test_what_is_not_allowed_says_what_to_do(status, remedy):
    with pytest.raises(InvalidTransitionError) as refused:
        transitions.update_from_model(replace(FULL, status=status), "complete", "it stands", "r1", now=NOW)
    assert remedy in refused.value.message


def test_a_complete_objective_may_be_replaced():
    assert transitions.create(replace(FULL, status=Status.COMPLETE), "s1", "e2", "build", now=NOW).esm_id == "e2"


@pytest.mark.parametrize("status", [status for status in Status if status != "complete"])
def test_an_unfinished_objective_is_not_replaced(status):
    with pytest.raises(ObjectiveExistsError):
        transitions.create(replace(FULL, status=status), "s1", "e2", "build", now=NOW)


@pytest.mark.parametrize("objective", [None, FULL])
def test_a_blank_text_is_found_first(objective):
    with pytest.raises(InvalidObjectiveError):
        transitions.edit(objective, "  ", now=NOW)
    with pytest.raises(InvalidObjectiveError):
        transitions.create(objective, "s1", "e2", "", now=NOW)


def test_an_edit_forgets_everything_but_identity_usage_and_status():
    after = transitions.edit(replace(FULL, status=Status.BLOCKED), "rebuild", now=NOW)
    assert after == Objective(
        "s1",
        "e1",
        "rebuild",
        Status.BLOCKED,
        tokens_used=5,
        time_used_ms=6,
        created_at=THEN,
        updated_at=NOW,
        version=10,
    )


def test_a_resume_keeps_review_progress_and_remaining_work():
    after = transitions.resume(replace(FULL, status=Status.BLOCKED), now=NOW)
    kept = (after.completion_review, after.progress_summary, after.remaining_work)
    assert kept == ("no railing", "a pier", ("the deck",))
    assert (after.blocked_count, after.completion_reason, after.rejection_count, after.recovery_count) == (0, "", 0, 0)


@pytest.mark.parametrize("phase", ["", "Worker", "done"])
def test_there_are_four_phases(phase):
    with pytest.raises(InvalidArgumentError):
        transitions.set_phase(None, phase, now=NOW)


def test_reopening_forgets_the_claim_and_rejects_nothing():
    after = transitions.reopen(replace(FULL, status=Status.COMPLETE_CANDIDATE, phase=Phase.AUDIT), now=NOW)
    assert (after.status, after.phase, after.completion_reason, after.rejection_count) == ("active", "worker", "", 2)


def test_progress_ends_the_recoveries():
    after = transitions.record_worker_progress(FULL, " a deck ", [" paint ", ""], now=NOW)
    assert (after.progress_summary, after.remaining_work) == ("a deck", ("paint",))
    assert (after.recovery_count, after.recovery_reason) == (0, "")


@pytest.mark.parametrize(("remaining", "kept"), [(None, ("the deck",)), ([], ()), ([" x "], ("x",))])
def test_a_recovery_keeps_what_is_left_unless_it_is_told(remaining, kept):
    after = transitions.record_recovery(FULL, "why", " ", remaining, now=NOW)
    assert (after.remaining_work, after.recovery_count) == (kept, 4)
    assert after.progress_summary == transitions.DEFAULT_RECOVERY_SUMMARY


def test_counters_take_no_negative_and_stop_at_what_json_keeps_exact():
    after = transitions.account_usage(FULL, -3, 2**80, now=NOW)
    assert (after.tokens_used, after.time_used_ms) == (5, 2**53 - 1)


@pytest.mark.parametrize(
    ("status", "reason", "run_id"), [("done", "r", "r1"), ("complete", " ", "r1"), ("blocked", "r", " "), ("", "", "")]
)
def test_a_claim_must_say_what_and_why_and_a_blocker_in_which_run(status, reason, run_id):
    with pytest.raises(InvalidArgumentError):
        transitions.update_from_model(None, status, reason, run_id, now=NOW)


def test_a_claim_takes_back_blocker_and_review():
    after = transitions.update_from_model(FULL, "complete", " it stands ", "r9", now=NOW)
    assert (after.status, after.phase, after.completion_reason) == ("complete_candidate", "critic", "it stands")
    assert (after.blocked_count, after.completion_review, after.rejection_count) == (0, "", 2)


def blocked(*reports: tuple[str, str]) -> Objective:
    objective = Objective("s1", "e1", "build")
    for run_id, reason in reports:
        objective = transitions.update_from_model(objective, "blocked", reason, run_id, now=NOW)
    return objective


@pytest.mark.parametrize(
    ("reports", "count", "status"),
    [
        ([("r1", "no steel")], 1, "active"),
        ([("r1", "no steel"), ("r1", "No Steel")], 1, "active"),
        ([("r1", "no steel"), ("r2", " NO STEEL ")], 2, "active"),
        ([("r1", "no steel"), ("r2", "no wood")], 1, "active"),
        ([("r1", "no steel"), ("r1", "no wood")], 1, "active"),
        ([("r1", "no steel"), ("r2", "no steel"), ("r3", "no steel")], 3, "blocked"),
        ([("r1", "no steel"), ("r2", "no steel"), ("r2", "no steel")], 2, "active"),
    ],
)
def test_a_blocker_counts_once_a_run_and_blocks_the_third_time(reports, count, status):
    assert (blocked(*reports).blocked_count, blocked(*reports).status) == (count, status)


def test_a_rejection_counts_once_a_run():
    candidate = replace(FULL, status=Status.COMPLETE_CANDIDATE)
    once = transitions.reject_completion_candidate(candidate, "no", ["paint"], run_id="r9", now=NOW)
    assert (once.rejection_count, once.remaining_work, once.status) == (3, ("paint",), "active")
    assert transitions.reject_completion_candidate(once, "no", run_id="r9", now=NOW) is once
    assert transitions.reject_worker_report(once, "r9", "still no", now=NOW).rejection_count == 3


def test_a_rejection_without_a_run_counts_for_the_run_of_the_claim():
    candidate = replace(FULL, status=Status.COMPLETE_CANDIDATE, rejection_count=0, rejection_run_id="")
    assert transitions.reject_completion_candidate(candidate, "no", now=NOW).rejection_run_id == "r2"


@pytest.mark.parametrize(
    ("run_id", "blocked_count", "rejection_count"),
    [("r1", 2, 0), ("r2", 0, 2), ("r9", 0, 0), ("", 2, 2), (" r1 ", 2, 0)],
)
def test_a_run_that_ends_ends_the_streaks_that_others_left(run_id, blocked_count, rejection_count):
    after = transitions.finish_run(FULL, run_id, now=NOW)
    assert (after.blocked_count, after.rejection_count) == (blocked_count, rejection_count)
