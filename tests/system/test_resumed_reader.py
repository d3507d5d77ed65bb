"""A user interface that stops reading under load, or loses its server, and goes on from its cursor, misses nothing."""

import asyncio
import contextlib
import json
import random
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.fundamentals.reports import DONE, UNCHECKED
from tests.system.load import Load
from tests.system.nothing_lost import assert_events_tell_all
from tests.system.observer import Observer
from tests.system.processes import Fleet
from tests.system.runners import Runners
from tests.waiting import wait_until
from turngate.jetstream.embedded import EmbeddedServer
from turngate.jetstream.events import BUFFER, StreamEvent
from turngate.runner import TurnClient

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

CAUGHT_UP_S = 60


@pytest_asyncio.fixture
async def load(fleet: Fleet, runners: Runners) -> AsyncIterator[Load]:
    """Load on one validation process."""
    await fleet.start()
    made = Load(await runners.several(2), await runners.person(), random.randrange(10**6), in_flight=16)
    async with made:
        yield made


async def test_a_reader_that_stops_for_a_while_has_every_revision_once_and_in_order(
    load: Load, observer: Observer, runners: Runners
):
    async with Screen(await runners.one("steady")) as steady, Screen(await runners.one("stops")) as stops:
        await load.goes_on(50)
        stops.stop_reading()
        await store_further(BUFFER + 200, load, observer)
        stops.go_on_reading()
        await load.goes_on(50)

        await load.end()
        await assert_each_saw_all(observer, steady, stops)


async def test_a_reader_that_comes_back_with_its_cursor_has_every_revision_once_and_in_order(
    load: Load, observer: Observer, runners: Runners
):
    async with Screen(await runners.one("before")) as before:
        await load.goes_on(50)
    await store_further(300, load, observer)

    async with Screen(await runners.one("after"), before.seen) as after:
        await load.goes_on(50)

        await load.end()
        await assert_each_saw_all(observer, after)


async def test_readers_of_everything_and_of_one_session_outlive_the_server(
    own_server: EmbeddedServer, load: Load, observer: Observer, runners: Runners
):
    runner = await runners.one("runner-9", "pool-9")
    async with (
        Screen(await runners.one("steady")) as steady,
        Screen(await runners.one("stops")) as stops,
        Screen(await runners.one("one-session"), kind="turns", key="watched") as one_session,
    ):
        for round_ in range(3):
            await play_watched(load, runner, first=2 * round_ + 1)
            await load.goes_on(50)
            stops.stop_reading()
            await asyncio.to_thread(own_server.kill)
            await wait_until(lambda: not steady.connected, why="readers notice that the server is gone")
            await asyncio.to_thread(own_server.start)
            await load.goes_on(50)
            stops.go_on_reading()

        await load.end()
        await assert_each_saw_all(observer, steady, stops)
        watched = (await observer.history(observer.turns))["watched"]
        await wait_until(
            lambda: len(one_session.seen) >= len(watched), CAUGHT_UP_S, "every event of the session is seen"
        )
        assert_events_tell_all({"watched": watched}, one_session.seen)


class Screen:
    """A user interface: it reads events, may stop doing so, and keeps what it saw and its cursor."""

    def __init__(
        self, client: TurnClient, seen: list[StreamEvent] | None = None, *, kind: str = "", key: str = ""
    ) -> None:
        self.seen = list(seen or ())
        self._client = client
        self._kind = kind
        self._key = key
        self._reading = asyncio.Event()
        self._reading.set()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "Screen":
        self._task = asyncio.create_task(self._read())
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

    @property
    def cursor(self) -> int:
        """Where it has come to."""
        return self.seen[-1].cursor if self.seen else 0

    @property
    def connected(self) -> bool:
        """Whether it has a server at the moment."""
        return self._client.connection.is_connected

    def stop_reading(self) -> None:
        """Ask for no further event, as a page in the background does."""
        self._reading.clear()

    def go_on_reading(self) -> None:
        """Read on."""
        self._reading.set()

    async def has_seen(self, events: int) -> None:
        """Give it time to see so many events; whoever compares them says best which are missing."""
        with contextlib.suppress(AssertionError):
            await wait_until(lambda: len(self.seen) >= events, CAUGHT_UP_S)

    async def _read(self) -> None:
        async with contextlib.aclosing(self._client.events(self.cursor, kind=self._kind, key=self._key)) as events:
            async for event in events:
                self.seen.append(event)
                await self._reading.wait()


async def assert_each_saw_all(observer: Observer, *screens: Screen) -> None:
    """Fail when a reader of everything missed an event, saw one twice, or saw them in another order."""
    await observer.events_are_complete()
    last = await events_stored(observer)
    history = await observer.history(observer.turns)
    for screen in screens:
        await screen.has_seen(last)
        cursors = [event.cursor for event in screen.seen]
        gaps = sorted(set(range(1, last + 1)) - set(cursors))
        assert not gaps, f"{len(gaps)} of {last} events were never seen, such as {gaps[:5]}"
        assert_events_tell_all(history, screen.seen)


async def events_stored(observer: Observer) -> int:
    """The sequence of the newest event."""
    return int((await observer.stream(observer.subjects.stream("events")))["state"]["last_seq"])


async def store_further(events: int, load: Load, observer: Observer) -> None:
    """Play on until so many further events are stored."""
    wanted = await events_stored(observer) + events
    while await events_stored(observer) < wanted:
        await load.goes_on(50)


async def play_watched(load: Load, runner: TurnClient, first: int) -> None:
    """Play two turns of the session that one reader watches."""
    for turn in (first, first + 1):
        await load.ledger.report(runner, "watched", turn, 1, json.dumps(UNCHECKED).encode())
        await load.ledger.report(runner, "watched", turn, 2, json.dumps(DONE).encode())
