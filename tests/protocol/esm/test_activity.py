import pytest

from tests.protocol.esm.scenes import NOW, complete, created, empty, failure, held, told, waiting
from turngate_protocol.esm import Activity, ActivityKind, FailureKind, Pause, activity_of, advance


@pytest.mark.parametrize(
    ("state", "kind"),
    [
        (empty(), "none"),
        (created(), "scheduled"),
        (waiting(), "waiting_for_runner"),
        (held(), "running"),
        (advance(held(), Pause(), NOW), "paused"),
        (advance(held(), failure(held(), FailureKind.ERROR, "broke"), NOW), "waiting_for_person"),
        (complete(), "complete"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_every_state_is_one_kind_of_activity(state, kind):
    assert activity_of(state).kind == kind


def test_a_role_that_waits_says_where_and_since_when():
    state = waiting()
    assert activity_of(state) == Activity(ActivityKind.WAITING_FOR_RUNNER, NOW, "worker", "e1-1-worker")


def test_a_delay_says_when_it_ends():
    assert activity_of(told(held(), "no report")).since == NOW + 1_000
