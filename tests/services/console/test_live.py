"""Live events: without a gap, without a repeat, and at the browser's own pace."""

import asyncio
import contextlib
import resource
from pathlib import Path

import pytest
from starlette.requests import Request

from tests.services.console.serving import Console, Page, card, serving, started
from tests.services.console.streams import Sent, Stream
from tests.waiting import wait_until
from turngate.console.hub import MOST_NEWS, MOST_REPLAYED, MOST_UNREAD, Browser, Change, News
from turngate.console.live import PER_BROWSER, after_of
from turngate.jetstream.embedded import EmbeddedServer
from turngate.jetstream.store import Event, Store
from turngate_contracts import codec
from turngate_contracts.messages import SCHEMAS
from turngate_contracts.progress import RoleProgressed
from turngate_protocol.cause import Cause
from turngate_protocol.esm.objective import Role
from turngate_protocol.report.session import SessionTurns, Turn


@pytest.mark.parametrize("said", ["", "-1", "x", "1.5", "٣", f"{2**53 + 1}", "0" * 20 + "9" * 20, "9" * 5_000])
def test_what_is_no_sequence_begins_with_what_is_there_now(said: str):
    headers = [(b"last-event-id", said.encode())]

    assert after_of(Request({"type": "http", "headers": headers, "query_string": b""})) is None


class Writer:
    """Writes states as a service does, as fast as it may."""

    def __init__(self, console: Console) -> None:
        system = console.system
        self._store = Store(system.requester, system.subjects, "turns", SCHEMAS[SessionTurns])
        self._revisions: dict[str, int] = {}

    async def write(self, session: str, turn: int) -> None:
        state = SessionTurns(session, "pool-1", Turn(turn, 1, "runner-1"), Cause("turn.ended", "runner-1", 1, turn))
        known = self._revisions.get(session, 0)
        event = Event("turn.ended", 1)
        self._revisions[session] = await self._store.save(session, codec.encode(state), known, event)

    async def many(self, count: int, sessions: int) -> None:
        """Write `count` states of so many sessions, those of one session one after the other."""

        async def of(number: int) -> None:
            for turn in range(1, count // sessions + 1):
                await self.write(f"w{number}", turn)

        await asyncio.gather(*(of(number) for number in range(sessions)))


async def test_a_change_is_told_with_its_sequence(console: Console) -> None:
    stream = await Stream.open(console.url)
    assert await stream.next() == Sent("status", {"nats": "up"})

    await card(await console.system.client())
    sent = await stream.until("state", kind="turns", key="s1")

    assert sent.id == sent.data["sequence"] > 0
    assert sent.data["type"].startswith("turngate.turn.")
    await stream.close()


async def test_who_comes_back_gets_what_was_missed_once_and_in_order(console: Console) -> None:
    writer = Writer(console)
    stream = await Stream.open(console.url)
    await writer.write("a", 1)
    seen = await stream.until("state", key="a")
    await stream.close()
    for session in ("b", "c", "b"):
        await writer.write(session, 1 if session == "c" else 2)

    await wait_until(lambda: console.service.hub.cursor >= seen.id + 3)
    back = await Stream.open(console.url, after=seen.id)
    missed = [await back.until("state") for _ in range(2)]

    # Two changes of one key that were not read are one, with the newer sequence.
    assert [(sent.data["key"], sent.id) for sent in missed] == [("c", seen.id + 2), ("b", seen.id + 3)]
    await writer.write("d", 1)
    assert (await back.next()).id == seen.id + 4
    await back.close()


async def test_nothing_is_missed_when_the_console_is_started_anew(console: Console) -> None:
    writer = Writer(console)
    async with contextlib.AsyncExitStack() as stack:
        first = await started(console.system, stack)
        stream = await Stream.open(first.url)
        await writer.write("a", 1)
        seen = await stream.until("state", key="a")
        assert await first.stop()
        assert await stream.ended()
        await stream.close()

    for session in ("b", "c"):
        await writer.write(session, 1)

    async with contextlib.AsyncExitStack() as stack:
        second = await started(console.system, stack)
        back = await Stream.open(second.url, after=seen.id)

        assert [(await back.until("state")).data["key"] for _ in range(2)] == ["b", "c"]
        await back.close()


async def test_the_server_goes_away_and_comes_back_and_nothing_is_missed(
    own_server: EmbeddedServer, namespace: str, tmp_path: Path
) -> None:
    async with serving(own_server.url, namespace, tmp_path) as console, console.browser() as page:
        writer = Writer(console)
        stream = await Stream.open(console.url)
        await writer.write("a", 1)
        seen = await stream.until("state", key="a")

        own_server.stop()
        await stream.until("status", nats="away")
        assert (await page.get("/readyz")).status_code == 503
        own_server.start()
        await stream.until("status", nats="up")
        await wait_until(lambda: console.system.connection.is_connected)
        await writer.write("b", 1)

        sent = await stream.until("state", 30)
        assert (sent.data["key"], sent.id) == ("b", seen.id + 1)
        await stream.close()
        await _ready(page)


async def _ready(page: Page) -> None:
    async def ready() -> bool:
        return (await page.get("/readyz")).status_code == 200

    await wait_until(ready, why="the console is ready again")


async def test_a_cursor_whose_number_was_given_again_loads_the_page_anew(console: Console) -> None:
    """A server that was killed had forgotten its last events (decision 40); the browser was away meanwhile."""
    hub, writer = console.service.hub, Writer(console)
    await writer.many(3, 1)
    await wait_until(lambda: hub.cursor == 3)
    hub._on_event(Change(2, "turns", "w0", "turn.ended"))
    await writer.write("w0", 4)
    await wait_until(lambda: hub.cursor == 4)

    away = await Stream.open(console.url, after=3)
    before = await Stream.open(console.url, after=1)

    assert (await away.until("reset")).data == {"reason": "gap"}
    assert (await before.until("state")).data["key"] == "w0"
    await away.close()
    await before.close()


async def test_a_cursor_that_the_stream_never_had_loads_the_page_anew(console: Console) -> None:
    stream = await Stream.open(console.url, after=10**9)

    sent = await stream.until("reset")

    assert sent.data == {"reason": "gap"}
    assert sent.id == console.service.hub.cursor
    await stream.close()


async def test_who_missed_too_much_loads_the_page_anew(console: Console) -> None:
    await Writer(console).many(MOST_REPLAYED + 100, 50)
    async with contextlib.AsyncExitStack() as stack:
        later = await started(console.system, stack)
        stream = await Stream.open(later.url, after=1)

        assert (await stream.until("reset")).id == later.hub.cursor
        await stream.close()


async def test_a_browser_that_opens_fifty_streams_gets_some_of_them(console: Console, page: Page) -> None:
    await page.get("/")
    cookie = "; ".join(f"{name}={value}" for name, value in page.http.cookies.items())

    streams = [await Stream.open(console.url, cookie=cookie) for _ in range(50)]
    other = await Stream.open(console.url)

    assert [stream.status for stream in streams] == [200] * PER_BROWSER + [429] * (50 - PER_BROWSER)
    assert other.status == 200
    for stream in (*streams, other):
        await stream.close()
    await wait_until(lambda: console.service.hub.open == 0, why="closed streams are forgotten")


async def test_ten_thousand_events_while_a_browser_does_not_read(console: Console) -> None:
    writer = Writer(console)
    paused = await Stream.open(console.url)
    await paused.until("status")
    reading = await Stream.open(console.url)
    newest: dict[str, int] = {}

    async def read() -> None:
        while True:
            sent = await reading.next(60)
            if sent.event == "state":
                assert sent.id > reading.last - 1
                newest[sent.data["key"]] = sent.id

    task = asyncio.create_task(read())
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    await writer.many(10_000, 100)
    hub = console.service.hub
    await wait_until(lambda: hub.cursor >= 10_000, 60)
    await wait_until(lambda: reading.last == hub.cursor, 60, "a browser that reads has read everything")
    grown_mib = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    task.cancel()

    assert hub.unread <= MOST_UNREAD
    assert grown_mib < 100
    seen: dict[str, int] = {}
    while paused.last < hub.cursor:
        sent = await paused.next()
        seen = {} if sent.event == "reset" else seen | {sent.data["key"]: sent.id}
    assert seen == newest
    assert len(seen) == 100
    await paused.close()
    await reading.close()


async def test_what_an_agent_says_is_told_while_it_is_news(console: Console) -> None:
    async def say(session: str, line: str) -> None:
        said = RoleProgressed(session, "run-1", Role.WORKER, "runner-1", 1, line, 3)
        await console.system.requester.publish(console.system.subjects.progress(session), codec.encode(said))

    stream = await Stream.open(console.url)
    await stream.until("status")
    await console.system.requester.publish(console.system.subjects.progress("s0"), b"not JSON")
    await say("s1", "one")
    await say("s1", "two\x1b[2J")
    await say("s2", "three")

    told = [await stream.until("progress")]
    while told[-1].data["session"] != "s2":
        told.append(await stream.until("progress"))
    late = await Stream.open(console.url, after=0)
    await Writer(console).write("a", 1)

    assert [sent.data["progress"] for sent in told][-2:] == ["two\\x1b[2J", "three"]
    assert told[-1].data["tool_calls"] == 3
    assert [sent.id for sent in told] == sorted(sent.id for sent in told)
    await late.until("status")
    assert (await late.next()).data["key"] == "a", "nobody catches up on news"
    await stream.close()
    await late.close()


async def test_news_never_have_a_slow_browser_load_its_page_anew_and_stand_in_order() -> None:
    browser = Browser("me")
    browser.offer(Change(1, "turns", "a"))
    for sequence in range(2, MOST_NEWS + 10):
        browser.mention(News(sequence, f"s{sequence}", {}))
    browser.mention(News(5_000, "s2", {"progress": "newest"}))
    browser.offer(Change(4_000, "turns", "b"))

    said = browser.take().decode()

    ids = [int(line.removeprefix("id: ")) for line in said.split("\n") if line.startswith("id")]
    assert ids == sorted(ids)
    assert (ids[0], ids[-2:], len(ids)) == (1, [4_000, 5_000], MOST_NEWS + 2)
    assert "event: reset" not in said


def test_changes_of_one_key_that_are_not_read_are_one() -> None:
    browser = Browser("me")
    for sequence, key in ((1, "a"), (2, "b"), (3, "a")):
        browser.offer(Change(sequence, "turns", key))

    sent = browser.take().decode()

    assert [line for line in sent.split("\n") if line.startswith("id")] == ["id: 2", "id: 3"]
    assert browser.take() == b""


def test_a_browser_with_too_much_unread_loads_its_page_anew_and_goes_on() -> None:
    browser = Browser("me")
    for sequence in range(1, MOST_UNREAD + 2):
        browser.offer(Change(sequence, "turns", f"s{sequence}"))
    browser.offer(Change(5000, "turns", "later"))

    lines = browser.take().decode().split("\n")

    assert [line for line in lines if line.startswith(("id", "event"))] == [
        f"id: {MOST_UNREAD + 1}",
        "event: reset",
        "id: 5000",
        "event: state",
    ]
