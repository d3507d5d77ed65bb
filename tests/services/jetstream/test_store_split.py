"""A bucket whose keys have two subjects: one revision after the other all the same, whatever each of them wants."""

import asyncio

import pytest

from tests.services.jetstream.conftest import make_bucket
from tests.services.jetstream.works import Count, Work, make_lanes, revisions, run, stored
from turngate.clock import system_clock
from turngate.jetstream.again import StateGone, save_again
from turngate.jetstream.backwards import backwards
from turngate.jetstream.batch import LEAST
from turngate.jetstream.keyed import Save
from turngate.jetstream.request import Requester
from turngate.jetstream.retention import Retention
from turngate.jetstream.store import Conflict, Event, Store
from turngate_contracts import headers as h
from turngate_contracts.subjects import Subjects
from turngate_contracts.topology import Topology

AT = 1_700_000_000_123
WANTS = Event("count.changed", AT, wants=True)
RESTS = Event("count.changed", AT)
SOME = LEAST + 4

either = pytest.mark.parametrize(
    ("first", "second"), [(WANTS, RESTS), (RESTS, WANTS)], ids=["wants first", "rests first"]
)


@pytest.fixture
async def grouped(store: Store, requester: Requester, subjects: Subjects) -> Store:
    """The bucket of `store` as a process sees it that groups its saves."""
    return Store(requester, subjects, "turns", "count.v1", grouped=True)


async def save(store: Store, key: str, *events: Event) -> int:
    """Save revisions that are numbered in their values."""
    revision = 0
    for number, event in enumerate(events, start=1):
        revision = await store.save(key, b"%d" % number, revision, event)
    return revision


# Load and save


async def test_a_revision_stands_where_its_wants_say(store: Store, subjects: Subjects) -> None:
    await save(store, "k", RESTS, WANTS, RESTS)

    assert [each.subject for each in await revisions(store)] == [
        subjects.revision("turns", "k", wants=wants) for wants in (False, True, False)
    ]


@either
async def test_the_newest_is_loaded_wherever_it_stands(store: Store, first: Event, second: Event) -> None:
    revision = await save(store, "k", first, second)

    entry = await store.load("k")

    assert (entry.key, entry.revision, entry.value) == ("k", revision, b"2")
    assert (h.WANTS in entry.headers()) == second.wants


@either
async def test_a_save_conflicts_with_one_that_stands_elsewhere(store: Store, first: Event, second: Event) -> None:
    revision = await save(store, "k", first)
    await store.save("k", b"won", revision, first)

    with pytest.raises(Conflict):
        await store.save("k", b"lost", revision, second)

    assert (await store.load("k")).value == b"won"


@either
async def test_a_key_is_made_once_whatever_it_wants(store: Store, first: Event, second: Event) -> None:
    await save(store, "k", first)

    with pytest.raises(Conflict):
        await store.save("k", b"2", 0, second)


async def test_of_many_saves_on_one_revision_one_is_stored_whatever_they_want(store: Store, other: Store) -> None:
    revision = await save(store, "k", WANTS, RESTS)

    outcomes = await asyncio.gather(
        *((store, other)[n % 2].save("k", b"n", revision, (WANTS, RESTS)[n // 2 % 2]) for n in range(40)),
        return_exceptions=True,
    )

    assert sum(isinstance(outcome, Conflict) for outcome in outcomes) == 39
    assert len(await revisions(store)) == 3


async def test_keys_do_not_meet_on_either_subject(store: Store) -> None:
    await save(store, "wants", RESTS)
    await save(store, "rest", WANTS)
    await save(store, "a.b", WANTS, RESTS)

    assert [(await store.load(key)).revision for key in ("wants", "rest", "a.b", "a", "b")] == [1, 2, 4, 0, 0]


# In batches


async def test_a_batch_holds_saves_that_want_something_and_others(grouped: Store) -> None:
    events = [(WANTS, RESTS)[number % 2] for number in range(SOME)]

    saved = await asyncio.gather(*(save(grouped, f"k{number}", event) for number, event in enumerate(events)))
    again = await asyncio.gather(
        *(grouped.save(f"k{number}", b"2", saved[number], events[number - 1]) for number in range(SOME))
    )

    assert saved == list(range(1, SOME + 1))
    assert [(await grouped.load(f"k{number}")).revision for number in range(SOME)] == again


@either
async def test_in_a_batch_only_the_save_conflicts_that_lost_to_one_elsewhere(
    grouped: Store, other: Store, first: Event, second: Event
) -> None:
    revision = await save(other, "k5", first)
    await other.save("k5", b"won", revision, first)

    stale = [revision if number == 5 else 0 for number in range(SOME)]
    outcomes = await asyncio.gather(
        *(grouped.save(f"k{number}", b"1", stale[number], second) for number in range(SOME)), return_exceptions=True
    )

    assert [number for number, outcome in enumerate(outcomes) if isinstance(outcome, Conflict)] == [5]
    assert sum(isinstance(outcome, int) for outcome in outcomes) == SOME - 1
    assert (await grouped.load("k5")).value == b"won"


async def test_lanes_put_no_two_saves_of_a_key_into_one_batch(grouped: Store) -> None:
    # The server compares each save of a batch with what is stored before it: two on different subjects would both win.
    lanes = make_lanes(grouped)
    works = [_add(key, number) for number in range(SOME) for key in ("k", f"k{number}", f"l{number}")]

    await run(lanes, *works)

    assert [work.error for work in works if work.error] == []
    assert (await stored(grouped)).added == tuple(str(number) for number in range(SOME))


def _add(key: str, number: int) -> Work:
    """Add a name by a revision that wants something, or by one that does not."""

    def decide(state: Count | None) -> Save[Count]:
        return Save(Count((*(state.added if state else ()), str(number))), (WANTS, RESTS)[number % 2])

    return Work(key, decide)


# Reading on


async def test_a_page_names_the_key_of_either_subject(store: Store) -> None:
    await save(store, "a", WANTS, RESTS)
    await save(store, "b", RESTS)

    entries, cursor, more = await store.page(0, 10)
    only_a, _, _ = await store.page(0, 10, "a")

    assert [(entry.key, entry.revision) for entry in entries] == [("a", 1), ("a", 2), ("b", 3)]
    assert (cursor, more) == (3, False)
    assert [entry.revision for entry in only_a] == [1, 2]


async def test_backwards_a_key_shows_once_at_the_newest_of_both(store: Store) -> None:
    await save(store, "a", WANTS, RESTS)
    await save(store, "b", RESTS, WANTS)
    await save(store, "c", WANTS)

    windows = [window async for window in backwards(store)]

    assert [each.sequence for window in windows for each in window.newest] == [5, 4, 2]


# Saved once more


@either
async def test_a_state_is_saved_again_where_its_newest_revision_stands(
    store: Store, requester: Requester, first: Event, second: Event
) -> None:
    await save(store, "k", first, second)

    await save_again(requester, store.stream, store.subject("k"))

    _, newest, again = await revisions(store)
    assert (again.subject, again.body, again.fields["ce-id"]) == (newest.subject, b"2", newest.fields["ce-id"])
    assert (await store.load("k")).revision == again.sequence
    with pytest.raises(StateGone):
        await save_again(requester, store.stream, store.subject("k"), newest.sequence)


@either
async def test_of_a_key_only_the_newest_of_both_is_kept_from_leaving(
    store: Store, requester: Requester, subjects: Subjects, first: Event, second: Event
) -> None:
    topology = Topology(subjects)
    revision = await save(store, "k", first, second)
    later = Retention(requester, topology, lambda: system_clock()() + topology.retention_ms)

    await later.sweep_bucket("turns")

    assert later.touched == second.wants, "what wants something is open; what a newer one replaced is not"
    assert (await store.load("k")).revision == revision + second.wants
    assert (await store.load("k")).value == b"2"


async def test_a_bucket_with_one_subject_a_key_is_as_it_was(requester: Requester, subjects: Subjects) -> None:
    questions = await make_bucket(requester, subjects, "questions")
    await save(questions, "k", RESTS, WANTS)

    stored = await revisions(questions)

    assert {each.subject for each in stored} == {f"$KV.{subjects.namespace}_questions.k"}
    assert h.EXPECTED_SUBJECT not in stored[-1].fields


async def test_a_key_of_a_split_bucket_is_only_saved(store: Store) -> None:
    with pytest.raises(ValueError, match="turns is split"):
        await store.delete("k", 0, {}, ttl_s=60)
    with pytest.raises(ValueError, match="turns is split"):
        await store.put("k", b"{}", 0, {})
