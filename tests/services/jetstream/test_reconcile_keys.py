"""States of one key in one process: performed one after the other, and of those that wait only the newest."""

from collections.abc import AsyncIterator

import pytest

from tests.services.jetstream import reconciling as t
from tests.services.jetstream.reconciling import Performer
from tests.waiting import wait_until
from turngate.jetstream.connect import Connection
from turngate.jetstream.consume import ConsumeLoop, Delivery
from turngate.jetstream.reconcile import Reconciler
from turngate.jetstream.request import Requester
from turngate.jetstream.store import Store
from turngate_contracts.subjects import Subjects
from turngate_contracts.topology import TURNS_RECONCILER


@pytest.fixture
async def bucket(store: Store, requester: Requester, subjects: Subjects) -> Store:
    """A bucket with its reconciler's consumer, from which an unfinished state comes again soon."""
    await t.make_consumer(requester, subjects, ack_wait=1_000_000_000)
    return store


@pytest.fixture
def performer() -> Performer:
    return Performer()


@pytest.fixture
async def reconciler(connection: Connection, bucket: Store, performer: Performer) -> AsyncIterator[Reconciler]:
    made = Reconciler(connection, bucket, TURNS_RECONCILER, performer)
    await made.start()
    yield made
    performer.go.set()
    await made.stop(1_000)


async def test_while_a_state_is_performed_only_the_newest_of_those_that_come_waits(
    reconciler: Reconciler, bucket: Store, performer: Performer
) -> None:
    performer.go.clear()
    await t.save(bucket, "k", b"1")
    await wait_until(lambda: performer.at_once == 1)
    for number in range(2, 6):
        await t.save(bucket, "k", b"%d" % number)
    await wait_until(lambda: reconciler.loop.received == 5)
    performer.go.set()

    await wait_until(lambda: t.all_acked(bucket))

    assert performer.performed == [("k", b"1"), ("k", b"5")]
    assert performer.most_at_once == 1


async def test_a_key_that_is_slow_does_not_hold_up_others(
    reconciler: Reconciler, bucket: Store, performer: Performer
) -> None:
    performer.go.clear()
    for key in ("a", "b", "c"):
        await t.save(bucket, key, b"1")

    await wait_until(lambda: performer.at_once == 3)


async def test_a_state_that_comes_again_while_it_is_performed_is_not_forgotten(
    reconciler: Reconciler, bucket: Store, performer: Performer
) -> None:
    performer.go.clear()
    await t.save(bucket, "k", b"1")
    await wait_until(lambda: reconciler.loop.received >= 2, why="its acknowledgement wait is over")
    performer.go.set()

    await wait_until(lambda: t.all_acked(bucket))

    assert set(performer.performed) == {("k", b"1")}
    assert performer.most_at_once == 1


async def test_what_waits_behind_one_that_fails_is_done(
    reconciler: Reconciler, bucket: Store, performer: Performer
) -> None:
    performer.go.clear()
    performer.failures["k"] = 1
    await t.save(bucket, "k", b"1")
    await wait_until(lambda: performer.at_once == 1)
    await t.save(bucket, "k", b"2")
    await wait_until(lambda: reconciler.loop.received == 2)
    performer.go.set()

    await wait_until(lambda: t.all_acked(bucket))

    assert performer.performed == [("k", b"2")]


async def test_what_waits_when_the_process_stops_is_done_by_another_at_once(
    reconciler: Reconciler, connection: Connection, bucket: Store, performer: Performer
) -> None:
    performer.go.clear()
    await t.save(bucket, "k", b"1")
    await wait_until(lambda: performer.at_once == 1)
    await t.save(bucket, "k", b"2")
    await wait_until(lambda: reconciler.loop.received == 2)

    assert await reconciler.stop(50) is False

    other = Performer()
    second = Reconciler(connection, bucket, TURNS_RECONCILER, other)
    await second.start()
    await wait_until(lambda: other.performed == [("k", b"2")])
    await second.stop(1_000)


async def test_a_delivery_says_when_its_message_was_stored(connection: Connection, bucket: Store) -> None:
    deliveries: list[Delivery] = []
    loop = ConsumeLoop(connection, bucket.stream, TURNS_RECONCILER, deliveries.append)
    await loop.start()
    await t.save(bucket, "k", b"1")
    await wait_until(lambda: deliveries)

    assert deliveries[0].stored_ns // 1_000_000 == (await bucket.load("k")).stored_at()

    deliveries[0].ack()
    await loop.stop()
