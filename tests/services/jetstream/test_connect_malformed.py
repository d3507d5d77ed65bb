"""A message that can't be decoded, or that its listener can't bear, costs that message only (hazard 1)."""

import pytest

from tests.services.jetstream.heard import Heard
from tests.services.jetstream.raw import RawClient
from tests.waiting import wait_until
from turngate.jetstream.connect import Connection, parse_headers

MALFORMED = {
    "a header block of its first line only": (b"x", b"", b"NATS/1.0"),
    "a header block that is nothing": (b"x", b"", b"\r\n\r\n"),
    "a status that is not UTF-8": (b"x", b"", b"NATS/1.0 \xff\xfe\xfd\r\n\r\n"),
    "a status of five thousand digits": (b"x", b"", b"NATS/1.0 " + b"1" * 5000 + b"\r\n\r\n"),
    "a header that is not UTF-8": (b"x", b"", b"NATS/1.0\r\n\xff\xfe: \xff\r\n\r\n"),
    "a subject that is not UTF-8": (b"\xff\xfe", b"", b""),
    "a reply that is not UTF-8": (b"x", b"\xff\xfe", b""),
}


@pytest.mark.parametrize("malformed", MALFORMED.values(), ids=MALFORMED.keys())
async def test_a_listener_is_served_after_a_malformed_message(
    connection: Connection, raw: RawClient, namespace: str, malformed: tuple[bytes, bytes, bytes]
) -> None:
    subject, reply, head = malformed
    heard = Heard()
    await connection.listen(f"{namespace}.>", heard)
    await connection.flush()

    await raw.publish(f"{namespace}.".encode() + subject, b"bad", reply, head)
    await raw.publish(f"{namespace}.x".encode(), b"good")

    await wait_until(lambda: b"good" in heard.bodies)
    assert connection.stats["reconnects"] == 0


@pytest.mark.parametrize("malformed", MALFORMED.values(), ids=MALFORMED.keys())
async def test_a_plain_subscription_is_served_after_a_malformed_message(
    connection: Connection, raw: RawClient, namespace: str, malformed: tuple[bytes, bytes, bytes]
) -> None:
    subject, reply, head = malformed
    subscription = await connection.subscribe(f"{namespace}.>")
    await connection.flush()

    await raw.publish(f"{namespace}.".encode() + subject, b"bad", reply, head)
    await raw.publish(f"{namespace}.x".encode(), b"good")

    bodies = set()
    while b"good" not in bodies:
        bodies.add((await subscription.next_msg(timeout=10)).data)
    assert connection.stats["reconnects"] == 0


async def test_a_dropped_message_is_counted(connection: Connection, raw: RawClient, namespace: str) -> None:
    await connection.subscribe(f"{namespace}.x")
    await connection.flush()

    await raw.publish(f"{namespace}.x".encode(), b"", headers=b"NATS/1.0")

    await wait_until(lambda: connection.dropped_malformed == 1)


async def test_a_listener_that_raises_costs_one_message(connection: Connection, raw: RawClient, namespace: str) -> None:
    heard = Heard()

    def listener(subject: bytes, reply: bytes, body: bytes, head: bytes) -> None:
        if body == b"bad":
            raise ValueError("a mistake")
        heard(subject, reply, body, head)

    await connection.listen(f"{namespace}.x", listener)
    await connection.flush()

    await raw.publish(f"{namespace}.x".encode(), b"bad")
    await raw.publish(f"{namespace}.x".encode(), b"good")

    await wait_until(lambda: heard.bodies == [b"good"])


@pytest.mark.parametrize(
    ("block", "status", "fields"),
    [
        (b"", 0, {}),
        (b"NATS/1.0", 0, {}),
        (b"NATS/1.0\r\n\r\n", 0, {}),
        (b"NATS/1.0\r\nA: b\r\n\r\n", 0, {"A": "b"}),
        (b"NATS/1.0\r\nA:b:c\r\nnonsense\r\n\r\n", 0, {"A": "b:c"}),
        (b"NATS/1.0 404\r\n\r\n", 404, {}),
        (b"NATS/1.0 404 No Messages\r\n\r\n", 404, {}),
        (b"NATS/1.0 408 Request Timeout\r\nNats-Pending-Messages: 7\r\n\r\n", 408, {"Nats-Pending-Messages": "7"}),
        (b"NATS/1.0 " + b"9" * 5000 + b"\r\n\r\n", 0, {}),
        (b"NATS/1.0 \xff\r\n\xff: \xff\r\n\r\n", 0, {"�": "�"}),
    ],
)
def test_a_header_block_is_read_as_far_as_it_makes_sense(block: bytes, status: int, fields: dict[str, str]) -> None:
    assert parse_headers(block) == (status, fields)
