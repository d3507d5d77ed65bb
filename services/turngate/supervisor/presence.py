"""Who is alive: kept by the server in memory for a short time after each beat, and read by whoever wants to know.

The server forgets a runner that is silent, by its own clock; a clock of ours decides nothing. Silence says something
only to a process that would have heard: one that has just started, or was cut off itself, waits for as long as a runner
may be silent before it takes an absence for a loss.
"""

import asyncio
from typing import Final

from turngate.jetstream.connect import Connection, parse_headers
from turngate.jetstream.direct import PAGE, read_page
from turngate.jetstream.provision import ensure_stream
from turngate.jetstream.request import NoResponders, Requester
from turngate_contracts import codec
from turngate_contracts.beats import RunnerPresence
from turngate_contracts.errors import InvalidMessage
from turngate_contracts.headers import SCHEMA, block
from turngate_contracts.messages import SCHEMAS
from turngate_contracts.topology import Topology

_HEAD: Final = block({SCHEMA: SCHEMAS[RunnerPresence]})


class Presences:
    """The runners of one namespace that are alive."""

    def __init__(self, connection: Connection, requester: Requester, topology: Topology) -> None:
        self._connection = connection
        self._requester = requester
        self._topology = topology
        self._subjects = topology.subjects
        self._stream = topology.subjects.stream("presence")
        self._loop = asyncio.get_running_loop()
        self._since = self._loop.time()
        connection.on_reconnect(self._on_reconnect)

    def stop(self) -> None:
        """Listen to the connection no more."""
        self._connection.forget(self._on_reconnect)

    @property
    def deaf_ms(self) -> int:
        """For how many ms silence does not mean anything yet; 0 when it does."""
        heard_ms = int((self._loop.time() - self._since) * 1000)
        return max(0, self._topology.presence_ms - heard_ms)

    async def keep(self, presence: RunnerPresence) -> None:
        """Note that a runner was heard of.

        Raises:
            Unavailable: it may be noted or not; its next beat does it.
        """
        subject = self._subjects.presence(presence.runner)
        body = codec.encode(presence)
        try:
            await self._requester.publish(subject, body, _HEAD)
        except NoResponders:
            # A server on its own forgets streams in memory when it restarts.
            await self._make()
            await self._requester.publish(subject, body, _HEAD)

    async def find(self, runner: str) -> RunnerPresence | None:
        """Return what was last heard of a runner, None when that was too long ago.

        Raises:
            Unavailable: nobody knows at the moment.
        """
        try:
            reply = await self._requester.request(
                f"$JS.API.DIRECT.GET.{self._stream}.{self._subjects.presence(runner)}"
            )
        except NoResponders:
            await self._make()
            self._on_reconnect()
            return None
        if parse_headers(reply.head)[0] == 404:
            return None
        return codec.decode(reply.body, RunnerPresence, "a RunnerPresence")

    async def alive(self) -> list[RunnerPresence]:
        """Return every runner that is alive, by name.

        Raises:
            Unavailable: nobody knows at the moment.
        """
        found: dict[str, RunnerPresence] = {}
        cursor, more = 0, True
        while more:
            try:
                page, more = await read_page(self._requester, self._stream, cursor, PAGE, self._subjects.presences())
            except NoResponders:
                return []
            for stored in page:
                cursor = stored.sequence
                try:
                    presence = codec.decode(stored.body, RunnerPresence, "a RunnerPresence")
                except InvalidMessage:
                    continue
                found[presence.runner] = presence
        return [found[name] for name in sorted(found)]

    async def _make(self) -> None:
        for wanted in self._topology.streams():
            if wanted["name"] == self._stream:
                await ensure_stream(self._requester, wanted)

    def _on_reconnect(self) -> None:
        self._since = self._loop.time()


def takers(alive: list[RunnerPresence], pool: str, role: str) -> int:
    """Return how many of these runners take a role in a pool."""
    return sum(pool in runner.pools and role in runner.roles and not runner.draining for runner in alive)
