"""The runner's client, connected when it is first needed, and again when that failed.

A client of MCP waits for the list of tools, which needs no NATS. So nats-py is imported and connected to after the
first listing, in a thread and a task of its own; what comes before waits for that, and what comes while no server
answers gets a typed error and may try again.
"""

import asyncio
import contextlib
import importlib
from typing import TYPE_CHECKING

from turngate.bridges.mcp.options import Options

if TYPE_CHECKING:
    from turngate.runner import TurnClient


class LazyClient:
    """The one client of a server process."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._client: TurnClient | None = None
        self._connecting: asyncio.Task[TurnClient] | None = None

    @property
    def connected(self) -> bool:
        """Whether there is a client; its connection may be away for the moment."""
        return self._client is not None and not self._client.connection.is_closed

    def start(self) -> None:
        """Connect in the background, if nobody did yet."""
        if self._connecting is None or (self._connecting.done() and not self.connected):
            self._connecting = asyncio.create_task(self._connect(), name="turngate-connect")
            # Whoever asks for the client gets the error; nobody may.
            self._connecting.add_done_callback(lambda task: task.cancelled() or task.exception())

    async def get(self) -> "TurnClient":
        """Return the client, connected.

        Raises:
            Unavailable: no server answered in time.
        """
        if self._client is not None and not self._client.connection.is_closed:
            return self._client
        self.start()
        assert self._connecting is not None  # noqa: S101  `start` made it
        # Its caller may be cancelled; others wait for the same connection.
        return await asyncio.shield(self._connecting)

    async def close(self) -> None:
        """End the connection; what waits for it fails."""
        if self._connecting is not None:
            self._connecting.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await self._connecting
        if self._client is not None:
            await self._client.close()

    async def _connect(self) -> "TurnClient":
        await asyncio.to_thread(importlib.import_module, "turngate.bridges.turns")
        from turngate.runner import TurnClient

        options = self._options
        if self._client is not None:
            await self._client.close()
            self._client = None
        self._client = await TurnClient.connect(
            options.identity,
            pool=options.pool,
            url=options.url,
            namespace=options.namespace,
            timeout_ms=options.connect_timeout_ms,
            login=options.login,
        )
        return self._client
