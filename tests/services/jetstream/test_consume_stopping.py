"""A consume loop that stops finishes what it has in hand, hands on the rest at once, and leaves nothing behind."""

import asyncio
import gc
import weakref

from tests.services.jetstream.conftest import Connecting, Starting
from tests.services.jetstream.queues import Queue, Worker, loop_of
from tests.waiting import wait_until
from turngate.jetstream.connect import Connection
from turngate.jetstream.consume import ConsumeLoop, Delivery
from turngate.jetstream.embedded import EmbeddedServer
from turngate.jetstream.request import Requester


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
