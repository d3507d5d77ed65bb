"""A TCP proxy in front of a server that can drop connections, leave them half open, and delay what goes through."""

import asyncio
import contextlib
from collections.abc import AsyncIterator


class Proxy:
    """Forwards to one port; make it with `proxying`."""

    def __init__(self, port: int) -> None:
        self.delay_s = 0.0
        self.connections = 0
        self.url = ""
        self._port = port
        self._half_open = False
        self._refusing = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._closed = asyncio.Event()

    def drop(self) -> None:
        """Cut every connection at once, in the middle of whatever is on its way."""
        for writer in self._writers:
            writer.transport.abort()

    def half_open(self) -> None:
        """Swallow all that comes on the present connections, which stay up: the other side is gone without a word."""
        self._half_open = True

    def heal(self) -> None:
        """Forward what comes from now on; what was swallowed is lost, so connections that lost some are cut."""
        if self._half_open:
            self._half_open = False
            self.drop()

    def refuse(self, refusing: bool) -> None:
        """Accept no connection, or accept them again."""
        self._refusing = refusing

    async def _on_client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._refusing:
            writer.transport.abort()
            return
        self.connections += 1
        try:
            to_server, server = await asyncio.open_connection("127.0.0.1", self._port)
        except OSError:
            writer.transport.abort()
            return
        pair = {writer, server}
        self._writers |= pair
        ways = [
            asyncio.create_task(self._forward(reader, server)),
            asyncio.create_task(self._forward(to_server, writer)),
        ]
        self._tasks.update(ways)
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        for each in pair:
            each.transport.abort()
        await asyncio.gather(*ways, return_exceptions=True)
        self._writers -= pair
        self._tasks.difference_update(ways)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                if self._half_open:
                    continue
                if self.delay_s:
                    await asyncio.sleep(self.delay_s)
                writer.write(data)
                await writer.drain()

    async def _end(self) -> None:
        self.drop()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@contextlib.asynccontextmanager
async def proxying(port: int) -> AsyncIterator[Proxy]:
    """Run a proxy to a port of this machine for the time of an `async with` block."""
    proxy = Proxy(port)
    server = await asyncio.start_server(proxy._on_client, "127.0.0.1", 0)
    proxy.url = f"nats://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield proxy
    finally:
        server.close()
        await proxy._end()
        await server.wait_closed()
