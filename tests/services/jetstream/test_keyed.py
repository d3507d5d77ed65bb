"""Lanes: works of one key run in order on its newest state, whoever else saves, and each is told its outcome once."""

import msgspec
import pytest

from tests.services.jetstream.conftest import make_bucket
from tests.services.jetstream.works import (
    EVENT,
    Count,
    Work,
    add,
    encode,
    look,
    make_lanes,
    revisions,
    run,
    stored,
    told,
)
from turngate.jetstream.connect import Connection
from turngate.jetstream.embedded import EmbeddedServer
from turngate.jetstream.keyed import MAX_CONFLICTS, MOST_OF_KEY, Lanes, Save
from turngate.jetstream.request import Interrupted, NotConnected, Requester
from turngate.jetstream.store import Event, Store
from turngate_contracts.errors import ErrorCode, Refusal
from turngate_contracts.subjects import Subjects

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


async def test_a_key_is_free_while_no_work_of_it_is_under_way(lanes: Lanes[Count]) -> None:
    assert lanes.is_free("k")

    work = add("k", "a")
    lanes.submit(work)
    assert (lanes.is_free("k"), lanes.is_free("other")) == (False, True)

    await told([work])
    assert lanes.is_free("k")


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


async def test_a_tombstone_is_no_state_and_can_be_saved_over(requester: Requester, subjects: Subjects) -> None:
    questions = await make_bucket(requester, subjects, "questions")
    work = add("k", "a")
    await run(make_lanes(questions), work)
    await questions.delete("k", work.revision, {}, ttl_s=60)

    again = add("k", "b")
    await run(make_lanes(questions), again)

    assert again.seen == [None]
    assert (await stored(questions)).added == ("b",)


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
    store: Store, lanes: Lanes[Count], connection: Connection, subjects: Subjects
) -> None:
    meddled = 0

    def meddle(_state: Count | None) -> Save[Count]:
        nonlocal meddled
        meddled += 1
        connection.send(subjects.revision("turns", "k", wants=False), encode(Count((f"other{meddled}",))))
        return Save(Count(("mine",)), EVENT)

    unlucky, next_one = Work("k", meddle), add("k", "next")
    await run(lanes, unlucky, next_one)

    assert isinstance(unlucky.error, Refusal)
    assert unlucky.error.code is ErrorCode.OVERLOADED
    assert meddled == MAX_CONFLICTS + 1
    assert (await stored(store)).added == (f"other{meddled}", "next")


# Mistakes


async def test_a_state_that_can_not_be_read_fails_its_works_and_no_other_key(
    lanes: Lanes[Count], requester: Requester, subjects: Subjects
) -> None:
    await requester.publish(subjects.revision("turns", "k", wants=False), b"\xff nonsense")
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
