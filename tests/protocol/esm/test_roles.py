import pytest

from tests.protocol.esm.scenes import NOW, audit, claimed, created, critic, held, observer, waiting
from turngate_protocol.esm import Guide, Policy, Role, RoleRequest, Start, advance, role_request


def request(state) -> RoleRequest:
    found = role_request(state)
    assert found is not None
    return found


def test_a_role_run_that_nobody_holds_has_no_request():
    assert role_request(created()) is None
    assert role_request(waiting()) is None


def test_a_worker_may_use_every_tool_for_as_long_as_it_takes():
    found = request(held())
    assert (found.tools, found.max_iterations, found.deadline_ms) == (None, -1, 0)
    assert (found.run_id, found.base_run_id, found.claim_id) == ("e1-1-worker", "e1-1", "c1")


@pytest.mark.parametrize(("scene", "role"), [(critic, Role.CRITIC), (audit, Role.AUDIT)])
def test_a_reviewer_only_reads_for_as_long_as_it_takes(scene, role):
    found = request(scene())
    assert (found.role, found.tools, found.max_iterations, found.deadline_ms) == (
        role,
        ("read", "grep", "find", "ls"),
        -1,
        0,
    )


def test_an_observer_only_reads_and_has_five_minutes():
    found = request(observer())
    assert (found.run_id, found.tools) == ("e1-1-recovery-observer", ("read", "grep", "find", "ls"))
    assert (found.max_iterations, found.deadline_ms) == (40, 300_000)
    assert "worker deadline" in found.prompt


def test_the_deadline_of_the_observer_is_policy():
    found = role_request(observer(), Policy(observer_ms=7))
    assert found is not None
    assert found.deadline_ms == 7


def test_guidance_added_after_the_claim_is_not_in_the_request():
    carried = claimed(advance(waiting(), Guide(text="mind the gap"), NOW))
    found = request(advance(carried, Guide(text="and the wind"), NOW))
    assert found.guidance == 1
    assert "mind the gap" in found.prompt
    assert "and the wind" not in found.prompt


def test_directory_and_mode_are_passed_on_as_they_are():
    found = request(claimed(advance(created(work_dir="/nowhere", mode="fast"), Start(), NOW)))
    assert (found.work_dir, found.mode) == ("/nowhere", "fast")


def test_a_role_run_id_of_the_longest_base_run_id_is_an_id():
    state = advance(created(), Start(run_id="r" * 110), NOW)
    found = request(claimed(state))
    assert len(found.base_run_id + "-recovery-observer") == 128
