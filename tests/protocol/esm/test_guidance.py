import pytest

from turngate_protocol.esm import InvalidArgumentError, NotFoundError, Objective
from turngate_protocol.esm.guidance import Guidance, add_guidance, consume_guidance, pending_guidance

OBJECTIVE = Objective("s1", "e1", "text", version=4)


def test_a_text_is_stamped_with_the_version_that_the_person_saw():
    assert add_guidance((), OBJECTIVE, "g1", " mind the gap\n", now=7) == (Guidance("g1", "mind the gap", 4, 7),)


@pytest.mark.parametrize("text", ["", " \u2003\n", "\ud800", "x" * 16_385])
def test_a_text_that_can_not_be_kept_is_refused(text):
    with pytest.raises(InvalidArgumentError):
        add_guidance((), OBJECTIVE, "g1", text, now=7)


def test_the_argument_is_looked_at_before_the_objective():
    with pytest.raises(InvalidArgumentError):
        add_guidance((), None, "g1", "", now=7)


def test_guidance_needs_an_objective():
    with pytest.raises(NotFoundError):
        add_guidance((), None, "g1", "mind the gap", now=7)


def test_a_full_queue_refuses_and_keeps_what_it_has():
    queue: tuple[Guidance, ...] = ()
    for number in range(8):
        queue = add_guidance(queue, OBJECTIVE, f"g{number}", "x" * 16_384, now=7)
    with pytest.raises(InvalidArgumentError):
        add_guidance(queue, OBJECTIVE, "g9", "y", now=7)


def test_at_most_a_hundred_are_listed_and_the_rest_waits():
    queue = tuple(Guidance(f"g{number}", "x") for number in range(130))
    assert pending_guidance(queue) == queue[:100]


def test_only_what_was_carried_is_consumed():
    queue = (Guidance("g1", "a"), Guidance("g2", "b"), Guidance("g3", "c"))
    assert consume_guidance(queue, ["g2", "g9"]) == (queue[0], queue[2])
