"""`turngate events tail`: what happens, as it happens, from any cursor on."""

import argparse
import fnmatch
import sys
from typing import TYPE_CHECKING, Any

from turngate.cli.commands import NOT_OK, OK, Parser
from turngate.cli.connected import add_connection, with_connection

if TYPE_CHECKING:
    from turngate.jetstream.connect import Connection
    from turngate.jetstream.events import StreamEvent
    from turngate.jetstream.request import Requester
    from turngate.settings import Settings
    from turngate.terminal import Terminal

_NEW = -1
_PREFIX = "turngate."


def add_arguments(parser: Parser) -> None:
    """Add `tail`."""
    parser.explain("Follow what happens.", "turngate events tail")
    tail = parser.add_command("tail", "print events as they happen")
    tail.explain(
        """
        Print every revision of every state, in order, as it happens. Each line begins
        with the event's cursor: `--from CURSOR` goes on after it and misses nothing, also
        after this command or the server were away.
        """,
        """
        turngate events tail                             what is new
        turngate events tail --from 0 --once             everything that is kept, then end
        turngate events tail --from 4711 --json          go on after an event
        turngate events tail --session s1 --type 'turn.report_*'
        """,
    )
    tail.add_argument(
        "--from",
        dest="cursor",
        type=_cursor,
        default=None,
        metavar="CURSOR",
        help="go on after this event; 0: the oldest that is kept; new: only what comes (default: new, with --once 0)",
    )
    tail.add_argument("--session", default="", metavar="ID", help="one session only")
    tail.add_argument("--type", default="", metavar="TYPE", help="one type only, such as turn.answered; * and ? match")
    tail.add_argument("--once", action="store_true", help="end when there is nothing newer, instead of waiting")
    tail.add_json("one line an event: {cursor, kind, key, type, time, data}, data being the whole new state")
    add_connection(tail)
    tail.runs(_tail)


def _cursor(text: str) -> int:
    if text == "new":
        return _NEW
    if text.isascii() and text.isdigit() and len(text) < 19:
        return int(text)
    raise argparse.ArgumentTypeError(
        f"{ascii(text)[:80]} is no cursor; use a number that an event began with, 0 or new"
    )


def _tail(args: argparse.Namespace) -> int:
    async def work(connection: "Connection", requester: "Requester", settings: "Settings") -> int:
        from turngate.jetstream.events import EVERY_KIND, EventReader
        from turngate.terminal import Terminal
        from turngate_contracts.ids import check_id

        subjects = settings.topology().subjects
        # Every kind of state keeps a session under the session's own id.
        chosen = {"kind": EVERY_KIND, "key": check_id("session", args.session)} if args.session else {}
        start = await _start(args, requester, subjects.stream("events"))
        if start is None:
            return NOT_OK
        terminal = Terminal()
        reader = EventReader(connection, requester, subjects)
        async for event in reader.follow(start, until_caught_up=args.once, **chosen):
            if args.type and not fnmatch.fnmatchcase(event.type.removeprefix(_PREFIX), args.type.removeprefix(_PREFIX)):
                continue
            _show(terminal, event, args.json)
        return OK

    return with_connection(args, work)


async def _start(args: argparse.Namespace, requester: "Requester", stream: str) -> int | None:
    """Return the cursor to begin after, or None when the one that was given can't be right."""
    from turngate.jetstream.provision import STREAM_NOT_FOUND, TopologyMissing
    from turngate.jetstream.request import JetStreamError

    try:
        state = (await requester.api(f"STREAM.INFO.{stream}"))["state"]
    except JetStreamError as error:
        if error.err_code == STREAM_NOT_FOUND:
            raise TopologyMissing(stream) from None
        raise
    first, last = int(state["first_seq"]), int(state["last_seq"])
    cursor = args.cursor if args.cursor is not None else 0 if args.once else _NEW
    if cursor == _NEW:
        return last
    if cursor > last:
        sys.stderr.write(
            f"turngate: cursor {cursor} is newer than the newest event, {last}; was the server's data replaced? "
            "--from 0 begins with what there is\n"
        )
        return None
    if cursor and cursor + 1 < first:
        sys.stderr.write(f"turngate: the events from {cursor + 1} to {first - 1} are no longer kept\n")
    return cursor


def _show(terminal: "Terminal", event: "StreamEvent", as_json: bool) -> None:
    if as_json:
        _print(event)
    else:
        from turngate.cli.times import clock

        terminal.line(
            terminal.paint(f"{event.cursor:>8}", "dim"),
            f"  {clock(event.time)}  ",
            terminal.paint(event.type.removeprefix(_PREFIX) or ("deleted" if event.deleted else event.kind), "bold"),
            f"  {event.key}  {_cause(event.data)}",
        )
    # One event at a time, or a program that reads this would wait for a full buffer.
    sys.stdout.flush()


def _print(event: "StreamEvent") -> None:
    import msgspec

    from turngate.cli.output import print_json

    line: dict[str, Any] = {name: getattr(event, name) for name in ("cursor", "kind", "key", "type", "time")}
    if event.schema:
        line["schema"] = event.schema
    if event.deleted:
        line["deleted"] = True
    if event.data:
        try:
            line["data"] = msgspec.Raw(msgspec.json.format(event.data, indent=-1))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            line["data_base64"] = event.data
    print_json(line)


def _cause(data: bytes) -> str:
    """Say in some words what a state's newest cause is, where it has one."""
    from msgspec import DecodeError, Struct, ValidationError, json

    class Caused(Struct):
        """The part of a state that says why this revision exists."""

        cause: dict[str, Any] = {}

    try:
        cause = json.decode(data or b"{}", type=Caused).cause
    except (DecodeError, ValidationError, UnicodeDecodeError, RecursionError):
        return ""
    parts = [f"{name} {cause[name]}" for name in ("turn", "attempt") if cause.get(name)]
    if cause.get("actor"):
        parts.append(f"by {cause['actor']}")
    return " ".join(parts)
