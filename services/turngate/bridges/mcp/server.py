"""The MCP server: which tools are listed, and what becomes of calls; wiring only.

Nothing is connected to until the tools were listed, and what can't be told without the services is told to the client
as soon as it can: that the session has an objective, and with it two more tools.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from typing import Any, Final

from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    InputRequiredResult,
    ListToolsResult,
    PaginatedRequestParams,
)

from turngate import __version__
from turngate.bridges.mcp.descriptions import INSTRUCTIONS, OBJECTIVE_TOOLS, every_tool
from turngate.bridges.mcp.identity import Callers
from turngate.bridges.mcp.lazy import LazyClient
from turngate.bridges.mcp.lines import ReadLines
from turngate.bridges.mcp.options import Options, ShowObjective
from turngate.bridges.mcp.tools import Tools
from turngate.bridges.places import Places
from turngate_contracts.errors import TurngateError

log = logging.getLogger(__name__)

NAME: Final = "turngate"
_AFTER_S: Final = 0.02
"""How long after a listing NATS is turned to: first the list must be on its way."""
_HURRY_S: Final = 0.5
"""How long a listing waits for whether there is an objective, once there is a connection."""


class TurngateServer:
    """One server process, for any number of connections."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._client = LazyClient(options)
        places = Places(options.agents)
        self._callers = Callers(options, places)
        self._tools = Tools(options, self._client, self._callers, places)
        self._listed = every_tool(options.max_blocks)
        self._background: set[asyncio.Task[None]] = set()
        self.mcp: Server[None] = Server(
            NAME,
            version=__version__,
            instructions=INSTRUCTIONS,
            lifespan=self._lifespan,
            on_list_tools=self._list,
            on_call_tool=self._call,
        )

    async def serve_stdio(self) -> None:
        """Serve the client at the other end of standard input and output until it closes them.

        Raises:
            BrokenPipeError: the client died, or reads no more.
        """
        from mcp.server.stdio import stdio_server

        options = self.mcp.create_initialization_options(NotificationOptions(tools_changed=True))
        try:
            async with stdio_server() as (read, write):
                await self.mcp.run(ReadLines(read, write), write, options)
        except BaseExceptionGroup as group:
            if group.subgroup(BrokenPipeError) is None:
                raise
            raise BrokenPipeError from group

    @contextlib.asynccontextmanager
    async def _lifespan(self, _server: Server[None]) -> AsyncIterator[None]:
        try:
            yield
        finally:
            for task in self._background:
                task.cancel()
            await asyncio.gather(*self._background, return_exceptions=True)
            await self._client.close()

    async def _list(
        self, context: ServerRequestContext[Any, Any], _params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        with contextlib.suppress(TurngateError, OSError):
            self._callers.of(context)  # hooks may come from now on, and must know the session
        shown = self._options.objective is ShowObjective.ON
        if self._options.objective is ShowObjective.AUTO and self._client.connected:
            shown = await self._has_objective(context)
        hidden = () if shown else OBJECTIVE_TOOLS
        if not self._client.connected:
            self._soon(context)
        return ListToolsResult(tools=[tool for name, tool in self._listed.items() if name not in hidden])

    async def _call(
        self, context: ServerRequestContext[Any, Any], params: CallToolRequestParams
    ) -> CallToolResult | InputRequiredResult:
        if params.name not in self._listed:
            raise MCPError(
                INVALID_PARAMS, f"there is no tool {ascii(params.name)[:80]}; there are {', '.join(self._listed)}"
            )
        try:
            return await self._tools.call(context, params)
        except MCPError:
            raise
        except Exception as error:
            log.exception("%s failed", params.name)
            raise MCPError(
                -32603, f"{params.name} failed by an error of Turngate's own, please report it: {type(error).__name__}"
            ) from error

    def _soon(self, context: ServerRequestContext[Any, Any]) -> None:
        """Connect now that the listing is on its way, and tell of the tools that were not listed."""
        task = asyncio.create_task(self._look(context))
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def _look(self, context: ServerRequestContext[Any, Any]) -> None:
        await asyncio.sleep(_AFTER_S)
        self._client.start()
        if self._options.objective is ShowObjective.AUTO and context.request is None:
            try:
                if await self._tools.has_objective(context):
                    await context.session.send_tool_list_changed()
            except (TurngateError, OSError, MCPError) as error:
                log.info("whether the session has an objective is not known: %s", error)

    async def _has_objective(self, context: ServerRequestContext[Any, Any]) -> bool:
        try:
            async with asyncio.timeout(_HURRY_S):
                return await self._tools.has_objective(context)
        except (TimeoutError, TurngateError, OSError):
            return False
