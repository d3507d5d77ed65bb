"""`turngate esm`: give sessions objectives, steer them, and see what becomes of them."""

import argparse
import sys
from typing import TYPE_CHECKING, Final

from turngate.cli import esm_commands
from turngate.cli.commands import OK, Parser, UsageError, utf8, whole_number
from turngate.cli.connected import add_connection, with_client

if TYPE_CHECKING:
    from turngate.runner import TurnClient

STATUSES: Final = ("active", "paused", "blocked", "usage_limited", "complete_candidate", "complete")
_MAX_PAGE: Final = 1_000


def add_arguments(parser: Parser) -> None:
    """Add a command for everything that a person does with objectives."""
    parser.explain(
        """
        Long objectives: a worker works on one run after run, a critic challenges its
        claim to be done, an audit proves it. Three runs in a row with the same blocker
        block it. You can steer, pause and resume at any time, also while a role runs:
        what ran for an older text can't complete the newer one. `turngate runner` runs
        the agents. Repeating a command is harmless.
        """,
        """
        turngate esm create s1 'Make every test of the parser pass'
        turngate esm watch s1
        turngate esm guide s1 'Start with the tokenizer'
        turngate esm list --status blocked
        """,
    )
    esm_commands.add_create(parser.add_command("create", "give a session an objective; its first run starts at once"))
    _add_show(parser.add_command("show", "print what is known of a session's objective"))
    _add_list(parser.add_command("list", "list objectives, by session"))
    esm_commands.add_others(parser)
    _add_history(parser.add_command("history", "print what happened to a session's objectives"))
    _add_watch(parser.add_command("watch", "follow an objective as it is driven to its end"))


def limit(text: str) -> int:
    """Return how many entries a page may have, 1 to 1000; for argparse's `type`."""
    if text.isascii() and text.isdigit() and 1 <= int(text[:6]) <= _MAX_PAGE:
        return int(text)
    raise argparse.ArgumentTypeError(f"{ascii(text)[:80]} is not a whole number from 1 to {_MAX_PAGE}")


def _add_show(parser: Parser) -> None:
    parser.explain(
        """
        Print what is known of a session's objective: status, phase and who works on it,
        progress, remaining work, streaks, guidance that waits, and what happened last.
        """,
        """
        turngate esm show s1
        turngate esm show s1 --json
        """,
    )
    esm_commands.add_session(parser)
    parser.add_json("the state, its revision, and what is going on")
    add_connection(parser, "identity")
    parser.runs(_show)


def _add_list(parser: Parser) -> None:
    parser.explain(
        "List objectives, by session.",
        """
        turngate esm list
        turngate esm list --status blocked
        turngate esm list --limit 20 --cursor s1     the page after session s1
        turngate esm list --all --json
        """,
    )
    parser.add_argument("--status", choices=STATUSES, metavar="STATUS", help=f"one only: {', '.join(STATUSES)}")
    parser.add_argument("--limit", type=limit, default=100, metavar="N", help="entries a page, at most 1000")
    parser.add_argument("--cursor", type=utf8, default="", metavar="C", help="go on where a page ended")
    parser.add_argument("--all", action="store_true", help="every page")
    parser.add_json("one line a page: {entries, cursor, more}")
    add_connection(parser, "identity")
    parser.runs(_list)


def _add_history(parser: Parser) -> None:
    parser.explain(
        """
        Print what happened to a session's objectives, oldest first: each run and role
        with its verdict, reason, tokens and time, and what people did.
        """,
        """
        turngate esm history s1
        turngate esm history s1 --limit 20             the first page
        turngate esm history s1 --all --json
        """,
    )
    esm_commands.add_session(parser)
    parser.add_argument("--limit", type=limit, default=100, metavar="N", help="entries a page, at most 1000")
    parser.add_argument("--cursor", type=utf8, default="", metavar="C", help="go on where a page ended")
    parser.add_argument("--all", action="store_true", help="every page")
    parser.add_json("one line a page: {entries, cursor, more}")
    add_connection(parser, "identity")
    parser.runs(_history)


def _add_watch(parser: Parser) -> None:
    parser.explain(
        """
        Follow an objective: phase, progress, remaining work, streaks, what its agent does
        right now, and what happens, as it happens. On a terminal it is drawn in place;
        elsewhere each thing that happens is a line. It ends when the objective is
        complete (exit code 0) or cleared (1), with --until-rest also when nothing will
        happen without a person (1), and by Ctrl-C.
        """,
        """
        turngate esm watch s1
        turngate esm watch s1 --until-rest && echo done
        turngate esm watch s1 --json | jq -r .cause.type
        """,
    )
    esm_commands.add_session(parser)
    parser.add_argument("--until-rest", action="store_true", help="end also when it waits for a person or is paused")
    parser.add_argument("--timeout", type=whole_number, default=0, metavar="S", help="end after so long, with 1")
    parser.add_json("one line for each thing that happens: {cause, activity, objective, revision}")
    add_connection(parser, "identity")
    parser.runs(_watch)


def _show(args: argparse.Namespace) -> int:
    async def work(client: "TurnClient") -> int:
        from turngate.cli import esm_shown
        from turngate.cli.output import print_json
        from turngate.cli.times import at
        from turngate.terminal import Terminal
        from turngate_protocol.esm.state import causes

        found = await client.objectives.get(args.session)
        if args.json:
            print_json(found)
            return OK
        terminal = Terminal()
        seen = esm_shown.Seen(found.state, found.activity, found.runners)
        esm_shown.draw(terminal, esm_shown.panel(seen, esm_shown.now_ms()))
        terminal.line(terminal.paint("  lately", "dim"))
        for cause in causes(found.state)[-8:]:
            esm_shown.draw(terminal, [(esm_shown.Part(f"    {at(cause.at)}  ", ("dim",)), *esm_shown.caused(cause))])
        return OK

    return with_client(args, work)


def _list(args: argparse.Namespace) -> int:
    _check_paging(args)

    async def work(client: "TurnClient") -> int:
        from turngate.cli import esm_shown
        from turngate.cli.output import print_json
        from turngate.terminal import Terminal
        from turngate_protocol.esm.objective import Status

        status = Status(args.status) if args.status else None
        terminal, cursor, more, shown = Terminal(), args.cursor, True, 0
        while more:
            page = await client.objectives.page(cursor, args.limit, status)
            if args.json:
                print_json(page)
            elif page.entries:
                esm_shown.list_table(terminal, page.entries)
            shown += len(page.entries)
            cursor, more = page.cursor, page.more
            # A rare status makes pages that are empty and yet not the last.
            if not args.all and (shown or args.json):
                break
        if not args.json:
            chosen = f" --status {args.status}" if args.status else ""
            again = f"turngate esm list{chosen} --limit {args.limit} --cursor {cursor}"
            _say_rest(again, more=more, shown=shown, none="no objectives")
        return OK

    return with_client(args, work)


def _history(args: argparse.Namespace) -> int:
    _check_paging(args)

    async def work(client: "TurnClient") -> int:
        from turngate.cli import esm_shown
        from turngate.cli.output import print_json
        from turngate.terminal import Terminal

        terminal, cursor, more, shown = Terminal(), args.cursor, True, 0
        while more:
            page = await client.objectives.history_page(args.session, cursor, args.limit)
            if args.json:
                print_json(page)
            elif page.entries:
                esm_shown.history_table(terminal, page.entries)
            shown += len(page.entries)
            cursor, more = page.cursor, page.more
            if not args.all:
                break
        if not args.json:
            again = f"turngate esm history {args.session} --limit {args.limit} --cursor {cursor}"
            _say_rest(again, more=more, shown=shown, none="nothing has happened")
        return OK

    return with_client(args, work)


def _watch(args: argparse.Namespace) -> int:
    from turngate.cli.esm_watch import watch

    return watch(args)


def _check_paging(args: argparse.Namespace) -> None:
    if args.all and args.cursor:
        raise UsageError("--all and --cursor exclude each other; leave one out")


def _say_rest(again: str, *, more: bool, shown: int, none: str) -> None:
    from turngate_protocol.text import visible

    if more:
        sys.stdout.write(f"there is more: {visible(again)}\n")
    elif not shown:
        sys.stdout.write(f"{none}\n")
