"""A handler that raises, and messages that nobody can read, cost the other messages of a loop nothing."""

import pytest

from tests.services.jetstream.conftest import Starting
from tests.services.jetstream.queues import Queue
from tests.services.jetstream.raw import RawClient
from tests.waiting import wait_until
from turngate.jetstream import consume
from turngate.jetstream.connect import Connection
from turngate.jetstream.consume import ConsumeLoop, Delivery


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
