"""uvicorn inside of a service's event loop: its socket is bound before it starts; signals stay the process's own."""

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from typing import Final

import uvicorn
from starlette.types import ASGIApp

MOST_CONNECTIONS: Final = 4096
STARTED_S: Final = 10.0
GRACE_S: Final = 3
HEADER_BYTES: Final = 32 * 1024


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals to the process, which drains all of its services."""
        yield


class HttpServer:
    """Serves an app on a socket."""

    def __init__(self, app: ASGIApp, listening: socket.socket) -> None:
        self._socket = listening
        self._server = _Server(
            uvicorn.Config(
                app,
                http="h11",
                ws="none",
                lifespan="off",
                log_config=None,
                log_level="warning",
                access_log=False,
                server_header=False,
                proxy_headers=True,
                forwarded_allow_ips="127.0.0.1,::1",
                limit_concurrency=MOST_CONNECTIONS,
                h11_max_incomplete_event_size=HEADER_BYTES,
                timeout_graceful_shutdown=GRACE_S,
            )
        )
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Serve from now on."""
        self._task = asyncio.create_task(self._server.serve(sockets=[self._socket]), name="turngate-console-http")
        async with asyncio.timeout(STARTED_S):
            # uvicorn tells of its start by this attribute alone.
            while not self._server.started and not self._task.done():  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        if self._task.done():
            await self._task

    async def stop(self) -> None:
        """Take no more, finish what is under way for a short time, and end."""
        self._server.should_exit = True
        if self._task is not None:
            await self._task
        self._socket.close()
