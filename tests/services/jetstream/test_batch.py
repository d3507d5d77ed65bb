"""Group commit: saves that are due together are stored together, and each is told its own outcome."""

import asyncio

import pytest

from tests.services.jetstream.conftest import make_bucket
from turngate.jetstream.batch import LEAST, Batches
from turngate.jetstream.embedded import EmbeddedServer
from turngate.jetstream.request import Requester
from turngate.jetstream.store import Conflict, Event, Store
from turngate_contracts.errors import PayloadTooLarge, Unavailable
from turngate_contracts.subjects import Subjects

EVENT = Event("test.saved", 1_700_000_000_000)
SOME = LEAST + 4


@pytest.fixture
async def grouped(requester: Requester, subjects: Subjects) -> Store:
    """A bucket whose saves are grouped."""
    await make_bucket(requester, subjects)
    return Store(requester, subjects, "turns", "count.v1", grouped=True)


def batches_of(store: Store) -> Batches:
    found = getattr(store._publish_nowait, "__self__", None)
    assert isinstance(found, Batches)
    return found


async def save_all(store: Store, *keys: str, value: bytes = b"1", revision: int = 0) -> list[int | BaseException]:
    return await asyncio.gather(*(store.save(key, value, revision, EVENT) for key in keys), return_exceptions=True)


async def test_saves_that_are_due_together_are_one_batch_and_each_gets_its_revision(grouped: Store):
    keys = [f"k{n}" for n in range(SOME)]
    revisions = await save_all(grouped, *keys)
    assert revisions == list(range(1, SOME + 1))
    assert (batches_of(grouped).batches, batches_of(grouped).singles) == (1, 0)
    for key, revision in zip(keys, revisions, strict=True):
        entry = await grouped.load(key)
        assert (entry.revision, entry.value) == (revision, b"1")


async def test_revisions_of_a_batch_can_be_saved_upon(grouped: Store):
    keys = [f"k{n}" for n in range(SOME)]
    first = await save_all(grouped, *keys)
    again = await asyncio.gather(
        *(grouped.save(key, b"2", rev, EVENT) for key, rev in zip(keys, first, strict=True) if isinstance(rev, int))
    )
    assert len(set(again)) == SOME


async def test_a_batch_keeps_the_headers_of_each_save(grouped: Store):
    await save_all(grouped, *(f"k{n}" for n in range(SOME)))
    fields = (await grouped.load("k3")).headers()
    assert fields["ce-type"] == "turngate.test.saved"
    assert fields["ce-subject"] == "k3"
    assert fields["Turngate-Schema"] == "count.v1"


async def test_few_saves_are_published_one_by_one(grouped: Store):
    await save_all(grouped, *(f"k{n}" for n in range(LEAST - 1)))
    assert batches_of(grouped).batches == 0


async def test_one_conflict_in_a_batch_is_that_save_s_alone(grouped: Store):
    await grouped.save("k5", b"0", 0, EVENT)
    results = await save_all(grouped, *(f"k{n}" for n in range(SOME)))
    assert [n for n, result in enumerate(results) if isinstance(result, Conflict)] == [5]
    assert sum(isinstance(result, int) for result in results) == SOME - 1
    assert batches_of(grouped).broken_up == 1


async def test_one_save_that_is_too_large_is_that_save_s_alone(grouped: Store):
    large = grouped.save("large", b"x" * (grouped.requester.connection.max_payload + 1), 0, EVENT)
    small = [grouped.save(f"k{n}", b"1", 0, EVENT) for n in range(SOME)]
    results = await asyncio.gather(large, *small, return_exceptions=True)
    assert isinstance(results[0], PayloadTooLarge)
    assert all(isinstance(result, int) for result in results[1:])


async def test_thousands_of_saves_go_through_in_few_batches(grouped: Store):
    results = await save_all(grouped, *(f"k{n}" for n in range(2_000)))
    assert sorted(r for r in results if isinstance(r, int)) == list(range(1, 2_001))
    assert batches_of(grouped).batches < 200


async def test_saves_come_through_beside_another_writer_of_the_bucket(grouped: Store, subjects: Subjects):
    other = Store(grouped.requester, subjects, "turns", "count.v1", grouped=True)
    mine, theirs = await asyncio.gather(
        save_all(grouped, *(f"a{n}" for n in range(200))), save_all(other, *(f"b{n}" for n in range(200)))
    )
    for prefix, results in (("a", mine), ("b", theirs)):
        for number, revision in enumerate(results):
            assert (await grouped.load(f"{prefix}{number}")).revision == revision


async def test_a_server_that_dies_under_a_batch_leaves_nobody_waiting(
    own_requester: Requester, own_server: EmbeddedServer, subjects: Subjects
):
    await make_bucket(own_requester, subjects)
    store = Store(own_requester, subjects, "turns", "count.v1", grouped=True)
    await save_all(store, *(f"k{n}" for n in range(SOME)))
    saving = asyncio.create_task(save_all(store, *(f"n{n}" for n in range(500)), value=b"x" * 20_000))
    await asyncio.sleep(0)
    await asyncio.to_thread(own_server.kill)
    results = await saving
    assert len(results) == 500
    assert all(isinstance(result, (int, Unavailable)) for result in results)
