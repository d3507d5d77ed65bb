import pytest
from msgspec.structs import replace

from tests.protocol.esm.scenes import NOW, held, holder, run_of, waiting
from turngate_protocol.esm import (
    BeatAction,
    Edit,
    EsmState,
    Objective,
    Pause,
    Status,
    SteeringSource,
    Update,
    advance,
    beat,
)

OBJECTIVE = Objective("s1", "e1", "build", version=4)


def test_a_version_is_given_out_once():
    source = SteeringSource()
    assert "build" in (source.next(OBJECTIVE) or "")
    assert source.next(OBJECTIVE) is None
    assert source.next(replace(OBJECTIVE, version=5)) is not None


def test_an_agent_is_not_told_what_it_was_started_with():
    assert SteeringSource(seen=4).next(OBJECTIVE) is None


def test_an_older_version_that_comes_late_is_no_news():
    assert SteeringSource(seen=5).next(OBJECTIVE) is None


@pytest.mark.parametrize("status", [status for status in Status if status != "active"])
def test_only_an_active_objective_steers(status):
    assert SteeringSource().next(replace(OBJECTIVE, status=status)) is None


def test_no_objective_steers_nobody():
    assert SteeringSource().next(None) is None


def answer(state: EsmState, given: EsmState, seen: int = 0):
    facts = holder(given)
    return beat(state, facts["role_run_id"], facts["generation"], facts["claim_id"], facts["runner"], seen)


def test_a_holder_goes_on():
    assert answer(held(), held()).action is BeatAction.CONTINUE


def test_a_holder_is_steered_once_a_version():
    blocked = advance(held(), Update(status="blocked", reason="no steel", run_id="e1-1"), NOW)
    first = answer(blocked, held())
    assert (first.action, first.version) == (BeatAction.STEER, run_of(held()).version + 1)
    assert "no steel" in first.message
    assert answer(blocked, held(), first.version).action is BeatAction.CONTINUE


@pytest.mark.parametrize("command", [Pause(), Edit(text="another bridge")])
def test_a_holder_that_was_fenced_stops_and_learns_why(command):
    reply = answer(advance(held(), command, NOW), held())
    assert (reply.action, reply.message) == (BeatAction.CANCEL, "paused" if isinstance(command, Pause) else "edited")


def test_a_runner_that_never_claimed_stops():
    assert answer(waiting(), waiting()).action is BeatAction.CANCEL


def test_a_claim_of_another_runner_stops():
    facts = holder(held())
    assert beat(held(), facts["role_run_id"], facts["generation"], "c1", "r2").action is BeatAction.CANCEL
