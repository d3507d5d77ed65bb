"""Listeners, callbacks and subscriptions outlive the server; what is sent while it is away is refused."""

import asyncio

import pytest

from tests.services.jetstream.conftest import came_back
from tests.services.jetstream.heard import Heard
from tests.services.jetstream.raw import RawClient
from tests.waiting import wait_until
from turngate.jetstream.connect import Connection, NotConnected, connect
from turngate.jetstream.embedded import EmbeddedServer


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
