"""`turngate watch`: what waits for a person, live, with the console's keys; line by line where a program reads."""

import argparse
import asyncio
import contextlib
import shutil
import signal
import sys
import time
from typing import TYPE_CHECKING, Final

from turngate.cli.commands import OK, Parser, seconds
from turngate.cli.connected import add_connection, with_client

if TYPE_CHECKING:
    from nats.aio.subscription import Subscription

    from turngate.cli.watching.actions import Actions
    from turngate.cli.watching.desk import Action, Desk, Place
    from turngate.cli.watching.keyboard import Screen
    from turngate.runner import TurnClient
    from turngate_contracts.messages import InboxPage
    from turngate_protocol.inbox import InboxEntry

MOST: Final = 500
"""Entries that are followed: the oldest. More than that is not read by a person anyway."""
SETTLE_S: Final = (0.05, 0.5)
"""After an event the inbox is read twice: its entry follows the event by a moment, under load by a longer one."""
ATTEND_S: Final = 5.0
"""How often it is looked whether objectives wait for a runner that nobody is: runners come and go without an event."""
LOOKED_AT: Final = 50
CHECK_S: Final = 15.0
"""How often the inbox is read without an event, so that the waiting times and a lost event come right."""


def add_arguments(parser: Parser) -> None:
    """Add the arguments of `turngate watch`."""
    parser.explain(
        """
        Show what waits for a person, over all sessions, as it comes and goes. On a terminal
        Enter opens a card, a question or an objective, and one key answers it; ? shows the
        keys. Where a program reads, each change is a line: + waits, - no longer.
        """,
        """
        turngate watch
        turngate watch | tee -a inbox.log
        turngate watch --json --timeout 60
        """,
    )
    parser.add_argument(
        "--timeout", type=seconds(0, 86_400), default=0.0, metavar="S", help="end after this many seconds"
    )
    parser.add_json("one line a change: {change: waits|gone, entry}")
    add_connection(parser, "identity")
    parser.runs(_run)


def _run(args: argparse.Namespace) -> int:
    async def work(client: "TurnClient") -> int:
        interactive = not args.json and sys.stdout.isatty() and sys.stdin is not None and sys.stdin.isatty()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(args.timeout or None):
                await (_interactive(client) if interactive else _lines(client, as_json=args.json))
        return OK

    return with_client(args, work)


class Changes:
    """Tells when the inbox may have changed: a live event says so, and what it says is in the inbox."""

    def __init__(self, client: "TurnClient") -> None:
        self._connection = client.connection
        self._subject = client.subjects.live()
        # What agents say changes nothing that waits, and may come many times a second.
        self._news = self._subject.replace(">", "progress.").encode()
        self._rung = asyncio.Event()
        self._listening: Subscription | None = None

    async def start(self) -> None:
        """Begin to listen."""
        self._listening = await self._connection.listen(self._subject, self._on_message)
        self._connection.on_reconnect(self._rung.set)

    def _on_message(self, subject: bytes, *_rest: bytes) -> None:
        if not subject.startswith(self._news):
            self._rung.set()

    async def wait(self) -> None:
        """Return when the inbox should be read again."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CHECK_S):
                await self._rung.wait()
        self._rung.clear()

    async def stop(self) -> None:
        """Listen no more."""
        self._connection.forget(self._rung.set)
        if self._listening is not None:
            await self._connection.unlisten(self._listening)


async def _lines(client: "TurnClient", *, as_json: bool) -> None:
    from turngate.cli.watching.desk import place

    changes = Changes(client)
    await changes.start()
    known: dict[Place, InboxEntry] = {}
    try:
        while True:
            for pause in SETTLE_S:
                page = await _page(client)
                if page is not None:
                    now = {place(entry): entry for entry in page.entries}
                    _tell(known, now, as_json=as_json)
                    known = now
                await asyncio.sleep(pause)
            await changes.wait()
    finally:
        await changes.stop()


def _tell(known: "dict[Place, InboxEntry]", now: "dict[Place, InboxEntry]", *, as_json: bool) -> None:
    from turngate.cli.output import print_json
    from turngate.cli.times import at
    from turngate.terminal import Terminal

    terminal = Terminal()
    gone = [entry for key, entry in known.items() if now.get(key) != entry]
    came = [entry for key, entry in now.items() if known.get(key) != entry]
    for change, mark, entries in (("gone", "-", gone), ("waits", "+", came)):
        for entry in entries:
            if as_json:
                print_json({"change": change, "entry": entry})
                continue
            turn = f" turn {entry.turn}" if entry.turn else ""
            title = entry.title.replace("\n", " ⏎ ")
            terminal.line(f"{mark} {at(entry.since)}  {entry.kind} {entry.session}{turn}  {title}")
    sys.stdout.flush()


async def _page(client: "TurnClient") -> "InboxPage | None":
    """Return what waits; None while nobody answers."""
    from turngate_contracts.errors import Unavailable

    try:
        return await client.inbox(limit=MOST)
    except Unavailable:
        return None


async def _interactive(client: "TurnClient") -> None:
    from turngate.cli.watching.actions import Actions
    from turngate.cli.watching.desk import Desk
    from turngate.cli.watching.keyboard import Screen

    desk = Desk()
    # The first page comes before the screen is taken: an error must be read on the terminal itself.
    page = await client.inbox(limit=MOST)
    desk.refresh(page.entries, page.more)
    screen = Screen(sys.stdin.fileno())
    with screen.taken():
        await _Session(client, desk, screen, Actions(client, desk, screen)).run()


class _Session:
    """One person at one terminal: keys and events in, rows out, one thing at a time."""

    def __init__(self, client: "TurnClient", desk: "Desk", screen: "Screen", actions: "Actions") -> None:
        self._client = client
        self._desk = desk
        self._screen = screen
        self._actions = actions
        self._bytes: asyncio.Queue[bytes] = asyncio.Queue()
        self._redraw = asyncio.Event()
        self._wants: asyncio.Queue[Action] = asyncio.Queue()

    async def run(self) -> None:
        """Run until the person quits, or the terminal goes away."""
        loop = asyncio.get_running_loop()
        stdin = sys.stdin.fileno()
        ended = asyncio.Event()
        loop.add_reader(stdin, lambda: self._bytes.put_nowait(self._screen.read()))
        loop.add_signal_handler(signal.SIGWINCH, self._redraw.set)
        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, ended.set)
        tasks = [
            asyncio.create_task(part)
            for part in (ended.wait(), self._keys(), self._follow(), self._draw(), self._carry_out(), self._attend())
        ]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            loop.remove_reader(stdin)
            loop.remove_signal_handler(signal.SIGWINCH)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _keys(self) -> None:
        from turngate.cli.watching.desk import Quit
        from turngate.cli.watching.keyboard import ESCAPE_S, keys

        rest = b""
        while True:
            try:
                async with asyncio.timeout(ESCAPE_S if rest else None):
                    data = await self._bytes.get()
            except TimeoutError:
                pressed, rest = keys(rest, complete=not rest.startswith(b"\x1b[200~"))
            else:
                if not data:
                    return
                pressed, rest = keys(rest + data)
            for key in pressed:
                action = self._desk.press(key)
                if isinstance(action, Quit):
                    return
                if action is not None:
                    self._wants.put_nowait(action)
            self._redraw.set()

    async def _carry_out(self) -> None:
        while True:
            action = await self._wants.get()
            await self._actions.do(action)
            self._redraw.set()

    async def _follow(self) -> None:
        changes = Changes(self._client)
        await changes.start()
        try:
            while True:
                for pause in SETTLE_S:
                    page = await _page(self._client)
                    self._desk.away = page is None
                    if page is not None:
                        self._desk.refresh(page.entries, page.more)
                        await self._actions.look()
                    self._redraw.set()
                    await asyncio.sleep(pause)
                await changes.wait()
        finally:
            await changes.stop()

    async def _attend(self) -> None:
        from turngate_contracts.errors import TurngateError

        while True:
            # Where no supervisor answers there is nothing that could wait.
            pools: tuple[str, ...] = ()
            with contextlib.suppress(TurngateError):
                page = await self._client.objectives.page(limit=LOOKED_AT, unattended=True)
                pools = tuple(dict.fromkeys(each.activity.pool or each.pool or "default" for each in page.entries))
            if pools != self._desk.unattended:
                self._desk.unattended = pools
                self._redraw.set()
            await asyncio.sleep(ATTEND_S)

    async def _draw(self) -> None:
        from turngate.cli.watching.drawn import rows
        from turngate.terminal import Terminal

        colour = Terminal().colour
        while True:
            size = shutil.get_terminal_size()
            now = time.time_ns() // 1_000_000
            shown = rows(self._desk, now, size.columns - 1, size.lines - 1, colour=colour)
            sys.stdout.write("\x1b[H" + "".join(f"{row}\x1b[K\r\n" for row in shown) + "\x1b[J")
            sys.stdout.flush()
            self._redraw.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CHECK_S):
                    await self._redraw.wait()
