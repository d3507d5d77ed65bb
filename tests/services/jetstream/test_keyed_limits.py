"""What waits in lanes is bounded, of one key and of all, and whatever is over it is refused with when to try again."""

import functools

import pytest

from tests.services.jetstream.works import add, make_lanes, told
from turngate.jetstream import keyed
from turngate.jetstream.store import Store
from turngate_contracts.errors import Overloaded


async def test_a_key_with_too_many_works_takes_no_more_and_other_keys_do(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keyed, "MOST_OF_KEY", 3)
    lanes = make_lanes(store)
    works = [add("k", f"n{number}") for number in range(5)]
    other = add("other", "n")

    for work in (*works, other):
        lanes.submit(work)

    await told((*works, other))
    assert [type(work.error) for work in works] == [type(None)] * 4 + [Overloaded]
    assert other.error is None
    assert works[4].error is not None
    assert str(works[4].error) == "too many messages of k wait here; try again"
    assert lanes.waiting == 0


async def test_all_keys_together_have_a_limit_too(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyed, "MOST_WAITING", 2)
    lanes = make_lanes(store)
    works = [add(key, name) for key in ("a", "b") for name in ("x", "y", "z")]

    for work in works:
        lanes.submit(work)

    await told(works)
    refused = [work.error for work in works if work.error is not None]
    assert len(refused) == 2
    assert all(isinstance(error, Overloaded) and error.retry_after_ms == keyed.RETRY_AFTER_MS for error in refused)


async def test_works_far_back_in_their_lane_leave_their_places_to_others(store: Store) -> None:
    lanes = make_lanes(store)
    works = [add("k", f"n{number}") for number in range(8)]
    parked: list[str] = []

    for number, work in enumerate(works):
        lanes.submit(work, functools.partial(parked.append, f"n{number}"))

    await told(works)
    assert parked == ["n5", "n6", "n7"]
