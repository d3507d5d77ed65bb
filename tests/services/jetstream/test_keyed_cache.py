"""Lanes keep the newest states of keys, up to a bound, and read again what they do not keep."""

from tests.services.jetstream.works import add, look, make_lanes, run, stored
from turngate.jetstream.keyed import ENTRY_BYTES
from turngate.jetstream.store import Store


async def test_the_cache_keeps_to_its_bound_and_forgets_the_oldest(store: Store) -> None:
    lanes = make_lanes(store, cache_bytes=10 * (ENTRY_BYTES + 100))

    await run(lanes, *(add(f"k{number}", "a") for number in range(30)))

    assert 5 <= lanes.cached <= 11


async def test_a_state_is_held_at_the_revision_at_which_it_was_saved_and_at_no_other(store: Store) -> None:
    lanes = make_lanes(store)
    work = add("k", "a")

    await run(lanes, work)
    revision = (await store.load("k")).revision

    assert lanes.held("k", revision) == await stored(store)
    assert lanes.held("k", revision + 1) is None
    assert lanes.held("other", revision) is None


async def test_keys_without_a_state_count_against_the_bound_too(store: Store) -> None:
    lanes = make_lanes(store, cache_bytes=10 * ENTRY_BYTES)

    await run(lanes, *(look(f"unknown{number}") for number in range(100)))

    assert lanes.cached <= 10


async def test_a_state_larger_than_the_cache_is_served_and_not_kept(store: Store) -> None:
    lanes = make_lanes(store, cache_bytes=1000)
    large = add("k", "x" * 2000)

    await run(lanes, large, add("k", "y"))

    assert (await stored(store)).added == ("x" * 2000, "y")
    assert lanes.cached == 0


async def test_a_forgotten_key_is_read_again(store: Store) -> None:
    lanes = make_lanes(store, cache_bytes=0)

    await run(lanes, add("k", "a"), add("k", "b"))

    assert (await stored(store)).added == ("a", "b")
