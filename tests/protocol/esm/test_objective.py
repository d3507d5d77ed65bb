import msgspec
import pytest

from turngate_protocol.esm import Objective, Status, can_auto_run, is_runnable, is_unfinished


def an_objective(status: Status) -> Objective:
    return Objective("s1", "e1", "text", status)


@pytest.mark.parametrize("status", list(Status))
def test_only_active_ones_and_candidates_run_by_themselves(status):
    assert can_auto_run(an_objective(status)) == (status in ("active", "complete_candidate"))


@pytest.mark.parametrize("status", list(Status))
def test_every_status_but_complete_is_unfinished(status):
    assert is_unfinished(an_objective(status)) == (status != "complete")


@pytest.mark.parametrize("status", list(Status))
def test_tools_stay_visible_until_a_claim_is_made(status):
    assert is_runnable(an_objective(status)) == (status in ("active", "paused", "blocked", "usage_limited"))


@pytest.mark.parametrize("question", [can_auto_run, is_unfinished, is_runnable])
def test_no_objective_is_nothing_of_it(question):
    assert not question(None)


def test_the_text_is_called_objective_on_the_wire():
    assert msgspec.to_builtins(an_objective(Status.PAUSED)) == {
        "session_id": "s1",
        "esm_id": "e1",
        "objective": "text",
        "status": "paused",
    }
