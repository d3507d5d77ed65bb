"""The MCP server: the turn tools for any agent that speaks the Model Context Protocol, over stdio or HTTP."""
