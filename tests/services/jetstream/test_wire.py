"""The parser of the wire finds the same messages wherever the pieces break, and hands the rest to nats-py."""

import pytest
from nats.errors import ProtocolError

from tests.services.jetstream.raw import RawClient
from tests.waiting import wait_until
from turngate.jetstream.connect import Connection

WIRE = (
    b"MSG a.b 7 5\r\nhello\r\n"
    b"PONG\r\n"
    b"MSG a.b 7 _INBOX.x 0\r\n\r\n"
    b"HMSG a.c 7 _INBOX.y 12 14\r\nNATS/1.0\r\n\r\nhi\r\n"
    b"HMSG a.c 7 12 12\r\nNATS/1.0\r\n\r\n\r\n"
    b"MSG a.d 7 16\r\nMSG a.b 7 1\r\nx\r\n\r\n"
    b"+OK\r\n"
    b"MSG a.e 7 1\r\nz\r\n"
)
MESSAGES = [
    (b"a.b", b"", b"hello", b""),
    (b"a.b", b"_INBOX.x", b"", b""),
    (b"a.c", b"_INBOX.y", b"hi", b"NATS/1.0\r\n\r\n"),
    (b"a.c", b"", b"", b"NATS/1.0\r\n\r\n"),
    (b"a.d", b"", b"MSG a.b 7 1\r\nx\r\n", b""),
    (b"a.e", b"", b"z", b""),
]

Message = tuple[bytes, bytes, bytes, bytes]


class Heard:
    """A parser that was never connected, with one listener."""

    def __init__(self) -> None:
        self.connection = Connection()
        self.connection.listeners[7] = self._on_message
        self.messages: list[Message] = []

    def _on_message(self, subject: bytes, reply: bytes, body: bytes, head: bytes) -> None:
        self.messages.append((subject, reply, body, head))
        if body == b"bad":
            raise ValueError("a listener's mistake")

    async def read(self, *pieces: bytes) -> list[Message]:
        for piece in pieces:
            await self.connection._ps.parse(piece)
        return self.messages


async def test_messages_are_the_same_wherever_two_pieces_break() -> None:
    for at in range(len(WIRE) + 1):
        assert await Heard().read(WIRE[:at], WIRE[at:]) == MESSAGES, f"broken at {at}"


async def test_messages_are_the_same_byte_by_byte() -> None:
    assert await Heard().read(*(bytes([byte]) for byte in WIRE)) == MESSAGES


async def test_a_listener_that_raises_costs_its_own_message_only() -> None:
    heard = Heard()

    await heard.read(b"MSG a 7 3\r\nbad\r\nMSG a 7 4\r\ngood\r\n")

    assert [body for _, _, body, _ in heard.messages] == [b"bad", b"good"]
    assert heard.connection.dropped_malformed == 1


async def test_half_a_message_of_a_lost_connection_does_not_spoil_the_next_one() -> None:
    heard = Heard()
    await heard.read(b"MSG a 7 500\r\nthe first half")

    heard.connection._ps.reset()

    assert await heard.read(b"MSG a 7 3\r\nnew\r\n") == [(b"a", b"", b"new", b"")]


async def test_what_is_no_message_of_the_protocol_is_refused() -> None:
    with pytest.raises(Exception, match=r"protocol|invalid literal"):
        await Heard().read(b"MSG a 7 many\r\n")


@pytest.mark.parametrize("sizes", [b"-12", b"712 12", b"-3 12", b"12 -12"])
async def test_sizes_that_no_message_can_have_are_refused(sizes: bytes) -> None:
    kind = b"HMSG" if b" " in sizes else b"MSG"

    with pytest.raises(ProtocolError):
        await Heard().read(WIRE, b"%b a.b 7 %b\r\nNATS/1.0\r\n\r\n\r\n" % (kind, sizes), WIRE)


async def test_a_message_of_megabytes_arrives_whole(connection: Connection, raw: RawClient, namespace: str) -> None:
    heard = Heard()
    await connection.listen(f"{namespace}.large", heard._on_message)
    body = bytes(range(256)) * 4096 * 3

    await raw.publish(f"{namespace}.large".encode(), body)

    await wait_until(lambda: bool(heard.messages), why="the message arrives")
    assert heard.messages[0][2] == body


@pytest.mark.parametrize("odd", [b"\x0b", b"\x0c", b"a\x0bb", b"\xff"])
async def test_a_subject_with_odd_bytes_ends_no_subscription_of_either_kind(
    connection: Connection, raw: RawClient, namespace: str, odd: bytes
) -> None:
    heard = Heard()
    await connection.listen(f"{namespace}.>", heard._on_message)
    theirs = await connection.subscribe(f"{namespace}.>")
    await connection.flush()

    await raw.publish(f"{namespace}.".encode() + odd, b"odd")
    await raw.publish(f"{namespace}.x".encode(), b"good")

    await wait_until(lambda: [m[2] for m in heard.messages] == [b"odd", b"good"], why="the listener hears both")
    messages = [await theirs.next_msg(5)]
    while messages[-1].data != b"good":
        messages.append(await theirs.next_msg(5))
    assert connection.stats["reconnects"] == 0
