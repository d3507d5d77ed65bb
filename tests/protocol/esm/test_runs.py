"""One test for each row about who runs what: start, claim, release, timers."""

import pytest

from tests.protocol.esm.rows import row
from tests.protocol.esm.scenes import (
    CONTINUE,
    NOW,
    claim,
    claimed,
    created,
    empty,
    failure,
    held,
    holder,
    objective_of,
    observer,
    run_of,
    timer,
    told,
    waiting,
)
from turngate_protocol.esm import (
    DEFAULT_POLICY,
    CauseType,
    ClaimRefusedError,
    Configure,
    Edit,
    FailureKind,
    Guide,
    NotFoundError,
    Pause,
    Release,
    Role,
    Start,
    TimerKind,
    Update,
    advance,
)


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
