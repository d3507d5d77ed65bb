"""Connections that only seem to be up are left and made anew, and closing one never waits for its peer."""

import asyncio
import functools

import pytest

from tests.services.jetstream.conftest import Connecting, came_back
from tests.services.jetstream.heard import Heard
from tests.services.jetstream.raw import Proxy
from tests.waiting import wait_until
from turngate.jetstream.connect import Connection
from turngate.jetstream.embedded import EmbeddedServer


def tasks_of_connections(name: str) -> int:
    return sum(f".{name}()" in repr(task) for task in asyncio.all_tasks())


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
