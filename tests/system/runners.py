"""Clients of a test, each closed at its end."""

import contextlib

from turngate.runner import TurnClient


class Runners:
    """Makes clients on one namespace of one server."""

    def __init__(self, url: str, namespace: str, stack: contextlib.AsyncExitStack) -> None:
        self._url = url
        self._namespace = namespace
        self._stack = stack

    async def one(self, identity: str, pool: str = "people") -> TurnClient:
        """A client."""
        made = await TurnClient.connect(identity, pool=pool, url=self._url, namespace=self._namespace)
        return await self._stack.enter_async_context(made)

    async def several(self, count: int) -> list[TurnClient]:
        """Runners, each of a pool of its own."""
        return [await self.one(f"runner-{number}", f"pool-{number}") for number in range(1, count + 1)]

    async def person(self) -> TurnClient:
        """Who answers cards."""
        return await self.one("ann")
