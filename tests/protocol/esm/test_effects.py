"""What a state wants: one test for each line of EFFECTS, and what rests."""

import pytest

from tests.protocol.esm.scenes import (
    NOW,
    complete,
    created,
    critic,
    empty,
    failure,
    held,
    observer,
    report,
    run_of,
    told,
    waiting,
)
from turngate_protocol.esm import (
    CancelRole,
    Clear,
    CloseInbox,
    Configure,
    DispatchRole,
    Edit,
    FailureKind,
    Guide,
    HaltReason,
    OpenInbox,
    Pause,
    Policy,
    Resume,
    Role,
    SetTimer,
    Start,
    TimerKind,
    advance,
    settle,
    wants,
)
from turngate_protocol.esm.continuation import CANCEL_REVISIONS

FAILED = advance(held(), failure(held(), FailureKind.ERROR, "broke"), NOW)


@pytest.mark.parametrize("state", [empty(), complete()])
def test_what_rests_wants_nothing(state):
    assert wants(state) == ()


def test_what_a_person_paused_stays_in_the_inbox_until_it_goes_on():
    paused = advance(created(), Pause(), NOW)

    assert wants(paused) == (OpenInbox("s1", HaltReason.PAUSED, "Build the bridge.", NOW),)
    assert wants(advance(paused, Resume(), NOW))[0] == CloseInbox("s1")


def test_what_can_run_and_does_not_wants_its_next_continuation():
    assert wants(created()) == (SetTimer("s1", TimerKind.CONTINUATION, created().generation, NOW),)


def test_a_role_run_that_waits_is_offered_and_watched():
    state = waiting()
    assert wants(state) == (
        SetTimer("s1", TimerKind.WATCHDOG, state.generation, NOW + Policy().redispatch_ms),
        DispatchRole("s1", "e1-1-worker", Role.WORKER, state.generation, "", NOW),
    )


def test_an_offer_goes_to_the_pool_that_is_preferred():
    offer = wants(advance(waiting(), Configure(pool="gpu"), NOW))[-1]
    assert isinstance(offer, DispatchRole)
    assert offer.pool == "gpu"


@pytest.mark.parametrize("scene", [held, critic, observer])
def test_a_role_run_that_is_held_is_only_watched(scene):
    state = scene()
    assert wants(state) == (SetTimer("s1", TimerKind.WATCHDOG, state.generation, run_of(state).check_at),)


def test_the_runner_of_what_was_fenced_is_told_to_stop():
    state = held()
    edited = advance(state, Edit(text="another bridge"), NOW)
    assert wants(edited)[0] == CancelRole("s1", "e1-1-worker", state.generation, "c1", "r1", "edited")


def test_a_cancel_is_not_lost_when_the_next_continuation_starts_at_once():
    state = settle(advance(held(), Edit(text="another bridge"), NOW), NOW)
    assert [type(effect) for effect in wants(state)] == [CancelRole, SetTimer, DispatchRole]


def test_a_cancel_ends_with_the_result():
    state = advance(held(), Pause(), NOW)
    assert CancelRole not in map(type, wants(advance(state, report(held(), "stopped"), NOW)))


def test_a_runner_that_never_answers_is_not_told_for_ever():
    state = advance(held(), Pause(), NOW)
    for number in range(CANCEL_REVISIONS):
        state = advance(state, Guide(text=f"{number}"), NOW)
    assert CancelRole not in map(type, wants(state))


def test_a_person_who_is_waited_for_finds_it_in_the_inbox():
    assert wants(FAILED) == (OpenInbox("s1", HaltReason.FAILED, "worker error: broke", NOW),)


def test_an_entry_is_taken_back_when_nobody_is_waited_for_any_more():
    assert wants(advance(FAILED, Clear(), NOW)) == (CloseInbox("s1"),)
    assert wants(advance(FAILED, Resume(), NOW))[0] == CloseInbox("s1")


def test_effects_are_the_same_for_the_same_state():
    assert wants(waiting()) == wants(waiting())


def test_settling_starts_what_is_due_without_a_round_trip():
    state = settle(told(held(), '{"status": "continue", "summary": "more"}'), NOW)
    assert run_of(state).id == "e1-2-worker"
    assert state == advance(told(held(), '{"status": "continue", "summary": "more"}'), Start(), NOW)


@pytest.mark.parametrize("state", [empty(), held(), complete(), told(held(), "no report")])
def test_settling_leaves_alone_what_is_not_due(state):
    assert settle(state, NOW) is state
