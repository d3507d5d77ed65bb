"""One test for each row about what people and models command."""

import pytest

from tests.protocol.esm.rows import row
from tests.protocol.esm.scenes import (
    NOW,
    TEXT,
    complete,
    created,
    critic,
    empty,
    failure,
    held,
    objective_of,
    run_of,
    status_of,
    told,
    waiting,
)
from turngate_protocol.esm import (
    Clear,
    Configure,
    Create,
    Edit,
    FailureKind,
    Guide,
    HaltReason,
    InvalidArgumentError,
    InvalidTransitionError,
    NotFoundError,
    ObjectiveExistsError,
    Pause,
    Resume,
    Role,
    StaleRunError,
    Status,
    Update,
    advance,
)


@row("a command comes again")
def test_the_same_command_told_twice_counts_once(follow):
    once = advance(held(), Guide(text="mind the gap", id="k1"), NOW)
    assert follow(once, Guide(text="mind the gap", id="k1")) is once


@row("pause")
def test_another_command_of_the_same_id_is_another_command(follow):
    once = advance(held(), Guide(text="mind the gap", id="k1"), NOW)
    assert status_of(follow(once, Pause(id="k1"))) is Status.PAUSED


@row("create")
def test_a_new_objective_is_due_at_once(follow):
    state = follow(empty(), Create(text=f" {TEXT} ", esm_id="e1", pool="gpu", work_dir="/w", mode="fast"))
    assert (objective_of(state).text, state.next_at) == (TEXT, NOW)
    assert (state.pool, state.work_dir, state.mode) == ("gpu", "/w", "fast")


@row("create")
def test_an_unfinished_objective_is_not_replaced(follow):
    with pytest.raises(ObjectiveExistsError):
        follow(held(), Create(text="another", esm_id="e2"))


@row("create")
@pytest.mark.parametrize("esm_id", ["", "e" * 101])
def test_an_id_of_an_objective_leaves_room_for_the_number_of_a_run(follow, esm_id):
    with pytest.raises(InvalidArgumentError):
        follow(empty(), Create(text=TEXT, esm_id=esm_id))


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
