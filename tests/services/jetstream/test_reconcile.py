"""The reconcile loop: what the newest state of a key wants is done, at least once, whatever happens in between."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from tests.services.jetstream.conftest import Connecting, Requesting, came_back, make_bucket
from tests.services.jetstream.raw import Proxy
from tests.services.jetstream.reconciling import (
    QUIET,
    Performer,
    all_acked,
    delivered,
    make_consumer,
    save,
    was_delivered,
)
from tests.waiting import wait_until
from turngate.jetstream import reconcile
from turngate.jetstream.connect import Connection
from turngate.jetstream.embedded import EmbeddedServer
from turngate.jetstream.reconcile import MAX_AT_ONCE, Reconciler
from turngate.jetstream.request import Requester
from turngate.jetstream.store import Entry, Store
from turngate_contracts import headers as h
from turngate_contracts.subjects import Subjects
from turngate_contracts.topology import TURNS_RECONCILER

Starting = Callable[[Connection, Store, Performer], Awaitable[Reconciler]]


@pytest.fixture
async def starting() -> AsyncIterator[Starting]:
    """Start reconcilers; they are stopped with the test."""
    made: list[Reconciler] = []

    async def start_one(connection: Connection, store: Store, performer: Performer) -> Reconciler:
        reconciler = Reconciler(connection, store, TURNS_RECONCILER, performer)
        made.append(reconciler)
        await reconciler.start()
        return reconciler

    yield start_one
    for reconciler in made:
        await reconciler.stop(100)


@pytest.fixture
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reconcile, "RETRY_MS", (50, 100, 150))


@pytest.fixture
async def bucket(store: Store, requester: Requester, subjects: Subjects) -> Store:
    """A bucket with its reconciler's consumer."""
    await make_consumer(requester, subjects)
    return store


# What is performed


async def test_a_state_that_wants_something_is_performed_once_and_acked(
    connection: Connection, bucket: Store, starting: Starting
) -> None:
    performer = Performer()
    reconciler = await starting(connection, bucket, performer)

    await save(bucket, "k", b"1")
    await wait_until(lambda: performer.performed)
    await wait_until(lambda: all_acked(bucket))

    assert performer.performed == [("k", b"1")]
    assert reconciler.performed == 1


async def test_a_state_that_the_process_holds_is_performed_without_being_loaded(
    connection: Connection, bucket: Store
) -> None:
    performer, recalled = Performer(), list[tuple[str, int]]()

    async def perform_held(key: str, revision: int) -> None:
        recalled.append((key, revision))
        if len(recalled) == 1:
            raise OSError("not now")

    def recall(key: str, revision: int) -> Awaitable[None] | None:
        return perform_held(key, revision) if key == "held" else None

    reconciler = Reconciler(connection, bucket, TURNS_RECONCILER, performer, recall=recall)
    await reconciler.start()
    held = await save(bucket, "held", b"1")
    await save(bucket, "else", b"1")

    await wait_until(lambda: all_acked(bucket))
    await reconciler.stop(1_000)

    assert recalled == [("held", held)] * 2, "it is tried again like any other"
    assert performer.performed == [("else", b"1")]


async def test_a_state_that_was_saved_before_the_start_is_performed(
    connection: Connection, bucket: Store, starting: Starting
) -> None:
    await save(bucket, "k", b"1")
    performer = Performer()

    await starting(connection, bucket, performer)

    await wait_until(lambda: performer.performed == [("k", b"1")])


async def test_only_what_wants_something_is_delivered(
    connection: Connection, bucket: Store, starting: Starting
) -> None:
    performer = Performer()
    await starting(connection, bucket, performer)
    for number in range(20):
        await save(bucket, f"k{number}", b"1", QUIET)

    await save(bucket, "k5", b"2")
    await wait_until(lambda: all_acked(bucket))
    await save(bucket, "k5", b"3", QUIET)
    await wait_until(lambda: all_acked(bucket))

    assert performer.performed == [("k5", b"2")]
    assert await delivered(bucket) == 1


async def test_where_a_state_that_wants_nothing_is_delivered_it_is_acked_unread(
    connecting: Connecting, proxy: Proxy, bucket: Store, requester: Requester, subjects: Subjects, starting: Starting
) -> None:
    # As in a bucket that is not split.
    await make_consumer(requester, subjects, filter_subject="")
    for number in range(20):
        await save(bucket, f"k{number}", b"1", QUIET)
    performer = Performer()

    await starting(await connecting(proxy.url), bucket, performer)
    # The server counts what is pending behind the stores: while it delivers it may say that nothing is left.
    await wait_until(lambda: was_delivered(bucket, 20))
    await wait_until(lambda: all_acked(bucket))

    assert await delivered(bucket) == 20
    assert performer.performed == []
    assert b"DIRECT.GET" not in proxy.sent


async def test_only_the_newest_of_several_revisions_is_performed(
    connection: Connection, bucket: Store, starting: Starting
) -> None:
    for number in range(10):
        await save(bucket, "k", b"%d" % number)
    performer = Performer()

    await starting(connection, bucket, performer)
    await wait_until(lambda: all_acked(bucket))

    assert performer.performed == [("k", b"9")]


async def test_a_newer_state_that_wants_nothing_ends_what_the_older_wanted(
    connection: Connection, bucket: Store, starting: Starting
) -> None:
    await save(bucket, "k", b"1")
    await save(bucket, "k", b"2", QUIET)
    performer = Performer()

    await starting(connection, bucket, performer)
    await wait_until(lambda: all_acked(bucket))

    assert performer.performed == []


async def test_a_key_with_dots_is_named_whole(connection: Connection, bucket: Store, starting: Starting) -> None:
    performer = Performer()
    await starting(connection, bucket, performer)

    await save(bucket, "session.task", b"1")

    await wait_until(lambda: performer.keys == ["session.task"])


async def test_a_bounded_number_is_performed_at_once(connection: Connection, bucket: Store, starting: Starting) -> None:
    performer = Performer()
    performer.go.clear()
    await asyncio.gather(*(save(bucket, f"k{number}", b"1") for number in range(MAX_AT_ONCE + 20)))
    await starting(connection, bucket, performer)
    await wait_until(lambda: performer.at_once == MAX_AT_ONCE)

    performer.go.set()
    await wait_until(lambda: len(performer.performed) == MAX_AT_ONCE + 20)

    assert performer.most_at_once == MAX_AT_ONCE


async def test_two_reconcilers_share_a_bucket(
    connecting: Connecting, nats_server: EmbeddedServer, connection: Connection, bucket: Store, starting: Starting
) -> None:
    one, two = Performer(), Performer()
    for performer in (one, two):
        performer.go.clear()
    await starting(connection, bucket, one)
    await starting(await connecting(nats_server.url), bucket, two)
    await asyncio.gather(*(save(bucket, f"k{number}", b"1") for number in range(50)))
    await wait_until(lambda: one.at_once > 0 and two.at_once > 0)

    one.go.set()
    two.go.set()
    await wait_until(lambda: all_acked(bucket))

    assert sorted(one.keys + two.keys) == sorted(f"k{number}" for number in range(50))


# What goes wrong


@pytest.mark.usefixtures("quick_retries")
async def test_what_fails_is_done_again_later_each_time_with_a_longer_delay(
    connection: Connection, bucket: Store, starting: Starting
) -> None:
    performer = Performer()
    performer.failures["k"] = 3
    await starting(connection, bucket, performer)

    await save(bucket, "k", b"1")
    await wait_until(lambda: performer.performed == [("k", b"1")])

    times = [at for _, at in performer.attempts]
    assert len(times) == 4
    assert [late - early >= delay for early, late, delay in zip(times, times[1:], (0.05, 0.1, 0.15), strict=False)] == [
        True,
        True,
        True,
    ]


async def test_what_fails_does_not_hold_up_other_keys(
    connection: Connection, bucket: Store, starting: Starting
) -> None:
    performer = Performer()
    performer.failures["bad"] = 1_000
    await starting(connection, bucket, performer)

    await save(bucket, "bad", b"1")
    await save(bucket, "good", b"1")

    await wait_until(lambda: performer.keys == ["good"])


@pytest.mark.usefixtures("quick_retries")
async def test_a_newer_state_replaces_one_that_fails(connection: Connection, bucket: Store, starting: Starting) -> None:
    performer = Performer()
    performer.failures["k"] = 2
    await starting(connection, bucket, performer)

    await save(bucket, "k", b"1")
    await wait_until(lambda: performer.attempts)
    await save(bucket, "k", b"2")
    await wait_until(lambda: performer.performed)
    await wait_until(lambda: all_acked(bucket))

    assert performer.performed == [("k", b"2")]


async def test_what_takes_longer_than_the_acknowledgement_wait_is_done_once(
    connection: Connection,
    store: Store,
    requester: Requester,
    subjects: Subjects,
    starting: Starting,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reconcile, "TICK_MS", 100)
    await make_consumer(requester, subjects, ack_wait=400_000_000)
    performer = Performer()
    performer.go.clear()
    reconciler = await starting(connection, store, performer)
    await save(store, "k", b"1")
    await wait_until(lambda: performer.at_once)
    began = time.monotonic()

    await wait_until(lambda: time.monotonic() > began + 1)
    assert reconciler.loop.received == 1
    performer.go.set()

    await wait_until(lambda: all_acked(store))
    assert performer.performed == [("k", b"1")]


@pytest.mark.usefixtures("quick_retries")
async def test_a_replica_that_is_behind_does_not_lose_what_the_state_wants(
    connection: Connection, bucket: Store, requester: Requester, subjects: Subjects, starting: Starting
) -> None:
    class Behind(Store):
        """A bucket whose first reads come from a replica that has not stored the newest revision yet."""

        async def load(self, key: str) -> Entry:
            return behind.pop(0) if behind else await super().load(key)

    behind = [Entry("k", 0, None), Entry("k", 1, b"1")]
    await save(bucket, "k", b"1", QUIET)
    await save(bucket, "k", b"2")
    performer = Performer()

    await starting(connection, Behind(requester, subjects, "turns", "count.v1"), performer)

    await wait_until(lambda: performer.performed == [("k", b"2")])
    await wait_until(lambda: all_acked(bucket))


async def test_a_revision_that_has_expired_in_the_meantime_is_acked(
    connection: Connection, bucket: Store, requester: Requester, subjects: Subjects, starting: Starting
) -> None:
    performer = Performer()
    performer.go.clear()
    await asyncio.gather(*(save(bucket, f"busy{number}", b"1") for number in range(MAX_AT_ONCE)))
    await starting(connection, bucket, performer)
    await wait_until(lambda: performer.at_once == MAX_AT_ONCE)
    older = await save(bucket, "k", b"1", QUIET)
    head = h.block({h.WANTS: "1", h.MESSAGE_TTL: "1s"})
    await requester.publish(subjects.revision("turns", "k", wants=True), b"2", head)
    await wait_until(lambda: _is_at(bucket, "k", older))

    performer.go.set()
    await wait_until(lambda: all_acked(bucket))

    assert "k" not in performer.keys


async def _is_at(store: Store, key: str, revision: int) -> bool:
    return (await store.load(key)).revision == revision


@pytest.mark.usefixtures("quick_retries")
async def test_a_kill_of_the_server_loses_nothing_that_a_state_wants(
    connecting: Connecting, requesting: Requesting, own_server: EmbeddedServer, subjects: Subjects, starting: Starting
) -> None:
    saving = await requesting(await connecting(own_server.url))
    store = await make_bucket(saving, subjects)
    await make_consumer(saving, subjects, ack_wait=1_000_000_000)
    keys = [f"k{number}" for number in range(100)]
    await asyncio.gather(*(save(store, key, b"1") for key in keys))
    connection = await connecting(own_server.url)
    requester = await requesting(connection)
    performer = Performer()
    performer.go.clear()
    await starting(connection, Store(requester, subjects, "turns", "count.v1"), performer)
    await wait_until(lambda: performer.at_once == MAX_AT_ONCE)

    own_server.kill()
    performer.go.set()
    own_server.start()
    await came_back(connection)

    await wait_until(lambda: set(performer.keys) == set(keys))
    await wait_until(lambda: all_acked(store))


# The end


async def test_stopping_finishes_what_is_under_way(connection: Connection, bucket: Store, starting: Starting) -> None:
    performer = Performer()
    performer.go.clear()
    reconciler = await starting(connection, bucket, performer)
    await save(bucket, "k", b"1")
    await wait_until(lambda: performer.at_once)
    stopping = asyncio.create_task(reconciler.stop(30_000))
    await connection.flush()

    performer.go.set()

    assert await stopping
    assert performer.performed == [("k", b"1")]


async def test_what_was_not_finished_in_time_is_done_by_another_at_once(
    connection: Connection, bucket: Store, starting: Starting
) -> None:
    stuck, other = Performer(), Performer()
    stuck.go.clear()
    reconciler = await starting(connection, bucket, stuck)
    await save(bucket, "k", b"1")
    await wait_until(lambda: stuck.at_once)

    assert not await reconciler.stop(50)
    await starting(connection, bucket, other)

    await wait_until(lambda: other.performed == [("k", b"1")], deadline_s=5)
    assert stuck.at_once == 0
