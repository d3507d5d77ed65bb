"""`turngate esm`: give sessions objectives, steer them, and see what becomes of them."""

import argparse
import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from turngate.cli.commands import OK, Parser, UsageError, utf8, whole_number
from turngate.cli.connected import add_connection, with_client
from turngate.cli.inputs import STDIN, read_bytes

if TYPE_CHECKING:
    from turngate.runner import TurnClient
    from turngate_contracts.esm import ObjectiveStands

STATUSES: Final = ("active", "paused", "blocked", "usage_limited", "complete_candidate", "complete")
_MAX_PAGE: Final = 1_000

_Command = Callable[["TurnClient", argparse.Namespace], "Awaitable[ObjectiveStands]"]


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
    _add_create(parser.add_command("create", "give a session an objective; its first run starts at once"))
    _add_show(parser.add_command("show", "print what is known of a session's objective"))
    _add_list(parser.add_command("list", "list objectives, by session"))
    _add_edit(parser.add_command("edit", "give an objective a new text; what runs for the old one is stopped"))
    for name, help_, example in _PLAIN:
        _add_plain(parser.add_command(name, help_), name, help_, example)
    _add_guide(parser.add_command("guide", "say something to whoever works on the objective next"))
    _add_run(parser.add_command("run", "start the next run now, whatever delay is running"))
    _add_history(parser.add_command("history", "print what happened to a session's objectives"))
    _add_watch(parser.add_command("watch", "follow an objective as it is driven to its end"))


def limit(text: str) -> int:
    """Return how many entries a page may have, 1 to 1000; for argparse's `type`."""
    if text.isascii() and text.isdigit() and 1 <= int(text[:6]) <= _MAX_PAGE:
        return int(text)
    raise argparse.ArgumentTypeError(f"{ascii(text)[:80]} is not a whole number from 1 to {_MAX_PAGE}")


def _add_session(parser: Parser) -> None:
    parser.add_argument("session", metavar="SESSION", type=utf8, help="the session's id")


def _add_text(parser: Parser, what: str) -> None:
    parser.add_argument("text", metavar="TEXT", nargs="?", type=utf8, help=f"{what}; - for standard input")
    parser.add_argument("--file", metavar="FILE", default="", help="read it from a file instead")


def _ends_as_command(parser: Parser, command: _Command) -> None:
    """Add what all commands share, and what they do."""
    parser.add_argument(
        "--op",
        type=utf8,
        default="",
        metavar="ID",
        help="an id of this operation: repeating it with the same id is no second one",
    )
    parser.add_json("where the objective stands then")
    add_connection(parser, "identity")
    parser.runs(_runs(command))


def _add_create(parser: Parser) -> None:
    parser.explain(
        """
        Give a session an objective. Exit code 1 when it has an unfinished one already:
        edit or clear that. The text may have 64 KiB.
        """,
        """
        turngate esm create s1 'Make every test of the parser pass'
        turngate esm create s1 --file objective.md --pool gpu --work-dir /srv/parser
        git show HEAD:TODO.md | turngate esm create s1 -
        """,
    )
    _add_session(parser)
    _add_text(parser, "what is to be achieved")
    parser.add_argument("--pool", type=utf8, default="", help="pool whose runners work on it (default: the session's)")
    parser.add_argument("--work-dir", type=utf8, default="", metavar="DIR", help="where agents work, on their host")
    parser.add_argument("--mode", type=utf8, default="", help="mode that agents are run in, passed on as it is")

    def create(client: "TurnClient", args: argparse.Namespace) -> "Awaitable[ObjectiveStands]":
        return client.objectives.create(
            args.session, args.text, pool=args.pool, work_dir=args.work_dir, mode=args.mode, op=args.op
        )

    _ends_as_command(parser, create)


def _add_edit(parser: Parser) -> None:
    parser.explain(
        """
        Give an objective a new text. What runs for the old text is stopped and can't
        complete it; a candidate is active again.
        """,
        """
        turngate esm edit s1 'Make every test of the parser and of the printer pass'
        turngate esm edit s1 --file objective.md
        """,
    )
    _add_session(parser)
    _add_text(parser, "what is to be achieved")
    _ends_as_command(parser, lambda client, args: client.objectives.edit(args.session, args.text, op=args.op))


_PLAIN: Final = (
    ("pause", "stop an objective until it is resumed", "turngate esm pause s1"),
    ("resume", "let an objective go on that is paused, blocked or limited", "turngate esm resume s1"),
    ("clear", "take a session's objective away; its history stays", "turngate esm clear s1"),
)


def _add_plain(parser: Parser, name: str, what: str, example: str) -> None:
    parser.explain(f"{what[0].upper()}{what[1:]}. A role that runs is stopped.", example)
    _add_session(parser)

    def command(client: "TurnClient", args: argparse.Namespace) -> "Awaitable[ObjectiveStands]":
        by_name = {
            "pause": client.objectives.pause,
            "resume": client.objectives.resume,
            "clear": client.objectives.clear,
        }
        return by_name[name](args.session, op=args.op)

    _ends_as_command(parser, command)


def _add_guide(parser: Parser) -> None:
    parser.explain(
        """
        Say something to whoever works on the objective next. It waits until a run that
        carried it was applied, so it is neither lost nor said to nobody; a run that rests
        starts at once.
        """,
        "turngate esm guide s1 'Start with the tokenizer'",
    )
    _add_session(parser)
    _add_text(parser, "what to say, at most 16 KiB")
    _ends_as_command(parser, lambda client, args: client.objectives.guide(args.session, args.text, op=args.op))


def _add_run(parser: Parser) -> None:
    parser.explain(
        """
        Start the next run now, whatever delay is running. Nothing happens while one is
        under way, or while the objective is paused, blocked, limited or complete.
        """,
        "turngate esm run s1",
    )
    _add_session(parser)
    parser.add_argument("--run-id", type=utf8, default="", metavar="ID", help="base id of the run, where it matters")
    _ends_as_command(parser, lambda client, args: client.objectives.run(args.session, run_id=args.run_id, op=args.op))


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
    _add_session(parser)
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
    _add_session(parser)
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
    _add_session(parser)
    parser.add_argument("--until-rest", action="store_true", help="end also when it waits for a person or is paused")
    parser.add_argument("--timeout", type=whole_number, default=0, metavar="S", help="end after so long, with 1")
    parser.add_json("one line for each thing that happens: {cause, activity, objective, revision}")
    add_connection(parser, "identity")
    parser.runs(_watch)


def _runs(command: _Command) -> Callable[[argparse.Namespace], int]:
    def run(args: argparse.Namespace) -> int:
        if hasattr(args, "file"):
            args.text = _given_text(args)

        async def work(client: "TurnClient") -> int:
            _stands(await command(client, args), args)
            return OK

        return with_client(args, work)

    return run


def _given_text(args: argparse.Namespace) -> str:
    if (args.text is None) == (not args.file):
        raise UsageError("give the text itself, or - for standard input, or --file FILE; one of them")
    if args.text is not None and args.text != STDIN:
        text: str = args.text
        return text
    name = args.file or STDIN
    try:
        return read_bytes(name).decode("utf-8")
    except UnicodeDecodeError:
        where = "standard input" if name == STDIN else name
        raise UsageError(f"{where} is not UTF-8; save it as UTF-8") from None


def _stands(told: "ObjectiveStands", args: argparse.Namespace) -> None:
    from turngate.cli import esm_shown
    from turngate.cli.output import print_json
    from turngate.terminal import Terminal

    if args.json:
        print_json(told)
        return
    terminal = Terminal()
    status = told.objective.status.value.replace("_", " ") if told.objective else "no objective"
    again = " (done before)" if told.repeated else ""
    doing = esm_shown.doing(told.activity, esm_shown.now_ms())
    more = "" if told.objective is None or doing.startswith(status) else f"; {doing}"
    terminal.line(terminal.paint(f"session {told.session}", "bold"), f"  {status}{more}{again}")


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
