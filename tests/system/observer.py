"""Reads what the server holds of one namespace: histories, events, queues and sequences. It changes no state."""

from collections.abc import AsyncIterator, Iterable
from typing import Any, Final

from tests.system.patience import each, patiently
from tests.waiting import wait_until
from turngate.jetstream.connect import Connection, connect
from turngate.jetstream.direct import Stored, read_page
from turngate.jetstream.events import EventReader, StreamEvent
from turngate.jetstream.request import Requester
from turngate.jetstream.store import Entry, Store
from turngate_contracts.messages import SCHEMAS
from turngate_contracts.subjects import Subjects
from turngate_contracts.topology import DEADLETTER, Topology
from turngate_protocol.inbox import InboxEntry
from turngate_protocol.report.session import SessionTurns

QUIET_S: Final = 60
_PAGE: Final = 256
_SECOND_NS: Final = 1_000_000_000


class Observer:
    """A reader of one namespace; make it with `connect`."""

    def __init__(self, connection: Connection, requester: Requester, namespace: str) -> None:
        self.connection = connection
        self.requester = requester
        self.subjects = Subjects(namespace)
        self.topology = Topology(self.subjects)
        self.turns = Store(requester, self.subjects, "turns", SCHEMAS[SessionTurns])
        self.inbox = Store(requester, self.subjects, "inbox", SCHEMAS[InboxEntry])
        self._highest: dict[str, int] = {}

    @classmethod
    async def connect(cls, url: str, namespace: str) -> "Observer":
        """Connect to a server."""
        connection = await connect(url, name="test-observer")
        return cls(connection, await Requester.start(connection), namespace)

    async def close(self) -> None:
        """End the connection."""
        await self.requester.stop()
        await self.connection.close()

    async def messages(self, stream: str, subjects: str) -> AsyncIterator[Stored]:
        """Yield the messages of a stream that match a filter, oldest first."""
        after, more = 0, True
        while more:
            page, more = await read_page(self.requester, stream, after, _PAGE, subjects)
            for stored in page:
                after = stored.sequence
                yield stored

    async def history(self, store: Store) -> dict[str, list[Stored]]:
        """Return every revision that a bucket holds, by key, oldest first."""
        found: dict[str, list[Stored]] = {}
        async for stored in self.messages(store.stream, store.subject(">")):
            found.setdefault(store.key_of(stored.subject), []).append(stored)
        return found

    async def newest(self, store: Store, keys: Iterable[str]) -> dict[str, Entry]:
        """Return the newest revision of each key, read as services read it."""
        return {entry.key: entry for entry in await each(keys, store.load)}

    async def events(self) -> list[StreamEvent]:
        """Return every event, oldest first."""
        reader = EventReader(self.connection, self.requester, self.subjects)
        return [event async for event in reader.follow(until_caught_up=True)]

    async def events_are_complete(self) -> None:
        """Wait until every revision of every sourced bucket has become an event."""
        events = self.subjects.stream("events")
        sources = [source["name"] for source in (await self.stream(events))["config"]["sources"]]

        async def behind() -> int:
            stored = [(await self.stream(name))["state"]["last_seq"] for name in sources]
            return int(sum(stored) - (await self.stream(events))["state"]["last_seq"])

        async def complete() -> bool:
            return await behind() <= 0

        await wait_until(complete, QUIET_S, "every revision of the buckets is an event")

    async def hasten(self) -> None:
        """Have what dead processes held delivered again after a second, instead of after the whole ack wait.

        To be called when the last process has started, because a start brings consumers back to the topology.
        """
        for stream, config in self.topology.consumers():
            name = config["durable_name"]
            there = (await self._api(f"CONSUMER.INFO.{stream}.{name}"))["config"]
            wanted = {"stream_name": stream, "config": {**there, "ack_wait": _SECOND_NS}}
            await self._api(f"CONSUMER.DURABLE.CREATE.{stream}.{name}", wanted)

    async def quiet(self) -> None:
        """Wait until no message waits for a consumer and none is being handled."""
        # A killed server tells the dead-letter service of what it had deleted; the tests of that service run it.
        consumers = [
            (stream, config["durable_name"])
            for stream, config in self.topology.consumers()
            if config["durable_name"] != DEADLETTER
        ]
        busy: list[str] = []

        async def is_quiet() -> bool:
            busy.clear()
            for stream, name in consumers:
                info = await self.consumer(stream, name)
                if info["num_pending"] or info["num_ack_pending"]:
                    busy.append(f"{name} has {info['num_pending']} waiting and {info['num_ack_pending']} unacked")
            return not busy

        try:
            await wait_until(is_quiet, QUIET_S)
        except AssertionError:
            raise AssertionError(f"the queues are not quiet after {QUIET_S} s: {'; '.join(busy)}") from None

    async def consumer(self, stream: str, name: str) -> dict[str, Any]:
        """Return the server's account of a consumer."""
        return await self._api(f"CONSUMER.INFO.{stream}.{name}")

    async def assert_sequences_rise(self) -> None:
        """Fail when a stored stream ends earlier than at an earlier call.

        One in memory may begin anew, and one that is written asynchronously may lose what it took last.
        """
        for config in self.topology.streams():
            name = config["name"]
            if config["storage"] != "file" or config.get("persist_mode") == "async":
                continue
            last = int((await self.stream(name))["state"]["last_seq"])
            assert last >= self._highest.get(name, 0), f"{name} went back from {self._highest[name]} to {last}"
            self._highest[name] = last

    async def stream(self, name: str) -> dict[str, Any]:
        """Return the server's account of a stream."""
        return await self._api(f"STREAM.INFO.{name}")

    async def _api(self, name: str, body: Any = None) -> dict[str, Any]:
        return await patiently(lambda: self.requester.api(name, body))
