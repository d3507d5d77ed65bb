"""How agents that know nothing of NATS reach Turngate: an MCP server with the turn tools, and a hook command.

Both act for the same sessions and share small files about them. They use the runner's SDK and nothing else of the
services. What is imported by `hook` for every tool call of an agent (`names`, `places`, `toollog`) needs only Python's
own library, for its start is what the agent waits for.
"""
