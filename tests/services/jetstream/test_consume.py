"""The consume loop: its window is full and bounded, it survives what a server does, and it loses nothing."""

import asyncio
import gc
import time
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable
from types import SimpleNamespace
from typing import cast

import pytest

from tests.services.jetstream.conftest import Connecting, Requesting, came_back
from tests.services.jetstream.queues import Queue, Worker
from tests.services.jetstream.raw import Proxy, RawClient
from tests.waiting import wait_until
from turngate.jetstream import consume
from turngate.jetstream.connect import Connection
from turngate.jetstream.consume import ConsumeLoop, Delivery
from turngate.jetstream.embedded import EmbeddedServer
from turngate.jetstream.request import Requester

Starting = Callable[..., Awaitable[Worker]]


@pytest.fixture
async def starting() -> AsyncIterator[Starting]:
    """Start workers; their loops are stopped with the test."""
    workers: list[Worker] = []

    async def start_one(connection: Connection, queue: Queue, *, window: int = 8, hold: bool = False) -> Worker:
        worker = Worker(hold=hold)
        workers.append(worker)
        await worker.start(connection, queue, window=window)
        return worker

    yield start_one
    for worker in workers:
        worker.hold = False
        worker.release()
        if worker.loop is not None:
            await worker.loop.stop(1_000)


@pytest.fixture
async def queue(requester: Requester, namespace: str) -> Queue:
    return await Queue.make(requester, namespace)


@pytest.fixture
def quick_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look after the loop more often than once a second."""
    monkeypatch.setattr(consume, "CHECK_MS", 50)


def loop_of(worker: Worker) -> ConsumeLoop:
    assert worker.loop is not None
    return worker.loop


# The window


async def test_all_messages_are_handled_once_whether_they_were_there_or_come(
    connection: Connection, queue: Queue, starting: Starting
) -> None:
    await queue.publish(500)
    worker = await starting(connection, queue, window=64)
    await queue.publish(500)

    await wait_until(queue.is_empty)

    assert sorted(worker.sequences) == list(range(1, 1001))
    assert loop_of(worker).handling == 0


async def test_no_more_than_the_window_is_ever_unfinished(
    connection: Connection, queue: Queue, starting: Starting
) -> None:
    await queue.publish(50)
    worker = await starting(connection, queue, window=8, hold=True)

    while len(worker.sequences) < 50:
        await wait_until(lambda: len(worker.held) == 8 or len(worker.sequences) == 50)
        assert await queue.unfinished() <= 8
        worker.release(6)
        worker.release(2)

    assert worker.most_at_once == 8


async def test_the_window_is_filled_again_when_half_of_it_is_free(
    connection: Connection, queue: Queue, starting: Starting
) -> None:
    await queue.publish(20)
    worker = await starting(connection, queue, window=8, hold=True)
    await wait_until(lambda: len(worker.held) == 8)

    worker.release(3)
    await connection.flush()
    assert await queue.waiting() == 12
    worker.release(1)

    await wait_until(lambda: len(worker.held) == 8)
    assert await queue.waiting() == 8


async def test_the_window_is_kept_over_pulls_that_expire(
    connection: Connection, queue: Queue, starting: Starting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consume, "EXPIRES_MS", 250)
    monkeypatch.setattr(consume, "HEARTBEAT_MS", 100)
    worker = await starting(connection, queue, window=8, hold=True)
    before = connection.stats["out_msgs"]
    await wait_until(lambda: loop_of(worker)._asked_at > 0)
    first = loop_of(worker)._asked_at
    await wait_until(lambda: loop_of(worker)._asked_at > first + 0.6, why="no pull expired")

    await queue.publish(50)
    await wait_until(lambda: len(worker.held) == 8)
    await wait_until(lambda: loop_of(worker)._asked == 0)

    assert await queue.unfinished() == 8
    assert before == connection.stats["out_msgs"]


async def test_the_window_is_kept_over_reconnects(
    connecting: Connecting, requesting: Requesting, proxy: Proxy, queue: Queue, starting: Starting
) -> None:
    behind = await connecting(proxy.url)
    await queue.publish(40)
    worker = await starting(behind, queue, window=8, hold=True)

    for times in (1, 2, 3):
        await wait_until(lambda: len(worker.held) == 8)
        proxy.cut()
        await came_back(behind, times)
        worker.release(4)
    worker.hold = False
    worker.release()
    await wait_until(queue.is_empty)

    assert worker.most_at_once == 8
    assert set(worker.sequences) == set(range(1, 41))


async def test_large_messages_do_not_make_the_server_give_up_on_us(
    connection: Connection, queue: Queue, starting: Starting
) -> None:
    # The server ends a connection with more than 64 MiB waiting, which a busy reader's window would be.
    for _ in range(10):
        await queue.publish(10, b"x" * 1024 * 1024)
    worker = await starting(connection, queue, window=256, hold=True)
    await wait_until(lambda: worker.held)
    time.sleep(0.5)  # noqa: ASYNC251  a handler that computes

    worker.hold = False
    worker.release()
    await wait_until(queue.is_empty)

    assert worker.most_deliveries == 1
    assert connection.stats["reconnects"] == 0


@pytest.mark.usefixtures("quick_checks")
async def test_a_message_over_the_byte_bound_of_a_pull_is_fetched_all_the_same(
    connection: Connection, queue: Queue, starting: Starting, monkeypatch: pytest.MonkeyPatch
) -> None:
    await queue.publish(1, b"x" * 100_000)
    monkeypatch.setattr(consume, "PULL_BYTES", 1000)
    monkeypatch.setattr(connection, "_max_payload", 1000)

    worker = await starting(connection, queue)

    await wait_until(lambda: worker.sequences == [1])


async def test_two_loops_share_a_consumer(
    connecting: Connecting, nats_server: EmbeddedServer, connection: Connection, queue: Queue, starting: Starting
) -> None:
    one = await starting(connection, queue, window=16, hold=True)
    two = await starting(await connecting(nats_server.url), queue, window=16, hold=True)
    await queue.publish(100)
    await wait_until(lambda: len(one.held) == 16 and len(two.held) == 16)

    for worker in (one, two):
        worker.hold = False
        worker.release()
    await wait_until(queue.is_empty)

    assert sorted(one.sequences + two.sequences) == list(range(1, 101))


# How a delivery ends


async def test_an_acked_message_comes_no_more(connection: Connection, queue: Queue, starting: Starting) -> None:
    await queue.publish(1)
    worker = await starting(connection, queue)

    await wait_until(queue.is_empty)

    assert worker.sequences == [1]


async def test_a_message_that_is_given_back_comes_again_after_the_delay(
    connection: Connection, queue: Queue, starting: Starting
) -> None:
    await queue.publish(1)
    worker = await starting(connection, queue, hold=True)
    await wait_until(lambda: worker.held)
    given_back = time.monotonic()

    worker.held.pop().nak(300)

    await wait_until(lambda: worker.held)
    assert time.monotonic() - given_back >= 0.3
    assert (worker.held[0].sequence, worker.held[0].deliveries) == (1, 2)


async def test_a_terminated_message_comes_no_more(connection: Connection, queue: Queue, starting: Starting) -> None:
    await queue.publish(1)
    worker = await starting(connection, queue, hold=True)
    await wait_until(lambda: worker.held)

    worker.held.pop().term("kept elsewhere")

    await wait_until(queue.is_empty)
    assert worker.sequences == [1]


async def test_a_message_in_progress_does_not_come_again(
    connection: Connection, requester: Requester, namespace: str, starting: Starting
) -> None:
    queue = await Queue.make(requester, namespace, ack_wait_ms=400)
    await queue.publish(1)
    worker = await starting(connection, queue, hold=True)
    await wait_until(lambda: worker.held)
    since = time.monotonic()

    while time.monotonic() - since < 1:
        worker.held[0].in_progress()
        await asyncio.sleep(0.05)

    assert worker.sequences == [1]


async def test_a_message_that_is_never_ended_comes_again(
    connection: Connection, requester: Requester, namespace: str, starting: Starting
) -> None:
    queue = await Queue.make(requester, namespace, ack_wait_ms=200)
    await queue.publish(1)
    worker = await starting(connection, queue, hold=True)

    await wait_until(lambda: worker.sequences[:2] == [1, 1])


async def test_only_the_first_end_of_a_delivery_counts(
    connection: Connection, queue: Queue, starting: Starting
) -> None:
    await queue.publish(1)
    worker = await starting(connection, queue, hold=True)
    await wait_until(lambda: worker.held)
    delivery = worker.held.pop()

    delivery.ack()
    delivery.nak(0)
    delivery.term("again")
    delivery.in_progress()

    await wait_until(queue.is_empty)
    assert delivery.ended
    assert loop_of(worker).handling == 0
    assert worker.sequences == [1]


async def test_a_dropped_delivery_frees_its_place_and_says_nothing_to_the_server(
    connection: Connection, queue: Queue, starting: Starting
) -> None:
    await queue.publish(3)
    worker = await starting(connection, queue, window=1, hold=True)
    await wait_until(lambda: worker.held)

    worker.held.pop().drop()

    await wait_until(lambda: worker.held)
    assert worker.sequences == [1, 2]
    assert await queue.unfinished() == 2


async def test_a_delivery_can_be_acknowledged_by_a_request_that_confirms_it(
    connection: Connection, requester: Requester, queue: Queue, starting: Starting
) -> None:
    await queue.publish(1)
    worker = await starting(connection, queue, hold=True)
    await wait_until(lambda: worker.held)

    await requester.request(worker.held[0].answer_to, b"+ACK")
    worker.held.pop().drop()

    assert await queue.is_empty()
    assert loop_of(worker).handling == 0


async def test_a_window_can_grow_and_shrink(connection: Connection, queue: Queue, starting: Starting) -> None:
    await queue.publish(50)
    worker = await starting(connection, queue, window=4, hold=True)
    await wait_until(lambda: len(worker.held) == 4)

    loop_of(worker).resize(10)
    await wait_until(lambda: len(worker.held) == 10)
    loop_of(worker).resize(2)
    worker.release(9)
    await wait_until(lambda: len(worker.held) == 2)

    assert await queue.unfinished() == 2


async def test_an_ack_that_can_not_be_sent_costs_a_redelivery(
    own_connection: Connection, own_requester: Requester, own_server: EmbeddedServer, starting: Starting
) -> None:
    queue = await Queue.make(own_requester, "t", ack_wait_ms=500)
    await queue.publish(1)
    worker = await starting(own_connection, queue, hold=True)
    await wait_until(lambda: worker.held)

    own_server.kill()
    await wait_until(lambda: not own_connection.is_connected)
    worker.hold = False
    worker.release()
    own_server.start()

    await wait_until(lambda: worker.sequences == [1, 1])


@pytest.mark.parametrize(
    "reply",
    [
        b"$JS.ACK.S.C.3.42.7.1796031529527229390.0",
        b"$JS.ACK.domain.account.S.C.3.42.7.1796031529527229390.0",
        b"$JS.ACK._.account.S.C.3.42.7.1796031529527229390.0.random",
    ],
)
def test_a_delivery_knows_its_sequence_and_how_often_it_came(reply: bytes) -> None:
    delivery = Delivery(cast("ConsumeLoop", SimpleNamespace(heard=0.0)), b"x", reply, b"", b"")

    assert (delivery.sequence, delivery.deliveries) == (42, 3)


# Handlers that fail


async def test_a_handler_that_raises_costs_its_message_a_delay_and_the_others_nothing(
    connection: Connection, queue: Queue, starting: Starting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consume, "FAILED_MS", 200)
    ended: list[int] = []

    def handle(delivery: Delivery) -> None:
        if delivery.sequence == 1 and delivery.deliveries == 1:
            raise ValueError("a mistake")
        ended.append(delivery.sequence)
        delivery.ack()

    await queue.publish(3)
    loop = ConsumeLoop(connection, queue.stream, queue.consumer, handle, window=1)
    await loop.start()

    await wait_until(lambda: ended == [2, 3, 1])
    assert await loop.stop()


async def test_a_handler_that_raises_after_it_acked_does_not_widen_the_window(
    connection: Connection, queue: Queue
) -> None:
    ended: list[int] = []

    def handle(delivery: Delivery) -> None:
        delivery.ack()
        ended.append(delivery.sequence)
        raise ValueError("a mistake")

    await queue.publish(20)
    loop = ConsumeLoop(connection, queue.stream, queue.consumer, handle, window=4)
    await loop.start()

    await wait_until(queue.is_empty)
    assert ended == list(range(1, 21))
    assert loop.handling == 0
    assert await loop.stop()


async def test_a_subject_that_is_not_utf8_reaches_the_handler_and_costs_no_place_in_the_window(
    connection: Connection, raw: RawClient, queue: Queue, starting: Starting
) -> None:
    for _ in range(5):
        await raw.publish(queue.subject.encode()[:-1] + b"\xff\xfe", b"")
    worker = await starting(connection, queue, window=1, hold=True)
    await wait_until(lambda: worker.held)

    assert worker.held[0].subject == f"{queue.subject[:-1]}\ufffd\ufffd"
    worker.hold = False
    worker.release()
    await wait_until(queue.is_empty)


@pytest.mark.parametrize("head", [b"NATS/1.0", b"NATS/1.0 \xff\r\n\r\n", b"NATS/1.0 " + b"1" * 5000 + b"\r\n\r\n"])
async def test_a_stored_message_with_a_malformed_header_block_stops_no_consumer(
    connection: Connection, raw: RawClient, queue: Queue, starting: Starting, head: bytes
) -> None:
    await raw.publish(queue.subject.encode(), b"bad", headers=head)
    await raw.publish(queue.subject.encode(), b"good")
    worker = await starting(connection, queue, window=1, hold=True)
    await wait_until(lambda: worker.held)

    assert worker.held[0].headers() == {}
    worker.release()

    await wait_until(lambda: worker.sequences == [1, 2])
    assert worker.held[0].body == b"good"


# What servers do


async def test_a_kill_of_the_server_loses_nothing_and_stalls_nothing(
    own_connection: Connection, own_requester: Requester, own_server: EmbeddedServer, starting: Starting
) -> None:
    queue = await Queue.make(own_requester, "t", ack_wait_ms=500)
    await queue.publish(200)
    worker = await starting(own_connection, queue, hold=True)
    await wait_until(lambda: len(worker.held) == 8)

    own_server.kill()
    own_server.start()
    await came_back(own_connection)
    returned = time.monotonic()
    worker.hold = False
    worker.release()
    await queue.publish(100)
    await wait_until(queue.is_empty)

    assert set(worker.sequences) == set(range(1, 301))
    # A pull that slept out its time would take 30 s.
    assert time.monotonic() - returned < 10


async def test_an_idle_loop_serves_at_once_after_a_restart(
    own_connection: Connection, own_requester: Requester, own_server: EmbeddedServer, starting: Starting
) -> None:
    queue = await Queue.make(own_requester, "t")
    worker = await starting(own_connection, queue)

    own_server.restart()
    await came_back(own_connection)
    await queue.publish(1)

    await wait_until(lambda: worker.sequences == [1], deadline_s=3)


@pytest.mark.usefixtures("quick_checks")
async def test_a_consumer_that_is_made_anew_is_found_again(
    connection: Connection, queue: Queue, starting: Starting
) -> None:
    worker = await starting(connection, queue)
    await queue.publish(1)
    await wait_until(lambda: worker.sequences == [1])
    await wait_until(queue.is_asked)

    await queue.delete_consumer()
    await wait_until(lambda: loop_of(worker).gone)
    await queue.make_consumer()
    await queue.publish(1)

    await wait_until(lambda: worker.sequences == [1, 2])
    assert not loop_of(worker).gone


@pytest.mark.usefixtures("quick_checks")
async def test_a_stream_that_is_made_anew_is_found_again(
    connection: Connection, queue: Queue, starting: Starting
) -> None:
    worker = await starting(connection, queue)
    await wait_until(queue.is_asked)

    await queue.delete_stream()
    await wait_until(lambda: loop_of(worker).gone)
    await queue.make_stream()
    await queue.make_consumer()
    await queue.publish(1)

    await wait_until(lambda: worker.sequences == [1])


@pytest.mark.usefixtures("quick_checks")
async def test_a_loop_may_start_before_its_consumer_is_made(
    connection: Connection, requester: Requester, namespace: str, starting: Starting
) -> None:
    queue = Queue(requester, namespace, {})
    worker = await starting(connection, queue)
    await wait_until(lambda: loop_of(worker).gone)

    await queue.make_stream()
    await queue.make_consumer()
    await queue.publish(1)

    await wait_until(lambda: worker.sequences == [1])


@pytest.mark.usefixtures("quick_checks")
async def test_pulls_do_not_pile_up_while_a_new_consumer_has_nothing(
    connection: Connection, queue: Queue, starting: Starting
) -> None:
    worker = await starting(connection, queue, hold=True)
    await wait_until(queue.is_asked)
    await queue.delete_consumer()
    await wait_until(lambda: loop_of(worker).gone)
    await queue.make_consumer()
    await wait_until(lambda: not loop_of(worker).gone)
    checks = asyncio.get_running_loop().time()
    await wait_until(lambda: asyncio.get_running_loop().time() > checks + 0.3)

    assert (await queue.info())["num_waiting"] == 1
    await queue.publish(50)
    await wait_until(lambda: len(worker.held) == 8)
    assert await queue.unfinished() == 8


@pytest.mark.usefixtures("quick_checks")
async def test_a_pull_that_found_no_room_is_asked_for_again_but_not_at_once(
    connecting: Connecting,
    proxy: Proxy,
    connection: Connection,
    requester: Requester,
    namespace: str,
    starting: Starting,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(consume, "HEARTBEAT_MS", 100)
    queue = await Queue.make(requester, namespace, max_waiting=1)
    first = await starting(connection, queue, hold=True)
    await wait_until(queue.is_asked)
    second = await starting(await connecting(proxy.url), queue, hold=True)
    since = time.monotonic()

    await wait_until(lambda: proxy.sent.count(b"MSG.NEXT") >= 4)

    assert time.monotonic() - since >= 0.6  # three times, the server said nothing for more than two heartbeats
    await loop_of(first).stop()
    await queue.publish(20)
    await wait_until(lambda: len(second.held) == 8)
    assert await queue.unfinished() == 8


async def test_a_pull_that_got_lost_is_noticed_by_the_missing_heartbeats(
    connecting: Connecting, proxy: Proxy, queue: Queue, starting: Starting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consume, "HEARTBEAT_MS", 100)
    monkeypatch.setattr(consume, "CHECK_MS", 50)
    await queue.publish(1)
    behind = await connecting(proxy.url)
    proxy.lose = b"$JS.API.CONSUMER.MSG.NEXT"
    worker = await starting(behind, queue)
    await wait_until(lambda: proxy.lost == 1)
    proxy.lose = b""

    await wait_until(lambda: worker.sequences == [1], deadline_s=5)


# The end


async def test_stopping_waits_for_what_is_being_handled(
    connection: Connection, queue: Queue, starting: Starting
) -> None:
    await queue.publish(3)
    worker = await starting(connection, queue, hold=True)
    await wait_until(lambda: len(worker.held) == 3)
    stopping = asyncio.create_task(loop_of(worker).stop(30_000))
    await connection.flush()
    assert not stopping.done()

    worker.release()

    assert await stopping
    await wait_until(queue.is_empty)


async def test_stopping_says_when_something_was_not_ended_in_time(
    connection: Connection, queue: Queue, starting: Starting
) -> None:
    await queue.publish(1)
    worker = await starting(connection, queue, hold=True)
    await wait_until(lambda: worker.held)

    assert not await loop_of(worker).stop(50)


async def test_what_arrives_while_stopping_goes_to_another_loop_at_once_and_only_once(
    connecting: Connecting, nats_server: EmbeddedServer, connection: Connection, queue: Queue, starting: Starting
) -> None:
    stops: list[asyncio.Task[bool]] = []

    def stop_at_the_first(delivery: Delivery) -> None:
        stops.append(asyncio.create_task(loop.stop(30_000)))
        held.append(delivery)

    held: list[Delivery] = []
    loop = ConsumeLoop(connection, queue.stream, queue.consumer, stop_at_the_first, window=100)
    await queue.publish(100)
    await loop.start()
    await wait_until(lambda: stops)
    other = await starting(await connecting(nats_server.url), queue, window=100)

    # The acknowledgement wait is 30 s: what was not handed back would come too late.
    await wait_until(lambda: len(other.sequences) == 100 - len(held), deadline_s=5)

    assert other.most_deliveries <= 2
    for delivery in held:
        delivery.ack()
    assert all(await asyncio.gather(*stops))
    await wait_until(queue.is_empty)


async def test_a_stopping_loop_does_not_deliver_to_itself_what_it_hands_back(
    connection: Connection, requester: Requester, namespace: str, starting: Starting
) -> None:
    queue = await Queue.make(requester, namespace, max_deliver=3)
    await queue.publish(1)
    slow = await starting(connection, queue, window=100, hold=True)
    await wait_until(lambda: slow.held)

    stopping = asyncio.create_task(loop_of(slow).stop(30_000))
    await asyncio.sleep(0)
    await queue.publish(1)
    for _ in range(10):  # round trips in which it could come and go again
        await queue.info()
    slow.release()
    assert await stopping

    other = await starting(connection, queue)
    await wait_until(lambda: other.sequences == [2], deadline_s=5)
    assert other.most_deliveries <= 2


async def test_a_loop_can_be_stopped_while_disconnected(
    own_connection: Connection, own_requester: Requester, own_server: EmbeddedServer, starting: Starting
) -> None:
    queue = await Queue.make(own_requester, "t")
    worker = await starting(own_connection, queue)
    own_server.kill()
    await wait_until(lambda: not own_connection.is_connected)

    assert await loop_of(worker).stop()


async def test_a_stopped_loop_leaves_nothing_behind_on_its_connection(connection: Connection, queue: Queue) -> None:
    worker = Worker()
    loop = await worker.start(connection, queue)
    await queue.publish(1)
    await wait_until(queue.is_empty)
    gone = weakref.ref(loop)

    await loop.stop()
    del loop, worker
    gc.collect()

    assert gone() is None
