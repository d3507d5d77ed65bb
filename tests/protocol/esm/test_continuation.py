"""One test for each row of the continuation table, and the promises that hold for all of them."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

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
    cause_of,
    claim,
    claimed,
    complete,
    created,
    critic,
    empty,
    failure,
    held,
    holder,
    objective_of,
    observer,
    report,
    run_of,
    status_of,
    told,
    waiting,
)
from turngate_protocol.esm import (
    TABLE,
    ClaimRefusedError,
    Clear,
    Configure,
    Create,
    Edit,
    EsmState,
    Evidence,
    FailureKind,
    Guide,
    HaltReason,
    Input,
    InvalidTransitionError,
    NotFoundError,
    ObjectiveExistsError,
    Pause,
    Phase,
    Release,
    Resume,
    Role,
    StaleRunError,
    Start,
    Status,
    Timer,
    TimerKind,
    Update,
    advance,
    row_of,
)
from turngate_protocol.esm.state import DEFAULT_POLICY, CauseType

Test = Callable[..., None]
COVERED: set[str] = set()


def row(name: str) -> Callable[[Test], Test]:
    """Say which row of the table a test is about."""

    def mark(test: Test) -> Test:
        COVERED.add(name)
        test.row = name  # type: ignore[attr-defined]
        return test

    return mark


@pytest.fixture
def follow(request: pytest.FixtureRequest) -> Callable[..., EsmState]:
    """Advance, and make sure that the row which the test is about decided."""

    def step(state: EsmState, message: Input, now: int = NOW) -> EsmState:
        assert row_of(state, message, now).name == request.function.row
        return advance(state, message, now)

    return step


def timer(state: EsmState, kind: TimerKind, **fields: Any) -> Timer:
    at = state.next_at if kind is TimerKind.CONTINUATION else run_of(state).check_at
    assert at is not None
    facts: dict[str, Any] = {"kind": kind, "generation": state.generation, "at": at}
    return Timer(**(facts | fields))


def test_every_row_has_a_test():
    assert {each.name for each in TABLE} == COVERED


def test_the_names_of_the_rows_are_distinct():
    assert len({each.name for each in TABLE}) == len(TABLE)


@row("a command comes again")
def test_the_same_command_told_twice_counts_once(follow):
    once = advance(held(), Guide(text="mind the gap", id="k1"), NOW)
    assert follow(once, Guide(text="mind the gap", id="k1")) is once


@row("start without an objective")
def test_nothing_starts_without_an_objective(follow):
    with pytest.raises(NotFoundError):
        follow(empty(), Start())


@row("start of what can't run")
def test_a_paused_objective_does_not_start(follow):
    paused = advance(created(), Pause(), NOW)
    assert follow(paused, Start()) is paused


@row("start while one is under way")
def test_a_second_start_changes_nothing(follow):
    state = held()
    assert follow(state, Start()) is state


@row("start")
def test_a_start_wants_the_worker_of_a_new_run(follow):
    state = follow(created(), Start(actor="ada"))
    assert (run_of(state).id, run_of(state).role) == ("e1-1-worker", Role.WORKER)
    assert (state.cause.type, state.cause.actor) == (CauseType.CONTINUATION_STARTED, "ada")
    assert state.next_at is None


@row("start")
def test_a_candidate_goes_straight_to_the_critic(follow):
    candidate = advance(created(), Update(status="complete", reason="it stands", run_id="other"), NOW)
    assert run_of(follow(candidate, Start())).role is Role.CRITIC


@row("start")
def test_run_ids_are_counted_from_the_id_of_the_objective(follow):
    again = told(held(), CONTINUE)
    assert run_of(follow(again, Start())).id == "e1-2-worker"


@row("start")
def test_a_person_who_starts_ends_the_streak_that_delays(follow):
    delayed = told(held(), "no report")
    assert (delayed.fruitless, follow(delayed, Start()).fruitless) == (1, 0)


@row("claim of what is not wanted")
def test_a_claim_of_an_older_generation_is_refused(follow):
    edited = advance(waiting(), Edit(text="another bridge"), NOW)
    with pytest.raises(ClaimRefusedError) as refused:
        follow(edited, claim(waiting()))
    assert refused.value.reason == "not_wanted"


@row("claim without a name")
def test_a_claim_without_an_id_is_refused(follow):
    with pytest.raises(ClaimRefusedError):
        follow(waiting(), claim(waiting(), claim_id=""))


@row("claim by who holds it")
def test_a_claim_told_twice_is_granted_twice(follow):
    state = held()
    assert follow(state, claim(state, "c1", "r1")) is state


@row("claim of what another holds")
def test_one_claim_wins(follow):
    with pytest.raises(ClaimRefusedError) as refused:
        follow(held(), claim(held(), "c2", "r2"))
    assert refused.value.reason == "taken"


@row("claim from another pool")
def test_an_offer_to_a_pool_that_was_left_is_refused(follow):
    moved = advance(waiting(), Configure(pool="gpu"), NOW)
    with pytest.raises(ClaimRefusedError) as refused:
        follow(moved, claim(moved, pool="cpu"))
    assert refused.value.reason == "wrong_pool"


@row("claim")
def test_a_claim_starts_the_role_and_the_watchdog(follow):
    state = follow(waiting(), claim(waiting(), "c1", "r1"))
    assert (run_of(state).claim_id, run_of(state).runner) == ("c1", "r1")
    assert run_of(state).check_at == NOW + DEFAULT_POLICY.watchdog_ms
    assert (state.cause.type, state.cause.status) == (CauseType.ROLE_STARTED, "running")


@row("claim")
def test_guidance_is_bound_by_the_claim(follow):
    guided = advance(waiting(), Guide(text="mind the gap"), NOW)
    assert run_of(follow(guided, claim(guided))).guidance == ("g1",)


@row("claim")
def test_an_observer_carries_no_guidance(follow):
    state = advance(held(), failure(held(), FailureKind.DEADLINE), NOW)
    guided = advance(state, Guide(text="mind the gap"), NOW)
    observed = follow(guided, claim(guided))
    assert run_of(observed).guidance == ()
    assert observed.cause.type is CauseType.RECOVERY_STARTED


@row("release by who does not hold it")
def test_only_the_holder_can_give_a_role_run_back(follow):
    state = held()
    assert follow(state, Release(**(holder(state) | {"runner": "r2"}))) is state


@row("release")
def test_a_role_run_that_was_given_back_waits_again(follow):
    state = follow(held(), Release(**holder(held())))
    assert (run_of(state).claim_id, run_of(state).id) == ("", "e1-1-worker")
    assert claimed(state, "c2", "r2").continuation is not None


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


@row("timer that is not wanted")
def test_a_timer_of_an_older_generation_changes_nothing(follow):
    old = timer(created(), TimerKind.CONTINUATION)
    state = held()
    assert follow(state, old) is state


@row("timer that is not wanted")
def test_a_timer_that_was_replaced_changes_nothing(follow):
    delayed = told(held(), "no report")
    guided = advance(delayed, Guide(text="mind the gap"), NOW)
    assert follow(guided, timer(delayed, TimerKind.CONTINUATION)) is guided


@row("next continuation is due")
@pytest.mark.parametrize("skew", [-3_600_000, 0, 3_600_000])
def test_a_timer_that_is_wanted_starts_whatever_the_clock_says(follow, skew):
    state = follow(created(), timer(created(), TimerKind.CONTINUATION), NOW + skew)
    assert run_of(state).role is Role.WORKER


@row("watchdog finds that nobody has claimed")
def test_a_role_run_that_nobody_claims_waits_and_is_offered_again(follow):
    state = follow(waiting(), timer(waiting(), TimerKind.WATCHDOG, runner_present=False))
    assert (run_of(state).claim_id, run_of(state).wanted_at) == ("", NOW)
    assert state.cause.type is CauseType.WATCHED


@row("watchdog misses the runner")
def test_a_lost_runner_is_followed_by_the_observer(follow):
    state = follow(held(), timer(held(), TimerKind.WATCHDOG, runner_present=False))
    assert run_of(state).role is Role.RECOVERY
    assert (state.cause.type, state.cause.reason) == (CauseType.ROLE_FAILED, "lost")


@row("watchdog misses the runner")
def test_an_observer_that_is_lost_is_not_observed_again(follow):
    state = follow(observer(), timer(observer(), TimerKind.WATCHDOG, runner_present=False))
    assert (state.continuation, objective_of(state).recovery_count) == (None, 1)


@row("watchdog finds the observer overdue")
def test_an_observer_that_never_ends_is_given_up(follow):
    much_later = NOW + DEFAULT_POLICY.observer_ms + DEFAULT_POLICY.grace_ms + 1
    state = follow(observer(), timer(observer(), TimerKind.WATCHDOG), much_later)
    assert (state.continuation, objective_of(state).recovery_count) == (None, 1)


@row("watchdog finds all well")
def test_a_worker_may_run_for_ever(follow):
    a_year_later = NOW + 365 * 24 * 3_600_000
    state = follow(held(), timer(held(), TimerKind.WATCHDOG), a_year_later)
    assert run_of(state).check_at == a_year_later + DEFAULT_POLICY.watchdog_ms


@row("watchdog finds all well")
def test_the_watchdog_moves_on_when_the_clock_is_behind(follow):
    state = follow(held(), timer(held(), TimerKind.WATCHDOG), NOW - 3_600_000)
    assert run_of(state).check_at > run_of(held()).check_at


@row("create")
def test_a_new_objective_is_due_at_once(follow):
    state = follow(empty(), Create(text=f" {TEXT} ", esm_id="e1", pool="gpu", work_dir="/w", mode="fast"))
    assert (objective_of(state).text, state.next_at) == (TEXT, NOW)
    assert (state.pool, state.work_dir, state.mode) == ("gpu", "/w", "fast")


@row("create")
def test_an_unfinished_objective_is_not_replaced(follow):
    with pytest.raises(ObjectiveExistsError):
        follow(held(), Create(text="another", esm_id="e2"))


@row("edit")
def test_an_edit_gives_the_new_text_a_worker(follow):
    state = follow(critic(), Edit(text="another bridge"))
    assert (status_of(state), state.continuation, state.next_at) == (Status.ACTIVE, None, NOW)
    assert [gone.role_run_id for gone in state.abandoned] == ["e1-1-critic"]


@row("edit")
def test_an_edit_of_a_paused_objective_starts_nothing(follow):
    state = follow(advance(held(), Pause(), NOW), Edit(text="another bridge"))
    assert (status_of(state), state.next_at) == (Status.PAUSED, None)


@row("pause of what a person paused")
def test_a_second_pause_changes_nothing(follow):
    paused = advance(held(), Pause(), NOW)
    assert follow(paused, Pause()) is paused


@row("pause")
def test_a_pause_fences_what_runs(follow):
    state = follow(held(), Pause())
    assert (status_of(state), state.continuation, state.next_at) == (Status.PAUSED, None, None)
    assert state.generation == held().generation + 1


@row("pause")
def test_a_person_who_pauses_is_not_waited_for(follow):
    failed = advance(held(), failure(held(), FailureKind.ERROR, "broke"), NOW)
    assert follow(failed, Pause()).halt is None


@row("resume of what is active")
def test_a_resume_of_what_is_active_changes_nothing(follow):
    state = held()
    assert follow(state, Resume()) is state


@row("resume")
def test_a_resume_is_due_at_once(follow):
    limited = advance(held(), failure(held(), FailureKind.USAGE_LIMIT), NOW)
    state = follow(limited, Resume())
    assert (status_of(state), state.next_at, state.halt) == (Status.ACTIVE, NOW, None)


@row("resume")
def test_a_complete_objective_is_not_resumed(follow):
    with pytest.raises(InvalidTransitionError) as refused:
        follow(complete(), Resume())
    assert refused.value.objective == complete().objective


@row("clear of nothing")
def test_there_may_be_nothing_to_clear(follow):
    state = empty()
    assert follow(state, Clear()) is state


@row("clear")
def test_a_clear_leaves_the_guidance_and_the_generation(follow):
    guided = advance(held(), Guide(text="mind the gap"), NOW)
    state = follow(guided, Clear())
    assert (state.objective, state.continuation, len(state.guidance)) == (None, None, 1)
    assert state.generation == guided.generation + 1


@row("guide")
def test_guidance_ends_the_delay(follow):
    delayed = told(held(), "no report")
    state = follow(delayed, Guide(text="mind the gap"))
    assert (state.next_at, state.fruitless, len(state.guidance)) == (NOW, 0, 1)


@row("guide")
def test_guidance_does_not_start_what_is_paused(follow):
    assert follow(advance(created(), Pause(), NOW), Guide(text="mind the gap")).next_at is None


@row("configure")
def test_a_role_run_that_waits_moves_to_the_pool_that_is_preferred(follow):
    state = follow(waiting(), Configure(pool="gpu"))
    assert (state.pool, state.continuation) == ("gpu", waiting().continuation)


@row("configure")
def test_choosing_what_is_chosen_changes_nothing(follow):
    state = created(pool="gpu")
    assert follow(state, Configure(pool="gpu")) is state


@row("configure")
def test_there_must_be_something_to_configure(follow):
    with pytest.raises(NotFoundError):
        follow(empty(), Configure(pool="gpu"))


@row("update")
def test_a_claim_of_the_worker_by_tool_waits_for_its_report(follow):
    state = follow(held(), Update(status="complete", reason="it stands", run_id="e1-1-worker", generation=2))
    assert (status_of(state), run_of(state).role) == (Status.COMPLETE_CANDIDATE, Role.WORKER)


@row("update")
def test_a_claim_of_another_agent_takes_the_work_from_the_worker(follow):
    state = follow(held(), Update(status="complete", reason="it stands", run_id="chat-7"))
    assert (status_of(state), state.continuation, state.next_at) == (Status.COMPLETE_CANDIDATE, None, NOW)
    assert [gone.reason for gone in state.abandoned] == ["updated"]


@row("update")
@pytest.mark.parametrize("stale", [{"run_id": "e1-1"}, {"run_id": "e1-1-worker"}, {"run_id": "x", "generation": 2}])
def test_a_run_that_was_fenced_can_claim_nothing(follow, stale):
    edited = advance(held(), Edit(text="another bridge"), NOW)
    with pytest.raises(StaleRunError):
        follow(edited, Update(status="complete", reason="it stands", **stale))


@row("update")
def test_a_reviewer_can_claim_nothing(follow):
    with pytest.raises(StaleRunError):
        follow(critic(), Update(status="complete", reason="it stands", run_id="e1-1"))


@row("update")
def test_the_third_run_with_a_blocker_stops_everything(follow):
    state = held()
    for run in ("a", "b"):
        state = advance(state, Update(status="blocked", reason="no steel", run_id=run), NOW)
    state = follow(state, Update(status="blocked", reason="No Steel", run_id="e1-1"))
    assert (status_of(state), state.continuation, state.halt.reason) == ("blocked", None, HaltReason.BLOCKED)


def test_the_delay_doubles_up_to_five_minutes():
    state, delays = created(), []
    for _ in range(12):
        state = claimed(advance(state, timer(state, TimerKind.CONTINUATION), NOW))
        state = told(state, "no report")
        delays.append((state.next_at or 0) - NOW)
    assert delays == [1000, 2000, 4000, 8000, 16000, 32000, 64000, 128000, 256000, 300000, 300000, 300000]


def test_a_claimed_run_id_of_another_name_is_used_as_it_is():
    assert run_of(advance(created(), Start(run_id="mine"), NOW)).id == "mine-worker"


def test_a_result_never_raises_whatever_is_in_it():
    hostile = "{" * 20_000 + "\ud800" + '"' * 7
    for scene in (held, critic, audit, observer):
        after = told(scene(), hostile, tokens=-5, duration_ms=2**80, evidence=Evidence(2**80, {}, -1))
        msgspec.json.encode(after)
        advance(scene(), failure(scene(), FailureKind.ERROR, hostile), NOW)


@pytest.mark.parametrize("scene", [held, critic, audit, observer])
def test_a_state_after_a_hostile_result_can_be_saved(scene):
    answer = '{"verdict":"fail"} \ud800' + "x" * 600_000
    for state in (told(scene(), answer), advance(scene(), failure(scene(), FailureKind.ERROR, answer), NOW)):
        encoded = msgspec.json.encode(state)
        assert msgspec.json.decode(encoded, type=EsmState) == state
        assert len(encoded) < 200_000


def test_every_new_state_has_a_cause_and_counts_on():
    state = audit()
    after = told(state, PASS)
    assert (after.revision, cause_of(after).revision) == (state.revision + 1, state.revision + 1)
    assert after.recent[-1] == state.cause
