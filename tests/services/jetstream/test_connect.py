"""A connection is made or the reason told; it confirms what it sent, and outlives the server's errors."""

import asyncio

import pytest

from tests.services.jetstream.conftest import Connecting, came_back
from tests.services.jetstream.heard import Heard
from tests.services.jetstream.raw import Proxy
from tests.waiting import wait_until
from turngate.jetstream.connect import Connection, NoServer, NotPermitted, connect
from turngate.jetstream.embedded import EmbeddedServer
from turngate_contracts.errors import PayloadTooLarge, Unavailable

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


# Pieces


async def test_what_one_pass_of_the_loop_sends_leaves_in_one_piece(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    pieces: list[bytes] = []
    monkeypatch.setattr(connection._transport, "write", pieces.append)

    connection.send("nobody.listens", b"first")
    connection.send("nobody.listens", b"second")
    await asyncio.sleep(0)

    assert pieces == [b"PUB nobody.listens  5\r\nfirst\r\nPUB nobody.listens  6\r\nsecond\r\n"]


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
