"""A connection outlives malformed messages, the server's errors, half-open sockets and restarts."""

import asyncio
import functools

import pytest

from tests.services.jetstream.conftest import Connecting, came_back
from tests.services.jetstream.raw import Proxy, RawClient
from tests.waiting import wait_until
from turngate.jetstream.connect import Connection, NoServer, NotConnected, NotPermitted, connect, parse_headers
from turngate.jetstream.embedded import EmbeddedServer
from turngate_contracts.errors import PayloadTooLarge, Unavailable

MALFORMED = {
    "a header block of its first line only": (b"x", b"", b"NATS/1.0"),
    "a header block that is nothing": (b"x", b"", b"\r\n\r\n"),
    "a status that is not UTF-8": (b"x", b"", b"NATS/1.0 \xff\xfe\xfd\r\n\r\n"),
    "a status of five thousand digits": (b"x", b"", b"NATS/1.0 " + b"1" * 5000 + b"\r\n\r\n"),
    "a header that is not UTF-8": (b"x", b"", b"NATS/1.0\r\n\xff\xfe: \xff\r\n\r\n"),
    "a subject that is not UTF-8": (b"\xff\xfe", b"", b""),
    "a reply that is not UTF-8": (b"x", b"\xff\xfe", b""),
}

Message = tuple[bytes, bytes, bytes, bytes]


class Heard:
    """A listener that keeps what it hears."""

    def __init__(self) -> None:
        self.messages: list[Message] = []

    def __call__(self, subject: bytes, reply: bytes, body: bytes, head: bytes) -> None:
        self.messages.append((subject, reply, body, head))

    @property
    def bodies(self) -> list[bytes]:
        return [message[2] for message in self.messages]


def tasks_of_connections(name: str) -> int:
    return sum(f".{name}()" in repr(task) for task in asyncio.all_tasks())


# Malformed messages (hazard 1)


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


# Flushes (hazard 2)


async def test_a_pong_that_comes_after_its_flush_was_cancelled_is_dropped(connection: Connection) -> None:
    cancelled = asyncio.create_task(connection.flush())
    await asyncio.sleep(0)  # it has sent its PING, and waits
    cancelled.cancel()

    await connection.flush()
    await connection.flush()

    assert connection.stats["reconnects"] == 0


async def test_a_flush_confirms_what_was_sent_before_it(connecting: Connecting, proxy: Proxy, namespace: str) -> None:
    connection = await connecting(proxy.url)
    connection.send(f"{namespace}.x", b"first")
    connection.send(f"{namespace}.x", b"second")
    await connection.flush()

    assert proxy.sent.rindex(b"second") < proxy.sent.rindex(b"PING")


# The server's errors and limits (hazard 3)


async def test_a_payload_error_of_the_server_leads_to_a_reconnect(connection: Connection, namespace: str) -> None:
    heard = Heard()
    await connection.listen(f"{namespace}.x", heard)

    # nats-py's own publish checks the body only: headers and body together are over the server's limit.
    await connection.publish(f"{namespace}.y", b"x" * connection.max_payload, headers={"a": "b"})

    await came_back(connection)
    connection.send(f"{namespace}.x", b"still served")
    await wait_until(lambda: heard.bodies == [b"still served"])
    assert not connection.closed_for_good.is_set()


@pytest.mark.parametrize("text", ["Authentication Timeout", "maximum account active connections exceeded", "Odd"])
async def test_an_error_that_may_pass_leads_to_a_reconnect(connecting: Connecting, proxy: Proxy, text: str) -> None:
    connection = await connecting(proxy.url)

    proxy.inject(f"-ERR '{text}'\r\n".encode())

    await came_back(connection)
    assert not connection.closed_for_good.is_set()


@pytest.mark.parametrize("text", ["Authorization Violation", "User Authentication Revoked"])
async def test_a_connection_whose_identity_is_refused_is_closed_for_good(
    connecting: Connecting, proxy: Proxy, text: str
) -> None:
    connection = await connecting(proxy.url)

    proxy.inject(f"-ERR '{text}'\r\n".encode())

    await asyncio.wait_for(connection.closed_for_good.wait(), 10)


async def test_body_and_headers_over_the_maximum_are_refused_before_sending(
    connection: Connection, namespace: str
) -> None:
    block = b"NATS/1.0\r\na: b\r\n\r\n"

    with pytest.raises(PayloadTooLarge) as refusal:
        connection.send(f"{namespace}.x", b"x" * (connection.max_payload - len(block) + 1), headers=block)

    assert (refusal.value.size, refusal.value.limit) == (connection.max_payload + 1, connection.max_payload)


async def test_body_and_headers_of_exactly_the_maximum_arrive(connection: Connection, namespace: str) -> None:
    heard = Heard()
    await connection.listen(f"{namespace}.x", heard)
    block = b"NATS/1.0\r\na: b\r\n\r\n"
    body = b"x" * (connection.max_payload - len(block))

    connection.send(f"{namespace}.x", body, headers=block)

    await wait_until(lambda: heard.messages == [(f"{namespace}.x".encode(), b"", body, block)])
    assert connection.stats["reconnects"] == 0


async def test_bodies_leave_room_for_headers(connection: Connection) -> None:
    assert connection.body_limit == connection.max_payload - 16 * 1024


# Restarts


async def test_a_listener_survives_a_restart_of_the_server(
    own_connection: Connection, own_server: EmbeddedServer
) -> None:
    heard = Heard()
    await own_connection.listen("x", heard)

    own_server.kill()
    own_server.start()
    await came_back(own_connection)
    own_connection.send("x", b"after")

    await wait_until(lambda: heard.bodies == [b"after"])


async def test_a_listener_made_while_disconnected_hears_after_the_return(
    own_connection: Connection, own_server: EmbeddedServer
) -> None:
    heard = Heard()
    own_server.kill()
    await wait_until(lambda: not own_connection.is_connected)

    await own_connection.listen("x", heard)
    own_server.start()
    await came_back(own_connection)
    own_connection.send("x", b"after")

    await wait_until(lambda: heard.bodies == [b"after"])


async def test_sending_while_disconnected_is_refused(own_connection: Connection, own_server: EmbeddedServer) -> None:
    own_server.kill()
    await wait_until(lambda: not own_connection.is_connected)

    with pytest.raises(NotConnected, match="a message to x was not sent"):
        own_connection.send("x", b"")


async def test_callbacks_that_raise_do_not_keep_a_connection_from_coming_back(
    own_connection: Connection, own_server: EmbeddedServer
) -> None:
    called: list[str] = []

    def mistake() -> None:
        raise ValueError("a mistake")

    own_connection.on_disconnect(mistake)
    own_connection.on_disconnect(lambda: called.append("disconnect"))
    own_connection.on_reconnect(mistake)
    own_connection.on_reconnect(lambda: called.append("reconnect"))

    own_server.kill()
    own_server.start()

    await wait_until(lambda: called == ["disconnect", "reconnect"])


async def test_a_forgotten_callback_is_called_no_more(own_connection: Connection, own_server: EmbeddedServer) -> None:
    called: list[str] = []

    def forgotten() -> None:
        called.append("forgotten")

    own_connection.on_disconnect(forgotten)
    own_connection.on_reconnect(forgotten)
    own_connection.forget(forgotten)
    own_connection.on_reconnect(lambda: called.append("kept"))

    own_server.kill()
    own_server.start()

    await wait_until(lambda: called == ["kept"])


async def test_an_ended_subscription_still_gets_what_the_server_had_sent(
    connection: Connection, raw: RawClient, namespace: str
) -> None:
    heard = Heard()
    subscription = await connection.listen(f"{namespace}.x", heard)
    await connection.flush()
    await raw.publish(f"{namespace}.x".encode(), b"sent before the end")

    await connection.unlisten(subscription)
    await raw.publish(f"{namespace}.x".encode(), b"sent after the end")
    await connection.flush()

    assert heard.bodies == [b"sent before the end"]


async def test_a_subscription_can_be_ended_while_disconnected(
    own_connection: Connection, own_server: EmbeddedServer
) -> None:
    heard = Heard()
    subscription = await own_connection.listen("x", heard)
    own_server.kill()
    await wait_until(lambda: not own_connection.is_connected)

    await own_connection.unlisten(subscription)
    own_server.start()
    await came_back(own_connection)
    own_connection.send("x", b"nobody hears")
    await own_connection.flush()

    assert heard.bodies == []


def test_what_is_sent_over_a_socket_that_is_just_gone_is_dropped_quietly(nats_server: EmbeddedServer) -> None:
    uvloop = pytest.importorskip("uvloop")
    failures: list[dict[str, object]] = []

    async def send_behind_an_abort() -> None:
        connection = await connect(nats_server.url)
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: failures.append(context))
        writer = connection._socket()
        assert writer is not None
        writer.transport.abort()
        while connection.is_connected:  # some turns of the loop: the socket goes first, and then its reader
            connection.send("nobody.listens", b"x")
            connection._write_behind()
            await asyncio.sleep(0)
        await connection.close()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(send_behind_an_abort())

    assert failures == []


async def test_a_connection_comes_back_however_often_it_was_refused(
    own_connection: Connection, own_server: EmbeddedServer
) -> None:
    own_connection.options["reconnect_time_wait"] = 0
    own_server.kill()
    # nats-py's own default gives up after 60.
    await wait_until(lambda: own_connection._server_pool[0].reconnects > 70)

    own_server.start()

    await came_back(own_connection)


async def test_processes_do_not_come_back_in_the_same_instant(nats_server: EmbeddedServer) -> None:
    connections = [await connect(nats_server.url) for _ in range(5)]

    waits = {connection.options["reconnect_time_wait"] for connection in connections}

    await asyncio.gather(*(connection.close() for connection in connections))
    assert len(waits) == 5
    assert all(0.5 <= wait <= 2 for wait in waits)


# Connections that only seem to be up


async def test_a_peer_that_reads_no_more_is_left_and_what_waited_for_it_is_dropped(
    connecting: Connecting, connection: Connection, proxy: Proxy, namespace: str
) -> None:
    heard = Heard()
    await connection.listen(f"{namespace}.late", heard)
    await connection.flush()
    stuck = await connecting(proxy.url)
    proxy.stall()
    # More than the sockets' buffers take: closing in the polite way would wait for ever.
    for _ in range(40):
        stuck.send(f"{namespace}.bulk", b"x" * 1024 * 1024)
        await asyncio.sleep(0)
    stuck.send(f"{namespace}.late", b"dropped")

    await stuck.force_reconnect()

    await came_back(stuck)
    stuck.send(f"{namespace}.late", b"sent after the return")
    await wait_until(lambda: heard.bodies == [b"sent after the return"])


async def test_a_peer_that_answers_no_more_is_noticed_by_its_missing_pongs(
    connecting: Connecting, proxy: Proxy
) -> None:
    connection = await connecting(proxy.url)
    assert (connection.options["ping_interval"], connection.options["max_outstanding_pings"]) == (5, 2)
    connection.options["ping_interval"] = 0.05
    proxy.cut()
    await came_back(connection)

    proxy.stall()

    await came_back(connection, 2)


async def test_closing_does_not_wait_for_a_peer_that_reads_no_more(
    connecting: Connecting, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("turngate.jetstream.connect.LAST_WORDS_S", 0.3)
    stuck = await connecting(proxy.url)
    proxy.stall()
    for _ in range(40):
        stuck.send("bulk", b"x" * 1024 * 1024)
        await asyncio.sleep(0)

    await asyncio.wait_for(stuck.close(), 10)

    assert stuck.closed_for_good.is_set()


@pytest.mark.parametrize("turns_of_the_loop", [0, 1, 2, 3, 4, 6])
async def test_closing_in_the_moment_in_which_the_connection_is_lost_closes(
    own_connection: Connection, own_server: EmbeddedServer, turns_of_the_loop: int
) -> None:
    own_server.kill()
    own_connection.send("x", b"never sent")
    for _ in range(turns_of_the_loop):
        await asyncio.sleep(0)

    await asyncio.wait_for(own_connection.close(), 10)

    assert own_connection.closed_for_good.is_set()


async def test_attempts_to_come_back_end_with_their_connections(
    connecting: Connecting, own_server: EmbeddedServer
) -> None:
    connections = [await connecting(own_server.url) for _ in range(60)]
    own_server.kill()

    async def close_after(turns_of_the_loop: int, connection: Connection) -> None:
        connection.options["reconnect_time_wait"] = 0
        for _ in range(turns_of_the_loop):
            await asyncio.sleep(0)
        await connection.close()

    # One of them meets the moment in which an attempt was just refused: its cancellation is swallowed.
    await asyncio.gather(*(close_after(turns, connection) for turns, connection in enumerate(connections)))

    assert tasks_of_connections("_attempt_reconnect") == 0
    assert all(connection.is_closed for connection in connections)


@pytest.mark.parametrize("moment", range(8))
async def test_a_connection_that_was_closed_while_it_came_back_does_not_come_back(
    own_connection: Connection, own_server: EmbeddedServer, moment: int
) -> None:
    own_connection.options["reconnect_time_wait"] = 0
    own_server.kill()
    await wait_until(lambda: not own_connection.is_connected)
    own_server.start()
    for _ in range(moment):
        await asyncio.sleep(0.001)

    await asyncio.wait_for(own_connection.close(), 10)

    assert [tasks_of_connections(name) for name in ("_attempt_reconnect", "_read_loop", "_flusher")] == [0, 0, 0]
    assert own_connection.is_closed


async def test_closing_while_disconnected_closes(own_connection: Connection, own_server: EmbeddedServer) -> None:
    own_server.kill()
    await wait_until(lambda: not own_connection.is_connected)
    await own_connection.listen("x", Heard())

    await asyncio.wait_for(own_connection.close(), 10)

    assert own_connection.closed_for_good.is_set()


async def test_what_was_sent_before_closing_arrives(
    connecting: Connecting, connection: Connection, proxy: Proxy, namespace: str
) -> None:
    heard = Heard()
    await connection.listen(f"{namespace}.x", heard)
    await connection.flush()
    closing = await connecting(proxy.url)
    for number in range(100):
        closing.send(f"{namespace}.x", b"%d" % number)

    await closing.close()

    await wait_until(lambda: len(heard.bodies) == 100)


async def test_a_read_loop_that_fails_leads_to_a_reconnect(connecting: Connecting, proxy: Proxy) -> None:
    connection = await connecting(proxy.url)
    heard = Heard()
    await connection.listen("x", heard)

    proxy.inject(b"-ERR \r\n")  # without a reason: nats-py's parser raises

    await came_back(connection)
    connection.send("x", b"served")
    await wait_until(lambda: heard.bodies == [b"served"])


async def test_an_attempt_that_fails_after_its_greeting_leaves_nothing_behind(
    connecting: Connecting, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = await connecting(proxy.url)
    monkeypatch.setattr(connection, "flush", functools.partial(connection.flush, timeout=1))
    proxy.swallow_second_pong = 1

    proxy.cut()

    await wait_until(lambda: proxy.accepted == 3)
    await came_back(connection)
    await connection.flush()
    assert tasks_of_connections("_read_loop") == 1
    assert tasks_of_connections("_flusher") == 1
    assert tasks_of_connections("_ping_interval") == 1


# No server


async def test_an_absent_server_is_named_without_the_password() -> None:
    with pytest.raises(NoServer) as refusal:
        await connect("nats://user:secret@127.0.0.1:1, token@127.0.0.1:2", timeout_ms=200)

    assert refusal.value.url == "nats://127.0.0.1:1,127.0.0.1:2"
    assert "secret" not in f"{refusal.value} {refusal.value.details}"
    assert "token" not in f"{refusal.value} {refusal.value.details}"
    assert "nats://127.0.0.1:1" in str(refusal.value)
    assert "TURNGATE_NATS_URL" in str(refusal.value)


@pytest.mark.parametrize("url", ["", " , ", "nats://", "nats://127.0.0.1:port"])
async def test_a_url_that_names_no_server_is_refused_at_once(url: str) -> None:
    with pytest.raises(NoServer):
        await asyncio.wait_for(connect(url, timeout_ms=60_000), 10)


async def test_a_first_connection_that_is_not_answered_ends_in_time() -> None:
    async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    silent = await asyncio.start_server(say_nothing, "127.0.0.1", 0)
    async with silent:
        with pytest.raises(Unavailable):
            await connect(f"nats://127.0.0.1:{silent.sockets[0].getsockname()[1]}", timeout_ms=300)


# Permissions (hazard 12)


@pytest.fixture
def restricted_server(tmp_path_factory: pytest.TempPathFactory) -> "EmbeddedServer":
    return EmbeddedServer(
        tmp_path_factory.mktemp("restricted"),
        sync_always=False,
        extra_config="""
        authorization {
          users: [
            {user: "guest", password: "guest", permissions: {
              publish: ["allowed.>", "_INBOX.>"], subscribe: ["allowed.>", "_INBOX.>"]}}
          ]
        }""",
    )


async def test_a_refused_publish_and_a_refused_subscription_are_seen(
    connecting: Connecting, restricted_server: EmbeddedServer
) -> None:
    with restricted_server as server:
        connection = await connecting(f"nats://guest:guest@127.0.0.1:{server.port}")
        refused: list[str] = []
        connection.on_refused_publish(refused.append)

        connection.send("Forbidden.x", b"")
        for queue in ("", "workers"):
            with pytest.raises(NotPermitted, match=r"may not subscribe to Forbidden\.y"):
                await connection.listen("Forbidden.y", Heard(), queue)

        assert refused == ["forbidden.x"]
        assert connection.refusals.count == 3
        assert "forbidden.y" in connection.refusals.permissions[1]
        assert connection.is_connected
        await connection.close()


async def test_a_wrong_password_is_told_with_the_reason(
    connecting: Connecting, restricted_server: EmbeddedServer
) -> None:
    with restricted_server as server, pytest.raises(NoServer, match="Authorization Violation"):
        await connect(f"nats://guest:wrong@127.0.0.1:{server.port}", timeout_ms=500)
