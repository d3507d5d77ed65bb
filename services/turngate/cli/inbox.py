"""`turngate inbox`: what waits for a person, over all sessions, oldest first."""

import argparse
import time
from typing import TYPE_CHECKING, Any

from turngate.cli.commands import OK, Parser, UsageError, number, utf8
from turngate.cli.connected import add_connection, with_client

if TYPE_CHECKING:
    from turngate.runner import TurnClient

_MAX_PAGE = 1000


def add_arguments(parser: Parser) -> None:
    """Add the arguments of `turngate inbox`."""
    parser.explain(
        "List what waits for a person, over all sessions, oldest first.",
        """
        turngate inbox
        turngate inbox --limit 20                  the first page
        turngate inbox --limit 20 --cursor 4711    the next one
        turngate inbox --all --json
        """,
    )
    add_page(parser, 100, _MAX_PAGE)
    parser.add_argument("--kind", type=utf8, default="", help="one kind only, such as card")
    parser.add_json("one line a page: {entries, cursor, more}")
    add_connection(parser, "identity")
    parser.runs(_run)


def add_page(parser: Parser, limit: int, most: int) -> None:
    """Add `--limit`, which is `limit` by default and `most` at most, `--cursor` and `--all`."""
    parser.add_argument(
        "--limit",
        type=number(1, most),
        default=limit,
        metavar="N",
        help=f"entries a page, at most {most} (default {limit})",
    )
    parser.add_argument(
        "--cursor",
        type=number(0, 2**53),
        default=0,
        metavar="N",
        help="go on where a page ended",
    )
    parser.add_argument("--all", action="store_true", help="every page")


def _run(args: argparse.Namespace) -> int:
    if args.all and args.cursor:
        raise UsageError("--all and --cursor exclude each other; leave one out")

    async def work(client: "TurnClient") -> int:
        cursor, more = args.cursor, True
        first = True
        while more and (first or args.all):
            page = await client.inbox(cursor, args.limit, args.kind)
            _show(page, args, first)
            cursor, more, first = page.cursor, page.more, False
        return OK

    return with_client(args, work)


def _show(page: Any, args: argparse.Namespace, first: bool) -> None:
    from turngate.cli.output import print_json
    from turngate.terminal import Terminal
    from turngate_protocol.spans import span

    if args.json:
        print_json(page)
        return
    terminal = Terminal()
    now = time.time_ns() // 1_000_000
    rows = [
        [span(now - e.since), e.kind, e.session, str(e.turn or ""), str(e.options or ""), e.pool, e.title]
        for e in page.entries
    ]
    if rows:
        terminal.table(["since", "kind", "session", "turn", "options", "pool", "title"], rows, right={3, 4})
    elif first:
        terminal.line("nothing waits for a person")
    if page.more and not args.all:
        terminal.line(f"there is more: turngate inbox --limit {args.limit} --cursor {page.cursor}")
