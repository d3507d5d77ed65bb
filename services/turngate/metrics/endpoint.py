"""A small HTTP server for `/metrics`, `/healthz` and `/readyz`: GET and HEAD, one answer a connection, all bounded."""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from turngate_contracts.errors import Unavailable

log = logging.getLogger(__name__)

REQUEST_S: Final = 5.0
"""How long a client may take to ask, and to take the answer."""
REQUEST_BYTES: Final = 8 * 1024
"""Longest head of a request."""
AT_ONCE: Final = 32
"""Most connections; further ones are closed at once."""

_REASONS: Final = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    500: "Internal Server Error",
    501: "Not Implemented",
    503: "Service Unavailable",
}


class Page(Struct, frozen=True):
    """An answer."""

    status: int
    body: bytes
    content_type: str = "text/plain; charset=utf-8"


Respond = Callable[[], Page]


class PortTaken(Unavailable):
    """The address for metrics can't be listened on."""

    def __init__(self, host: str, port: int, reason: str) -> None:
        super().__init__(
            f"metrics can't be served on {host}:{port}: {reason}; choose another metrics_port or metrics_host, "
            "or 0 to serve none",
            host=host,
            port=port,
        )


class Endpoint:
    """Serves pages by their paths; made by `start`, ended by `stop`."""

    def __init__(self, pages: dict[str, Respond]) -> None:
        self._pages = pages
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()

    @property
    def port(self) -> int:
        """The port that it listens on."""
        assert self._server is not None, "the endpoint was not started"  # noqa: S101  for the type checker
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def start(self, host: str, port: int) -> None:
        """Listen.

        Raises:
            PortTaken: the address is in use or not ours.
        """
        try:
            self._server = await asyncio.start_server(self._on_client, host, port, limit=REQUEST_BYTES)
        except OSError as error:
            raise PortTaken(host, port, error.strerror or str(error)) from None

    async def stop(self) -> None:
        """Listen no more, and end what is open."""
        if self._server is not None:
            self._server.close()
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _on_client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  start_server makes one
        self._open.add(task)
        try:
            if len(self._open) <= AT_ONCE:
                async with asyncio.timeout(REQUEST_S):
                    writer.write(await self._answer(reader))
                    await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # whoever asks too slowly or goes away gets nothing, and so does whoever asks at the end
        finally:
            self._open.discard(task)
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def _answer(self, reader: asyncio.StreamReader) -> bytes:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError:
            return _encoded(Page(400, b"the request is too long\n"), with_body=True)
        method, _, rest = head.partition(b"\r\n")[0].decode("latin-1").partition(" ")
        path = rest.partition(" ")[0].partition("?")[0]
        return _encoded(self._page(method, path), with_body=method != "HEAD")

    def _page(self, method: str, path: str) -> Page:
        if method not in ("GET", "HEAD"):
            return Page(405, b"only GET and HEAD\n")
        respond = self._pages.get(path)
        if respond is None:
            return Page(404, f"there are {', '.join(self._pages)}\n".encode())
        try:
            return respond()
        except Exception:  # a client gets no traceback, and the next one an answer
            log.exception("answering %s failed", path)
            return Page(500, b"this failed; the log says why\n")


def _encoded(page: Page, *, with_body: bool) -> bytes:
    allow = "Allow: GET, HEAD\r\n" if page.status == 405 else ""
    head = (
        f"HTTP/1.1 {page.status} {_REASONS[page.status]}\r\nContent-Type: {page.content_type}\r\n"
        f"Content-Length: {len(page.body)}\r\nCache-Control: no-store\r\n{allow}Connection: close\r\n\r\n"
    )
    return head.encode() + (page.body if with_body else b"")
