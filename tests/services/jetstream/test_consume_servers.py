"""A consume loop goes on after kills, restarts, lost pulls, and consumers and streams that are made anew."""

import asyncio
import time

import pytest

from tests.services.jetstream.conftest import Connecting, Starting, came_back
from tests.services.jetstream.queues import Queue, loop_of
from tests.services.jetstream.raw import Proxy
from tests.waiting import wait_until
from turngate.jetstream import consume
from turngate.jetstream.connect import Connection
from turngate.jetstream.embedded import EmbeddedServer
from turngate.jetstream.request import Requester


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


async def test_an_ack_of_a_message_that_its_server_forgot_ends_no_other_of_the_same_number(
    own_connection: Connection, own_requester: Requester, own_server: EmbeddedServer, starting: Starting
) -> None:
    queue = await Queue.make(own_requester, "t")
    await queue.publish(1, b"old")
    worker = await starting(own_connection, queue, hold=True)
    await wait_until(lambda: [held.body for held in worker.held] == [b"old"])

    own_server.kill()
    own_server.start()
    await came_back(own_connection)
    await queue.delete_stream()  # as a stream that is written asynchronously may come back
    await queue.make_stream()
    await queue.make_consumer()
    await queue.publish(1, b"new")
    await wait_until(lambda: [held.body for held in worker.held] == [b"old", b"new"])
    worker.held[0].ack()
    await wait_until(lambda: len(worker.held) == 3, why="it is given back instead, and comes again")

    assert not await queue.is_empty()
    assert worker.held[2].body == b"new"
    worker.release()
    await wait_until(queue.is_empty)


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
    await wait_until(queue.is_empty, why="an ack that comes after its consumer's end would be lost")

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
