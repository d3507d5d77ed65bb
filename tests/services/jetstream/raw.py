"""Two tools below the client: one that sends NATS's bytes as they are, and a proxy that mistreats a connection."""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator

HOST = "127.0.0.1"


class RawClient:
    """A connection that sends what no client would."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, port: int) -> "RawClient":
        reader, writer = await asyncio.open_connection(HOST, port)
        self = cls(reader, writer)
        await self.send(b'CONNECT {"verbose":false,"pedantic":false,"headers":true,"no_responders":true}\r\n')
        return self

    async def send(self, command: bytes) -> None:
        """Send bytes and wait until the server has taken them."""
        self._writer.write(command + b"PING\r\n")
        while (line := await self._reader.readline()) != b"PONG\r\n":
            assert line.startswith(b"INFO"), f"the server said {line!r}"

    async def publish(self, subject: bytes, body: bytes, reply: bytes = b"", headers: bytes = b"") -> None:
        """Publish without any check."""
        if headers:
            sizes = b"%d %d" % (len(headers), len(headers) + len(body))
            await self.send(b"HPUB %b %b %b\r\n%b%b\r\n" % (subject, reply, sizes, headers, body))
        else:
            await self.send(b"PUB %b %b %d\r\n%b\r\n" % (subject, reply, len(body), body))

    async def close(self) -> None:
        self._writer.close()
        await self._writer.wait_closed()


class Proxy:
    """A TCP proxy whose connections can be stalled, cut and talked into.

    It keeps what clients `sent`, loses what they publish to subjects that begin with `lose`, and while it is `muted`
    what the server says.
    """

    def __init__(self, target: int) -> None:
        self.port = 0
        self.sent = bytearray()
        self.accepted = 0
        self.swallow_second_pong = 0
        self.lose = b""
        self.lost = 0
        self.muted = False
        self._target = target
        self._links: list[_Link] = []

    @classmethod
    @contextlib.asynccontextmanager
    async def to(cls, target: int) -> AsyncIterator["Proxy"]:
        self = cls(target)
        server = await asyncio.start_server(self._on_client, HOST, 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            self.cut()
            await asyncio.gather(*(pump for link in self._links for pump in link.pumps), return_exceptions=True)
            await server.wait_closed()

    @property
    def url(self) -> str:
        return f"nats://{HOST}:{self.port}"

    def stall(self) -> None:
        """Read nothing more from the clients that are connected, and tell them nothing; new ones are served."""
        for link in self._links:
            link.stop()

    def cut(self) -> None:
        """Reset every connection."""
        for link in self._links:
            link.cut()

    def inject(self, data: bytes) -> None:
        """Say something to the newest client in the server's name."""
        self._links[-1].to_client.write(data)

    async def _on_client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        from_server, to_server = await asyncio.open_connection(HOST, self._target)
        swallow = self.swallow_second_pong > 0
        self.swallow_second_pong -= swallow
        link = _Link(writer, to_server)
        link.pumps = (
            asyncio.create_task(self._pump(link, reader, to_server, keep=True)),
            asyncio.create_task(self._pump(link, from_server, writer, pongs=1 if swallow else None)),
        )
        self._links.append(link)

    async def _pump(
        self,
        link: "_Link",
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        keep: bool = False,
        pongs: int | None = None,
    ) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65_536):
                if keep:
                    self.sent += data
                    data = self._without_what_is_lost(data)
                elif self.muted:
                    continue
                if pongs is not None and b"PONG" in data:
                    pongs -= 1
                    if pongs < 0:
                        continue
                writer.write(data)
                await writer.drain()
            link.cut()

    def _without_what_is_lost(self, data: bytes) -> bytes:
        while self.lose and (found := re.search(rb"PUB %b\S* +(?:\S+ +)?(\d+)\r\n" % re.escape(self.lose), data)):
            self.lost += 1
            data = data[: found.start()] + data[found.end() + int(found[1]) + 2 :]
        return data


class _Link:
    def __init__(self, to_client: asyncio.StreamWriter, to_server: asyncio.StreamWriter) -> None:
        self.to_client = to_client
        self.to_server = to_server
        self.pumps: tuple[asyncio.Task[None], ...] = ()

    def stop(self) -> None:
        for pump in self.pumps:
            pump.cancel()

    def cut(self) -> None:
        self.stop()
        self.to_client.transport.abort()
        self.to_server.transport.abort()
