"""A message that nothing can be done with is kept once, with its reason and its origin, and then it is gone."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from tests.services.jetstream.conftest import Connecting, Requesting
from tests.services.jetstream.queues import Queue
from tests.services.jetstream.raw import Proxy, RawClient
from tests.waiting import wait_until
from turngate.clock import system_clock
from turngate.jetstream import deadletter
from turngate.jetstream.connect import Connection
from turngate.jetstream.consume import ConsumeLoop
from turngate.jetstream.deadletter import MAX_BODY, DeadLetters
from turngate.jetstream.direct import Stored, read_page
from turngate.jetstream.embedded import EmbeddedServer
from turngate.jetstream.request import Requester
from turngate_contracts import codec
from turngate_contracts import headers as h
from turngate_contracts.dead import DeadLetter, letter_id
from turngate_contracts.errors import ErrorBody, ErrorCode
from turngate_contracts.subjects import Subjects
from turngate_contracts.topology import Topology

REASON = ErrorBody(ErrorCode.INVALID_MESSAGE, "the body is not a message", {"reason": "cut"})


async def make_dead(requester: Requester, subjects: Subjects) -> None:
    """Make the dead-letter stream as provisioning does."""
    config = next(each for each in Topology(subjects).streams() if each["name"] == subjects.stream("dead"))
    await requester.api(f"STREAM.CREATE.{config['name']}", config)


async def dead(requester: Requester, subjects: Subjects) -> list[Stored]:
    found, _ = await read_page(requester, subjects.stream("dead"), 0, 256, subjects.dead_letters())
    return found


Burying = Callable[[Connection, Requester, Queue], Awaitable[DeadLetters]]


@pytest.fixture
async def burying(subjects: Subjects) -> AsyncIterator[Burying]:
    """Bury each message of a queue; it is stopped with the test."""
    loops: list[ConsumeLoop] = []

    async def start(connection: Connection, requester: Requester, queue: Queue) -> DeadLetters:
        letters = DeadLetters(requester, subjects, system_clock())
        loop = ConsumeLoop(
            connection, queue.stream, queue.consumer, lambda delivery: letters.bury(delivery, queue.stream, REASON)
        )
        loops.append(loop)
        await loop.start()
        return letters

    yield start
    for loop in loops:
        await loop.stop(1_000)


async def test_a_buried_message_is_kept_with_its_reason_and_origin_and_ended(
    connection: Connection, requester: Requester, subjects: Subjects, burying: Burying
) -> None:
    await make_dead(requester, subjects)
    queue = await Queue.make(requester, subjects.namespace)
    before = system_clock()()
    await queue.publish(1, b"\xff what it was")

    letters = await burying(connection, requester, queue)
    await wait_until(queue.is_empty)

    (stored,) = await dead(requester, subjects)
    letter = codec.decode(stored.body, DeadLetter, "a DeadLetter")
    assert before <= letter.at <= system_clock()()
    body = b"\xff what it was"
    name = letter_id(queue.stream, 1, queue.subject, body)
    assert letter == DeadLetter(
        queue.stream, 1, queue.subject, REASON, 1, letter.at, body, name, len(body), consumer=queue.consumer
    )
    assert stored.subject == subjects.dead_letter(queue.stream, name)
    assert {name: stored.fields[name] for name in (h.SCHEMA, h.REASON, h.ORIGIN_SEQUENCE, h.DELIVERIES)} == {
        h.SCHEMA: "dead_letter.v1",
        h.REASON: "invalid_message",
        h.ORIGIN_SEQUENCE: "1",
        h.DELIVERIES: "1",
    }
    assert letters.moved == 1


async def test_a_message_whose_end_got_lost_is_kept_once(
    connecting: Connecting,
    requesting: Requesting,
    proxy: Proxy,
    requester: Requester,
    subjects: Subjects,
    burying: Burying,
) -> None:
    await make_dead(requester, subjects)
    queue = await Queue.make(requester, subjects.namespace, ack_wait_ms=300)
    behind = await connecting(proxy.url)
    letters = await burying(behind, await requesting(behind), queue)
    proxy.lose = b"$JS.ACK"
    await queue.publish(1)
    await wait_until(lambda: proxy.lost == 1)
    proxy.lose = b""

    await wait_until(queue.is_empty)

    assert letters.moved == 1
    assert len(await dead(requester, subjects)) == 1


async def test_a_message_is_not_ended_before_it_is_kept(
    connection: Connection, requester: Requester, subjects: Subjects, burying: Burying, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deadletter, "RETRY_MS", 100)
    queue = await Queue.make(requester, subjects.namespace)
    letters = await burying(connection, requester, queue)
    await queue.publish(1)
    await wait_until(lambda: _delivered_again(queue))
    assert letters.moved == 0

    await make_dead(requester, subjects)

    await wait_until(queue.is_empty)
    (stored,) = await dead(requester, subjects)
    assert codec.decode(stored.body, DeadLetter, "a DeadLetter").deliveries > 1


async def _delivered_again(queue: Queue) -> bool:
    return int((await queue.info())["delivered"]["consumer_seq"]) > 1


async def test_a_subject_that_is_not_utf8_can_be_buried(
    connection: Connection, raw: RawClient, requester: Requester, subjects: Subjects, burying: Burying
) -> None:
    await make_dead(requester, subjects)
    queue = await Queue.make(requester, subjects.namespace)
    await raw.publish(queue.subject.encode()[:-1] + b"\xff", b"body", headers=b"NATS/1.0")

    await burying(connection, requester, queue)
    await wait_until(queue.is_empty)

    (stored,) = await dead(requester, subjects)
    assert codec.decode(stored.body, DeadLetter, "a DeadLetter").subject == f"{queue.subject[:-1]}\ufffd"


@pytest.mark.parametrize("max_payload", [128 * 1024, 1024 * 1024, 4 * 1024 * 1024])
async def test_a_message_of_any_size_can_be_buried_with_what_fits_of_its_body(
    connecting: Connecting,
    requesting: Requesting,
    tmp_path_factory: pytest.TempPathFactory,
    subjects: Subjects,
    burying: Any,
    max_payload: int,
) -> None:
    directory = tmp_path_factory.mktemp("sized")
    with EmbeddedServer(directory, sync_always=False, max_payload=max_payload) as server:
        connection = await connecting(server.url)
        requester = await requesting(connection)
        await make_dead(requester, subjects)
        queue = await Queue.make(requester, subjects.namespace)
        await queue.publish(1, b"x" * max_payload)

        await burying(connection, requester, queue)
        await wait_until(queue.is_empty)

        (stored,) = await dead(requester, subjects)
        kept = codec.decode(stored.body, DeadLetter, "a DeadLetter").body
        assert min(MAX_BODY, max_payload // 2) <= len(kept) <= MAX_BODY
