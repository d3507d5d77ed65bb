"""A client that is closed while it reconnects, in whichever moment, is closed: it comes back to no server."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from tests.waiting import wait_until
from turngate.jetstream.connect import Connection, connect

STEPS = 25
"""Turns of the event loop after a server's greeting; a reconnect needs fewer."""
GREETING = b'INFO {"server_id":"stub","version":"2.15.1","max_payload":1048576,"headers":true,"proto":1}\r\n'


async def test_a_client_closed_in_any_moment_of_a_reconnect_stays_closed():
    came_back = []
    for steps in range(STEPS):
        async with Stub.serving() as server:
            client = await connect(server.url)
            client.options["reconnect_time_wait"] = 0.01
            server.close_client_after(client, steps)

            server.cut()

            await asyncio.wait_for(server.client_closed.wait(), 20)
            await wait_until(lambda: not reconnecting(), why=f"a client closed after {steps} steps stops trying")
            if not client.is_closed or server.links:
                came_back.append(steps)
    assert not came_back, f"clients closed so many steps after the greeting came back: {came_back}"


class Stub:
    """As much of a server as a client needs to be connected; it can close the client in the middle of a greeting."""

    def __init__(self) -> None:
        self.links: set[asyncio.StreamWriter] = set()
        self.client_closed = asyncio.Event()
        self.url = ""
        self._client: Connection | None = None
        self._steps = 0
        self._tasks: set[asyncio.Task[None]] = set()

    @classmethod
    @contextlib.asynccontextmanager
    async def serving(cls) -> AsyncIterator["Stub"]:
        """Listen for as long as the context lasts."""
        self = cls()
        server = await asyncio.start_server(self._on_client, "127.0.0.1", 0)
        self.url = f"nats://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        try:
            yield self
        finally:
            server.close()
            self.cut()
            await server.wait_closed()
            await asyncio.gather(*self._tasks)

    def close_client_after(self, client: Connection, steps: int) -> None:
        """Close the client so many turns of the event loop after it was greeted the next time."""
        self._client, self._steps = client, steps

    def cut(self) -> None:
        """Cut every connection."""
        for writer in self.links:
            writer.transport.abort()

    async def _on_client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.links.add(writer)
        try:
            writer.write(GREETING)
            if self._client is not None:
                self._tasks.add(asyncio.create_task(self._close(self._client)))
                self._client = None
            while line := await reader.readline():
                if line == b"PING\r\n":
                    writer.write(b"PONG\r\n")
        except ConnectionError:
            pass
        finally:
            self.links.discard(writer)
            writer.close()

    async def _close(self, client: Connection) -> None:
        for _ in range(self._steps):
            await asyncio.sleep(0)
        await client.close()
        self.client_closed.set()


def reconnecting() -> list["asyncio.Task[object]"]:
    """The tasks of reconnects that are under way."""
    return [task for task in asyncio.all_tasks() if "_attempt_reconnect" in repr(task.get_coro())]
