"""What waits behind messages of its own key takes no place from other keys, up to a limit."""

from tests.services.jetstream.queues import Queue
from tests.waiting import wait_until
from turngate.jetstream.connect import Connection
from turngate.jetstream.consume import MOST_PARKED, ConsumeLoop, Delivery
from turngate.jetstream.request import Requester
from turngate_contracts.subjects import Subjects

WINDOW = 4


class Holder:
    """Holds what it is given, and parks what is noisy."""

    def __init__(self) -> None:
        self.held: list[Delivery] = []

    def take(self, delivery: Delivery) -> None:
        self.held.append(delivery)
        if delivery.body == b"noisy":
            delivery.park()


async def start(connection: Connection, queue: Queue, holder: Holder) -> ConsumeLoop:
    loop = ConsumeLoop(connection, queue.stream, queue.consumer, holder.take, window=WINDOW)
    await loop.start()
    return loop


async def test_a_key_that_fills_the_window_does_not_keep_the_others_out(
    connection: Connection, requester: Requester, subjects: Subjects
) -> None:
    queue = await Queue.make(requester, subjects.namespace)
    await queue.publish(3 * WINDOW, b"noisy")
    await queue.publish(1, b"quiet")
    holder = Holder()

    loop = await start(connection, queue, holder)

    await wait_until(lambda: any(each.body == b"quiet" for each in holder.held), why="the quiet one came")
    for delivery in holder.held:
        delivery.ack()
    assert await loop.stop()
    assert loop.waiting == 0


async def test_what_a_process_holds_is_limited_all_the_same(
    connection: Connection, requester: Requester, subjects: Subjects
) -> None:
    queue = await Queue.make(requester, subjects.namespace)
    await queue.publish(10 * WINDOW, b"noisy")
    holder = Holder()

    loop = await start(connection, queue, holder)

    most = (MOST_PARKED + 1) * WINDOW
    await wait_until(lambda: len(holder.held) == most, why="it holds what it may")
    assert await queue.waiting() == 10 * WINDOW - most
    while holder.held:
        holder.held.pop().ack()
    await wait_until(lambda: loop.received == 10 * WINDOW, why="the others came")
    for delivery in holder.held:
        delivery.ack()
    assert await loop.stop()
