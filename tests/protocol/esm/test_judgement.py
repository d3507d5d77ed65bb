"""What a role's answer does to an objective: one test for each line of the table in `judgement`."""

import json
from typing import Any

import pytest
from msgspec.structs import replace

from tests.protocol.esm.scenes import BLOCKER, CLAIM, CONTINUE, FAIL, OBSERVED_BLOCKER, PASS, RESUME, WITH_TOOLS
from turngate_protocol.esm import Evidence, FailureKind, Objective, Role, Status, transitions
from turngate_protocol.esm.judgement import (
    ITEM_BYTES,
    LIST_BYTES,
    OBSERVER_LEAD,
    TEXT_BYTES,
    Outcome,
    apply_interruption,
    apply_recovery,
    apply_review,
    apply_worker,
    interruption,
)
from turngate_protocol.text import byte_length

NOW = 2_000
ACTIVE = Objective("s1", "e1", "build", remaining_work=("everything",))
CANDIDATE = transitions.update_from_model(ACTIVE, "complete", "it stands", "r1", now=NOW)


def worker(answer: dict[str, Any] | str, evidence: Evidence = WITH_TOOLS, objective: Objective = ACTIVE) -> Outcome:
    text = answer if isinstance(answer, str) else json.dumps(answer)
    return apply_worker(objective, "r1", text, evidence, now=NOW)


def review(role: Role, answer: dict[str, Any] | str, evidence: Evidence = WITH_TOOLS) -> Outcome:
    text = answer if isinstance(answer, str) else json.dumps(answer)
    return apply_review(CANDIDATE, "r1", role, text, evidence, now=NOW)


def observed(answer: dict[str, Any] | str, evidence: Evidence = WITH_TOOLS) -> Objective:
    text = answer if isinstance(answer, str) else json.dumps(answer)
    return apply_recovery(ACTIVE, "r1", "worker deadline", text, evidence, now=NOW).objective


def test_a_worker_without_a_report_is_rejected():
    outcome = worker("I am done.")
    assert (outcome.verdict, outcome.rejected, outcome.objective.rejection_run_id) == ("invalid", True, "r1")
    assert outcome.objective.remaining_work == ()


def test_a_worker_that_goes_on_leaves_its_progress():
    outcome = worker(CONTINUE)
    assert (outcome.objective.progress_summary, outcome.objective.remaining_work) == ("one pier stands", ("the deck",))
    assert (outcome.objective.status, outcome.message) == ("active", "one pier stands. remaining work (1): the deck")


def test_a_believable_claim_makes_a_candidate():
    objective = worker(CLAIM).objective
    assert (objective.status, objective.completion_reason) == (
        "complete_candidate",
        "summary: it stands\nevidence: walked over it",
    )


@pytest.mark.parametrize(
    ("fields", "evidence", "reason"),
    [
        ({"remaining_work": ["paint"]}, Evidence(), "lists remaining work or blockers"),
        ({"blockers": ["no steel"]}, WITH_TOOLS, "lists remaining work or blockers"),
        ({"summary": ""}, Evidence(), "without a tool call"),
        ({}, Evidence(tool_calls=-1), "without a tool call"),
        ({"evidence": []}, Evidence(2, {}, 2), "only failed tool calls"),
        ({}, Evidence(2, {}, 5), "only failed tool calls"),
        ({"summary": " "}, WITH_TOOLS, "no summary or no evidence"),
        ({"evidence": [" "]}, WITH_TOOLS, "no summary or no evidence"),
    ],
)
def test_a_claim_that_is_not_believable_is_rejected_for_the_first_reason(fields, evidence, reason):
    outcome = worker(CLAIM | fields, evidence)
    assert outcome.rejected
    assert reason in outcome.reason
    assert outcome.objective.status is Status.ACTIVE


def test_a_rejected_claim_leaves_its_blockers_as_work():
    outcome = worker(CLAIM | {"remaining_work": ["paint"], "blockers": ["no steel"]})
    assert outcome.objective.remaining_work == ("paint", "blocker: no steel")


def test_a_claim_needs_only_one_tool_call_that_succeeded():
    assert worker(CLAIM, Evidence(3, {}, 2)).objective.status is Status.COMPLETE_CANDIDATE


def test_a_blocker_needs_no_tool_call():
    objective = worker(BLOCKER | {"blockers": ["no steel", "no wood"]}, Evidence()).objective
    assert (objective.blocked_count, objective.blocked_reason) == (1, "no steel; no wood")


def test_a_blocker_that_names_nothing_is_rejected():
    outcome = worker(BLOCKER | {"blockers": []})
    assert (outcome.rejected, outcome.objective.blocked_count, outcome.objective.progress_summary) == (True, 0, "stuck")


def test_a_pass_of_the_critic_is_noted_and_goes_to_the_audit():
    objective = review(Role.CRITIC, PASS).objective
    assert (objective.status, objective.phase) == ("complete_candidate", "audit")
    assert objective.completion_review.startswith("review: sound")


def test_a_pass_of_the_audit_completes():
    outcome = review(Role.AUDIT, PASS)
    assert (outcome.completed, outcome.objective.status) == (True, Status.COMPLETE)


@pytest.mark.parametrize("role", [Role.CRITIC, Role.AUDIT])
@pytest.mark.parametrize(
    ("answer", "evidence", "missing"),
    [
        (FAIL, Evidence(), ("the railing",)),
        ({"verdict": "fail"}, WITH_TOOLS, ()),
        ("prose", WITH_TOOLS, ()),
        (PASS | {"missing_work": ["paint"]}, WITH_TOOLS, ("paint",)),
        (PASS, Evidence(), ()),
        (PASS, Evidence(1, {}, 1), ()),
        (PASS | {"review": ""}, WITH_TOOLS, ()),
        (PASS | {"requirements_checked": []}, WITH_TOOLS, ()),
        (PASS | {"evidence": []}, WITH_TOOLS, ()),
    ],
)
def test_anything_but_a_believable_pass_rejects_the_candidate(role, answer, evidence, missing):
    outcome = review(role, answer, evidence)
    assert (outcome.rejected, outcome.completed, outcome.objective.status) == (True, False, "active")
    assert outcome.objective.remaining_work == missing
    assert outcome.objective.completion_review


def test_what_the_observer_found_is_where_the_next_worker_starts():
    objective = observed(RESUME)
    assert objective.progress_summary == OBSERVER_LEAD + "half a pier"
    assert (objective.remaining_work, objective.recovery_reason) == (("the other half",), "worker deadline")


def test_an_observer_that_lists_nothing_keeps_what_was_left():
    assert observed(RESUME | {"remaining_work": [" "]}).remaining_work == ("everything",)


def test_a_blocker_of_the_observer_counts():
    objective = observed(OBSERVED_BLOCKER)
    assert (objective.recovery_count, objective.blocked_reason) == (1, "recovery observer blockers (1): no steel")


@pytest.mark.parametrize(
    ("answer", "evidence"), [("prose", WITH_TOOLS), (RESUME, Evidence()), (OBSERVED_BLOCKER, Evidence(1, {}, 1))]
)
def test_an_observer_that_did_not_look_is_not_listened_to(answer, evidence):
    objective = observed(answer, evidence)
    assert objective.progress_summary == transitions.DEFAULT_RECOVERY_SUMMARY
    assert (objective.recovery_count, objective.blocked_count) == (1, 0)
    assert objective.remaining_work == ("everything",)


@pytest.mark.parametrize("role", [Role.CRITIC, Role.AUDIT])
def test_a_review_that_fails_rejects_the_candidate(role):
    objective = apply_interruption(CANDIDATE, "r1", role, FailureKind.DEADLINE, "late", now=NOW)
    assert (objective.status, objective.rejection_run_id) == ("active", "r1")


@pytest.mark.parametrize("role", [Role.WORKER, Role.RECOVERY])
def test_the_failure_of_another_role_rejects_nothing(role):
    assert apply_interruption(ACTIVE, "r1", role, FailureKind.DEADLINE, "late", now=NOW) is ACTIVE


def test_an_interruption_is_one_line_that_can_be_sent():
    assert interruption(Role.WORKER, FailureKind.LOST, " gone\ud800 ") == "worker lost: gone?"
    assert interruption(Role.WORKER, FailureKind.LOST, "") == "worker lost"


def test_what_is_recorded_is_bounded_and_says_that_it_was_cut():
    objective = worker(
        CONTINUE | {"summary": "é" * 20_000, "remaining_work": [f"{n}" + "w" * 9_000 for n in range(40)]}
    ).objective
    assert byte_length(objective.progress_summary) <= TEXT_BYTES + 4
    assert objective.progress_summary.endswith(" …")
    assert all(byte_length(item) <= ITEM_BYTES + 4 for item in objective.remaining_work)
    assert sum(map(byte_length, objective.remaining_work)) <= LIST_BYTES + 32
    assert objective.remaining_work[-1] == "… and 33 more"


def test_an_objective_never_grows_beyond_its_bounds_whatever_the_roles_write():
    long = "x" * 100_000
    claim = CLAIM | {"summary": long, "evidence": [long] * 4}
    candidate = worker(claim, objective=replace(ACTIVE, text="t")).objective
    rejected = apply_review(
        candidate,
        "r1",
        Role.CRITIC,
        json.dumps(FAIL | {"review": long, "missing_work": [long] * 4}),
        WITH_TOOLS,
        now=NOW,
    ).objective
    assert byte_length(repr(rejected)) < 200_000
