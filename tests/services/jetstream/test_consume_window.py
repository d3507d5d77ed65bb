"""The window of a consume loop: what is unfinished never exceeds it, and it is filled again, whatever is in the way."""

import time

import pytest

from tests.services.jetstream.conftest import Connecting, Requesting, Starting, came_back
from tests.services.jetstream.queues import Queue, loop_of
from tests.services.jetstream.raw import Proxy
from tests.waiting import wait_until
from turngate.jetstream import consume
from turngate.jetstream.connect import Connection
from turngate.jetstream.embedded import EmbeddedServer


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
