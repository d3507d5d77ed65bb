"""One test for each row about what follows when a role run ends."""

import pytest

from tests.protocol.esm.rows import row
from tests.protocol.esm.scenes import (
    BLOCKER,
    CLAIM,
    CONTINUE,
    FAIL,
    NOW,
    OBSERVED_BLOCKER,
    PASS,
    RESUME,
    TEXT,
    audit,
    claimed,
    critic,
    failure,
    held,
    objective_of,
    observer,
    report,
    run_of,
    status_of,
    timer,
    told,
    waiting,
)
from turngate_protocol.esm import (
    DEFAULT_POLICY,
    CauseType,
    Clear,
    Create,
    Edit,
    Evidence,
    FailureKind,
    Guide,
    HaltReason,
    Phase,
    Role,
    Start,
    Status,
    TimerKind,
    Update,
    advance,
)


@row("result of who does not hold it")
def test_a_result_for_an_edited_objective_changes_only_the_usage(follow):
    state = held()
    edited = advance(state, Edit(text="another bridge"), NOW)
    late = follow(edited, report(state, CLAIM, tokens=7, duration_ms=5))
    assert (status_of(late), objective_of(late).tokens_used, objective_of(late).time_used_ms) == ("active", 7, 5)
    assert objective_of(late).version == objective_of(edited).version
    assert (late.cause.type, late.cause.reason) == (CauseType.RESULT_IGNORED, "edited")


@row("result of who does not hold it")
def test_a_result_told_three_times_is_applied_and_counted_once(follow):
    message = report(held(), CONTINUE, tokens=7)
    once = advance(held(), message, NOW)
    twice = follow(once, message)
    assert (twice.objective, twice.cause.reason) == (once.objective, "duplicate")
    assert follow(twice, message) is twice


@row("result of who does not hold it")
def test_a_result_under_a_claim_that_was_never_granted_is_ignored(follow):
    state = follow(held(), report(held(), CLAIM, claim_id="c9", tokens=7))
    assert (state.objective, state.cause.reason) == (held().objective, "other_claim")


@row("result of who does not hold it")
def test_a_result_of_a_role_run_that_nobody_claimed_is_ignored(follow):
    state = follow(waiting(), report(waiting(), CLAIM, tokens=7))
    assert (state.objective, state.cause.reason) == (waiting().objective, "not_claimed")


@row("result of who does not hold it")
def test_a_result_of_a_run_that_never_was_is_ignored(follow):
    state = follow(held(), report(held(), CLAIM, role_run_id="e9-1-worker", generation=99))
    assert (state.objective, state.cause.reason) == (held().objective, "unknown")


@row("result of who does not hold it")
def test_a_result_for_a_cleared_objective_is_ignored(follow):
    cleared = advance(held(), Clear(), NOW)
    state = follow(cleared, report(held(), CLAIM, tokens=7))
    assert (state.objective, state.cause.reason, state.cause.tokens) == (None, "cleared", 0)


@row("result of who does not hold it")
def test_usage_of_a_cleared_objective_is_not_put_on_the_next_one(follow):
    anew = advance(advance(held(), Clear(), NOW), Create(text=TEXT, esm_id="e2"), NOW)
    assert objective_of(follow(anew, report(held(), CLAIM, tokens=7))).tokens_used == 0


@row("result of who does not hold it")
def test_a_runner_that_comes_back_after_it_was_lost_is_only_accounted(follow):
    state = held()
    lost = advance(state, timer(state, TimerKind.WATCHDOG, runner_present=False), NOW)
    late = follow(lost, report(state, CLAIM, tokens=7))
    assert (run_of(late).role, objective_of(late).tokens_used, late.cause.reason) == (Role.RECOVERY, 7, "lost")


@row("worker reports")
def test_progress_wants_the_next_continuation_at_once(follow):
    state = follow(held(), report(held(), CONTINUE, tokens=7, duration_ms=5))
    assert (state.continuation, state.next_at, state.fruitless) == (None, NOW, 0)
    assert (objective_of(state).remaining_work, objective_of(state).tokens_used) == (("the deck",), 7)
    assert (state.cause.type, state.cause.verdict, state.cause.tokens) == (CauseType.ROLE_FINISHED, "continue", 7)


@row("worker reports")
def test_a_believable_claim_goes_on_to_the_critic(follow):
    state = follow(held(), report(held(), CLAIM))
    assert (status_of(state), run_of(state).role, run_of(state).id) == (
        Status.COMPLETE_CANDIDATE,
        Role.CRITIC,
        "e1-1-critic",
    )


@row("worker reports")
@pytest.mark.parametrize(
    "answer",
    [CONTINUE, CLAIM | {"blockers": ["no steel"]}, "no report", BLOCKER],
    ids=["same", "claim", "none", "block"],
)
def test_a_worker_that_does_not_get_on_is_followed_by_a_delay(follow, answer):
    before = told(held(), CONTINUE)
    again = claimed(advance(before, Start(), NOW))
    state = follow(again, report(again, answer))
    assert state.next_at == NOW + DEFAULT_POLICY.first_delay_ms


@row("worker reports")
def test_a_worker_that_used_no_tool_made_no_progress(follow):
    state = follow(held(), report(held(), CONTINUE, evidence=Evidence()))
    assert state.fruitless == 1


@row("worker reports")
def test_the_report_is_the_last_word_after_a_claim_by_tool(follow):
    state = held()
    by_tool = advance(state, Update(status="complete", reason="it stands", run_id="e1-1"), NOW)
    after = follow(by_tool, report(by_tool, CONTINUE))
    assert (status_of(after), objective_of(after).completion_reason) == (Status.ACTIVE, "")


@row("worker reports")
def test_guidance_that_was_carried_is_consumed_and_guidance_added_since_waits(follow):
    carried = claimed(advance(waiting(), Guide(text="mind the gap"), NOW))
    added = advance(carried, Guide(text="and the wind"), NOW)
    assert [item.text for item in follow(added, report(added, CONTINUE)).guidance] == ["and the wind"]


@row("critic or audit reports")
def test_a_pass_of_the_critic_goes_on_to_the_audit(follow):
    state = follow(critic(), report(critic(), PASS))
    assert (run_of(state).role, objective_of(state).phase) == (Role.AUDIT, Phase.AUDIT)


@row("critic or audit reports")
def test_a_pass_of_the_audit_completes_the_objective(follow):
    state = follow(audit(), report(audit(), PASS))
    assert (status_of(state), state.continuation, state.next_at) == (Status.COMPLETE, None, None)


@row("critic or audit reports")
@pytest.mark.parametrize("scene", [critic, audit])
@pytest.mark.parametrize("answer", [FAIL, "prose", PASS | {"missing_work": ["paint"]}], ids=["fail", "none", "pass"])
def test_any_other_review_makes_the_objective_active_again(follow, scene, answer):
    state = follow(scene(), report(scene(), answer))
    assert (status_of(state), objective_of(state).rejection_count) == (Status.ACTIVE, 1)
    assert state.next_at == NOW + DEFAULT_POLICY.first_delay_ms


@row("observer reports")
def test_what_the_observer_found_is_recorded(follow):
    state = follow(observer(), report(observer(), RESUME))
    assert objective_of(state).remaining_work == ("the other half",)
    assert (objective_of(state).recovery_count, state.fruitless) == (1, 1)
    assert state.cause.type is CauseType.RECOVERY_FINISHED


@row("observer reports")
def test_a_blocker_of_the_observer_counts_as_one_of_the_run(follow):
    state = follow(observer(), report(observer(), OBSERVED_BLOCKER))
    assert (objective_of(state).blocked_count, objective_of(state).blocked_run_id) == (1, "e1-1")


@row("observer fails")
def test_an_observer_that_fails_still_leaves_a_recovery(follow):
    state = follow(observer(), failure(observer(), FailureKind.ERROR, "broke", tokens=3))
    assert (objective_of(state).recovery_count, objective_of(state).tokens_used, status_of(state)) == (1, 3, "active")
    assert state.cause.type is CauseType.RECOVERY_FAILED


@row("role is cut off or lost")
@pytest.mark.parametrize("kind", [FailureKind.DEADLINE, FailureKind.LOST])
def test_a_role_that_was_cut_off_is_followed_by_the_observer(follow, kind):
    state = follow(held(), failure(held(), kind, tokens=3))
    assert run_of(state).id == "e1-1-recovery-observer"
    assert (run_of(state).interrupted, objective_of(state).tokens_used) == ("worker", 3)


@row("role is cut off or lost")
def test_a_review_that_was_cut_off_first_rejects_the_candidate(follow):
    state = follow(critic(), failure(critic(), FailureKind.DEADLINE))
    assert (status_of(state), objective_of(state).rejection_run_id) == (Status.ACTIVE, "e1-1")


@row("role stops and a retry can help")
@pytest.mark.parametrize(
    ("kind", "message"), [("incomplete", ""), ("transport", ""), ("error", "send request: connection reset")]
)
def test_a_role_that_stopped_is_a_recovery(follow, kind, message):
    state = follow(held(), failure(held(), FailureKind(kind), message))
    assert (objective_of(state).recovery_count, status_of(state), state.continuation) == (1, "active", None)
    assert state.next_at == NOW + DEFAULT_POLICY.first_delay_ms


@row("role stops and a retry can help")
def test_guidance_of_a_role_that_failed_is_carried_again(follow):
    carried = claimed(advance(waiting(), Guide(text="mind the gap"), NOW))
    state = follow(carried, failure(carried, FailureKind.INCOMPLETE))
    assert run_of(claimed(advance(state, Start(), NOW))).guidance == ("g1",)


@row("role meets a usage limit")
@pytest.mark.parametrize("scene", [held, critic])
def test_a_usage_limit_waits_for_a_person(follow, scene):
    state = follow(scene(), failure(scene(), FailureKind.ERROR, "429: rate limit reached"))
    assert (status_of(state), state.next_at, state.halt.reason) == ("usage_limited", None, HaltReason.USAGE_LIMITED)


@row("role fails otherwise")
@pytest.mark.parametrize("kind", [FailureKind.ERROR, FailureKind.CANCELLED])
def test_any_other_failure_waits_for_a_person(follow, kind):
    state = follow(held(), failure(held(), kind, "segmentation fault"))
    assert (status_of(state), state.next_at, state.halt.reason) == ("paused", None, HaltReason.FAILED)
    assert "segmentation fault" in state.halt.message
