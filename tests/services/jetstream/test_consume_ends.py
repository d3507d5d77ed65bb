"""How a delivery ends: acked, given back, terminated or never; once, and a message that was not ended comes again."""

import asyncio
import time
from types import SimpleNamespace
from typing import cast

import pytest

from tests.services.jetstream.conftest import Starting
from tests.services.jetstream.queues import Queue, loop_of
from tests.waiting import wait_until
from turngate.jetstream.connect import Connection
from turngate.jetstream.consume import ConsumeLoop, Delivery
from turngate.jetstream.embedded import EmbeddedServer
from turngate.jetstream.request import Requester


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
    delivery = Delivery(cast("ConsumeLoop", SimpleNamespace(heard=0.0, epoch=0)), b"x", reply, b"", b"")

    assert (delivery.sequence, delivery.deliveries) == (42, 3)
