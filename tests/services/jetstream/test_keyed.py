"""Lanes: works of one key run in order on its newest state, whoever else saves, and each is told its outcome once."""

import functools
from collections.abc import Callable, Iterable

import msgspec
import pytest
from msgspec import Struct

from tests.services.jetstream.conftest import Connecting, Requesting, came_back, make_bucket
from tests.services.jetstream.raw import Proxy
from tests.waiting import wait_until
from turngate.jetstream.connect import Connection
from turngate.jetstream.direct import Stored, read_page
from turngate.jetstream.embedded import EmbeddedServer
from turngate.jetstream.keyed import ENTRY_BYTES, MAX_CONFLICTS, MOST_OF_KEY, Lanes, Save
from turngate.jetstream.request import Interrupted, NotConnected, Requester
from turngate.jetstream.store import Event, Store
from turngate_contracts.errors import ErrorCode, Refusal
from turngate_contracts.subjects import Subjects

EVENT = Event("count.changed", 1_700_000_000_000)


class Count(Struct, frozen=True, omit_defaults=True):
    """The state of these tests: what was added, in order."""

    added: tuple[str, ...] = ()
    op: str = ""


Decide = Callable[[Count | None], Save[Count] | None]

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Count).decode


class Work:
    """A work that keeps what it was told."""

    def __init__(self, key: str, decide: Decide, *, likely_new: bool = False) -> None:
        self.key = key
        self.likely_new = likely_new
        self.state: Count | None = None
        self.revision = 0
        self.error: Exception | None = None
        self.told = 0
        self.seen: list[Count | None] = []
        self._decide = decide

    def decide(self, state: Count | None) -> Save[Count] | None:
        self.seen.append(state)
        return self._decide(state)

    def done(self, state: Count | None, revision: int, /) -> None:
        self.told += 1
        self.state, self.revision = state, revision

    def failed(self, error: Exception) -> None:
        self.told += 1
        self.error = error


def add(key: str, name: str, *, likely_new: bool = False) -> Work:
    """Add a name once, as a message that may be repeated does."""

    def decide(state: Count | None) -> Save[Count] | None:
        added = state.added if state is not None else ()
        return None if name in added else Save(Count((*added, name)), EVENT)

    return Work(key, decide, likely_new=likely_new)


def look(key: str) -> Work:
    return Work(key, lambda _: None)


def make_lanes(store: Store, **options: int) -> Lanes[Count]:
    return Lanes(store, _encode, _decode, **options)


async def told(works: Iterable[Work]) -> None:
    waiting = list(works)
    await wait_until(lambda: all(work.told for work in waiting), why="a work was not told its outcome")


async def run(lanes: Lanes[Count], *works: Work) -> None:
    for work in works:
        lanes.submit(work)
    await told(works)


async def stored(store: Store, key: str = "k") -> Count:
    entry = await store.load(key)
    assert entry.value is not None
    return _decode(entry.value)


async def revisions(store: Store, key: str = "k") -> list[Stored]:
    return (await read_page(store.requester, store.stream, 0, 256, store.subject(key)))[0]


@pytest.fixture
def lanes(store: Store) -> Lanes[Count]:
    return make_lanes(store)


@pytest.fixture
async def other(
    connecting: Connecting, requesting: Requesting, nats_server: EmbeddedServer, subjects: Subjects
) -> Store:
    """The same bucket as another process sees it."""
    requester = await requesting(await connecting(nats_server.url))
    return Store(requester, subjects, "turns", "count.v1")


# One process


@pytest.mark.parametrize("likely_new", [False, True])
async def test_a_work_on_a_new_key_makes_it(store: Store, lanes: Lanes[Count], likely_new: bool) -> None:
    work = add("k", "a", likely_new=likely_new)

    await run(lanes, work)

    assert work.state == await stored(store)
    assert (work.state is not None, work.revision) == (True, (await store.load("k")).revision)


async def test_a_key_that_was_wrongly_taken_for_new_is_read(store: Store, lanes: Lanes[Count], other: Store) -> None:
    await run(make_lanes(other), add("k", "a"))

    await run(lanes, add("k", "b", likely_new=True))

    assert (await stored(store)).added == ("a", "b")


async def test_works_of_one_key_run_in_the_order_of_their_submission(store: Store, lanes: Lanes[Count]) -> None:
    names = [f"n{number}" for number in range(100)]

    await run(lanes, *(add("k", name) for name in names))

    assert (await stored(store)).added == tuple(names)
    assert lanes.conflicts == 0


async def test_works_of_different_keys_run_at_once(lanes: Lanes[Count]) -> None:
    works = [add(f"k{number}", "a") for number in range(50)]
    for work in works:
        lanes.submit(work)

    assert lanes.busy == 50
    await told(works)
    assert lanes.busy == 0


async def test_a_repeat_is_answered_from_the_state_without_another_save(store: Store, lanes: Lanes[Count]) -> None:
    first, repeat = add("k", "a"), add("k", "a")

    await run(lanes, first, repeat)

    assert (repeat.state, repeat.revision) == (first.state, first.revision)
    assert len(await revisions(store)) == 1


async def test_a_thousand_repeats_in_one_lane_are_all_answered(store: Store, lanes: Lanes[Count]) -> None:
    works = [add("k", "a") for _ in range(1000)]

    await run(lanes, *works)

    assert {work.told for work in works} == {1}
    assert len(await revisions(store)) == 1


async def test_a_lane_of_thousands_fails_without_recursion_when_the_server_is_gone(
    own_connection: Connection, own_requester: Requester, own_server: EmbeddedServer, subjects: Subjects
) -> None:
    lanes = make_lanes(await make_bucket(own_requester, subjects))
    works = [add("k", f"n{number}") for number in range(MOST_OF_KEY)]
    for work in works:
        lanes.submit(work)

    own_server.kill()

    await told(works)
    assert {type(work.error) for work in works if work.error} <= {NotConnected, Interrupted}
    assert works[-1].error is not None
    assert (lanes.busy, {work.told for work in works}) == (0, {1})


async def test_a_tombstone_is_no_state_and_can_be_saved_over(store: Store, lanes: Lanes[Count]) -> None:
    work = add("k", "a")
    await run(lanes, work)
    await store.delete("k", work.revision, {}, ttl_s=60)

    again = add("k", "b")
    await run(make_lanes(store), again)

    assert again.seen == [None]
    assert (await stored(store)).added == ("b",)


async def test_each_save_has_an_operation_id_of_its_own(store: Store, lanes: Lanes[Count], other: Store) -> None:
    works = [add("k", "a"), add("k", "b"), add("j", "a")]
    await run(lanes, *works)
    elsewhere = [add("k", "c"), add("j", "c")]
    await run(make_lanes(other), *elsewhere)

    ids = {work.state.op for work in (*works, *elsewhere) if work.state is not None}
    assert len(ids) == 5
    assert "" not in ids


# Two processes


async def test_lanes_of_two_processes_on_one_key_lose_nothing(store: Store, lanes: Lanes[Count], other: Store) -> None:
    lanes_there = make_lanes(other)
    here = [add("k", f"here{number}") for number in range(40)]
    there = [add("k", f"there{number}") for number in range(40)]

    for pair in zip(here, there, strict=True):
        lanes.submit(pair[0])
        lanes_there.submit(pair[1])
    await told([*here, *there])

    assert {work.error for work in (*here, *there)} == {None}
    added = (await stored(store)).added
    assert sorted(added) == sorted(f"{side}{number}" for side in ("here", "there") for number in range(40))
    assert [name for name in added if name.startswith("here")] == [f"here{number}" for number in range(40)]
    assert lanes.conflicts + lanes_there.conflicts > 0


async def test_a_decision_from_a_stale_cache_is_refused_by_the_server_and_taken_again(
    lanes: Lanes[Count], other: Store
) -> None:
    await run(lanes, add("k", "a"))
    await run(make_lanes(other), add("k", "b"))

    late = add("k", "c")
    await run(lanes, late)

    assert [state.added for state in late.seen if state is not None] == [("a",), ("a", "b")]
    assert late.state is not None
    assert late.state.added == ("a", "b", "c")


async def test_an_answer_without_a_save_is_given_from_a_fresh_read(lanes: Lanes[Count], other: Store) -> None:
    await run(lanes, add("k", "a"))
    await run(make_lanes(other), add("k", "b"))

    reader = look("k")
    await run(lanes, reader)

    assert reader.state is not None
    assert reader.state.added == ("a", "b")


async def test_a_message_decided_by_another_process_is_not_decided_again(
    store: Store, lanes: Lanes[Count], other: Store
) -> None:
    await run(lanes, add("k", "a"))
    await run(make_lanes(other), add("k", "b"))

    repeat = add("k", "b")
    await run(lanes, repeat)

    assert (repeat.error, (await stored(store)).added) == (None, ("a", "b"))


async def test_a_key_that_others_always_save_first_is_given_up_as_overloaded(
    store: Store, lanes: Lanes[Count], connection: Connection
) -> None:
    meddled = 0

    def meddle(_state: Count | None) -> Save[Count]:
        nonlocal meddled
        meddled += 1
        connection.send(store.subject("k"), _encode(Count((f"other{meddled}",))))
        return Save(Count(("mine",)), EVENT)

    unlucky, next_one = Work("k", meddle), add("k", "next")
    await run(lanes, unlucky, next_one)

    assert isinstance(unlucky.error, Refusal)
    assert unlucky.error.code is ErrorCode.OVERLOADED
    assert meddled == MAX_CONFLICTS + 1
    assert (await stored(store)).added == (f"other{meddled}", "next")


# Mistakes


async def test_a_state_that_can_not_be_read_fails_its_works_and_no_other_key(
    store: Store, lanes: Lanes[Count], requester: Requester
) -> None:
    await requester.publish(store.subject("k"), b"\xff nonsense")
    works = [add("k", "a"), add("k", "b"), add("j", "a")]

    await run(lanes, *works)

    assert [type(work.error) for work in works] == [msgspec.DecodeError, msgspec.DecodeError, type(None)]


async def test_a_decision_that_raises_fails_its_work_only(store: Store, lanes: Lanes[Count]) -> None:
    def mistake(_state: Count | None) -> None:
        raise ZeroDivisionError

    wrong, right = Work("k", mistake), add("k", "a")
    await run(lanes, wrong, right)

    assert isinstance(wrong.error, ZeroDivisionError)
    assert (await stored(store)).added == ("a",)


async def test_an_event_that_can_not_be_written_fails_its_work_only(store: Store, lanes: Lanes[Count]) -> None:
    wrong = Work("k", lambda _: Save(Count(("wrong",)), Event("count.changed", 10**20)))
    right = add("k", "a")

    await run(lanes, wrong, right)

    assert (wrong.told, wrong.error is not None) == (1, True)
    assert (await stored(store)).added == ("a",)
    assert lanes.busy == 0


@pytest.mark.parametrize("outcome", ["done", "failed"])
async def test_a_work_that_raises_when_it_is_told_does_not_hold_up_its_key(
    lanes: Lanes[Count], monkeypatch: pytest.MonkeyPatch, outcome: str
) -> None:
    def mistake(*_: object) -> None:
        raise ZeroDivisionError

    deaf = add("k", "a") if outcome == "done" else Work("k", lambda _: 1 / 0)  # type: ignore[arg-type,return-value]
    monkeypatch.setattr(deaf, outcome, mistake)
    lanes.submit(deaf)
    await run(lanes, add("k", "b"))

    assert lanes.busy == 0


# Confirmations that get lost


async def test_a_save_whose_confirmation_is_late_is_found_and_not_made_twice(
    store: Store, connecting: Connecting, requesting: Requesting, proxy: Proxy, subjects: Subjects
) -> None:
    behind = await requesting(await connecting(proxy.url))
    behind.publish_nowait = functools.partial(behind.publish_nowait, timeout_ms=500)  # type: ignore[method-assign]
    lanes = make_lanes(Store(behind, subjects, "turns", "count.v1"))
    await run(lanes, add("k", "a"))

    proxy.muted = True
    work = add("k", "b")
    lanes.submit(work)
    await wait_until(lambda: _has(store, "b"))
    proxy.muted = False
    await told([work])

    assert (work.error, work.revision) == (None, (await store.load("k")).revision)
    assert len(work.seen) == 1
    assert len(await revisions(store)) == 2


async def test_a_lost_save_under_a_newer_one_is_decided_on_the_newer_state(
    store: Store, connecting: Connecting, requesting: Requesting, proxy: Proxy, subjects: Subjects
) -> None:
    behind = await requesting(await connecting(proxy.url))
    behind.publish_nowait = functools.partial(behind.publish_nowait, timeout_ms=500)  # type: ignore[method-assign]
    lanes = make_lanes(Store(behind, subjects, "turns", "count.v1"))
    await run(lanes, add("k", "a"))

    proxy.muted = True
    work = add("k", "b")
    lanes.submit(work)
    await wait_until(lambda: _has(store, "b"))
    await run(make_lanes(store), add("k", "c"))
    proxy.muted = False
    await told([work])

    assert work.error is None
    assert work.state is not None
    assert work.state.added == ("a", "b", "c")
    assert len(await revisions(store)) == 3


async def test_a_save_interrupted_after_it_was_stored_is_found_by_the_repeat(
    store: Store, connecting: Connecting, requesting: Requesting, proxy: Proxy, subjects: Subjects
) -> None:
    connection = await connecting(proxy.url)
    lanes = make_lanes(Store(await requesting(connection), subjects, "turns", "count.v1"))
    await run(lanes, add("k", "a"))

    proxy.muted = True
    work = add("k", "b")
    lanes.submit(work)
    await wait_until(lambda: _has(store, "b"))
    proxy.muted = False
    proxy.cut()
    await told([work])
    assert work.error is not None  # its message comes again
    await came_back(connection)
    repeat = add("k", "b")
    await run(lanes, repeat)

    assert repeat.error is None
    assert len(await revisions(store)) == 2


async def test_works_under_way_when_the_server_is_killed_are_told_and_can_be_repeated(
    own_connection: Connection, own_requester: Requester, own_server: EmbeddedServer, subjects: Subjects
) -> None:
    store = await make_bucket(own_requester, subjects)
    lanes = make_lanes(store)
    names = [(f"k{number % 5}", f"n{number}") for number in range(100)]
    first = [add(key, name) for key, name in names]
    for work in first:
        lanes.submit(work)
    await wait_until(lambda: any(work.told for work in first))

    own_server.kill()
    await told(first)
    own_server.start()
    await came_back(own_connection)
    again = [add(key, name) for key, name in names]
    await run(lanes, *again)

    assert {work.error for work in again} == {None}
    for key in {key for key, _ in names}:
        added = (await stored(store, key)).added
        assert sorted(added) == sorted(name for owner, name in names if owner == key)


async def _has(store: Store, name: str) -> bool:
    entry = await store.load("k")
    return entry.value is not None and name in _decode(entry.value).added


# The cache


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
