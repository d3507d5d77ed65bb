"""A server of the MCP SDK with one tool that does nothing: what `turngate mcp` is measured beside."""

from typing import Any

import anyio
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp_types import CallToolResult, ListToolsResult, TextContent, Tool


async def main() -> None:
    """Serve until standard input ends."""

    async def on_list_tools(_context: Any, _params: Any) -> ListToolsResult:
        return ListToolsResult(tools=[Tool(name="Report", input_schema={"type": "object"})])

    async def on_call_tool(_context: Any, _params: Any) -> CallToolResult:
        return CallToolResult(content=[TextContent(type="text", text="done")])

    server: Server[Any] = Server("bare", on_list_tools=on_list_tools, on_call_tool=on_call_tool)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    anyio.run(main)
