"""`turngate conclusion`: reading and checking closing blocks without a server, and what was concluded with one."""

import argparse
import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from turngate.cli.commands import OK, Parser, UsageError, number, seconds, utf8
from turngate.cli.connected import add_connection, with_client
from turngate.cli.inputs import STDIN, read_bytes

if TYPE_CHECKING:
    from turngate.runner import TurnClient
    from turngate_protocol.conclusion import StartRecord

_MAX_PAGE = 1000


def add_arguments(parser: Parser) -> None:
    """Add `parse`, `verify`, `show` and `list`."""
    parser.explain(
        """
        What delegated agents end with: `parse` and `verify` read an agent's output and need
        no server; `show` and `list` tell what became of tasks that runners finished.
        """,
        """
        turngate conclusion parse output.txt
        turngate conclusion verify output.txt --dir ~/project
        turngate conclusion show s1 task-7
        """,
    )
    _add_parse(parser.add_command("parse", "print what closing blocks say"))
    _add_verify(parser.add_command("verify", "check a closing block's evidence in a directory"))
    _add_show(parser.add_command("show", "print what was concluded of a task"))
    _add_list(parser.add_command("list", "list conclusions, the longest unchanged first"))


def _add_parse(parser: Parser) -> None:
    parser.explain(
        """
        Print what the last closing block of each output says, with a warning for whatever
        was malformed. Exit code 1 when one of them has no block.
        """,
        """
        turngate conclusion parse output.txt
        my-agent | turngate conclusion parse --json
        """,
    )
    parser.add_argument("files", nargs="*", default=[STDIN], metavar="FILE", help="outputs; - or none: standard input")
    parser.add_json("one line an output: {file, found, conclusion}")
    parser.runs(_parse)


def _add_verify(parser: Parser) -> None:
    parser.explain(
        """
        Judge an agent's output as the gate would: its closing block, or what stands for one,
        and whether the files that it cites exist below --dir. Exit code 1 unless it is a
        success that may be believed.
        """,
        """
        turngate conclusion verify output.txt --dir .
        turngate conclusion verify output.txt --dir . --changed-since 2026-07-31T09:00:00Z
        my-agent | turngate conclusion verify --dir . --exit-code 1 --json
        """,
    )
    parser.add_argument("file", nargs="?", default=STDIN, metavar="FILE", help="the output; - or none: standard input")
    parser.add_argument("--dir", default=".", metavar="DIR", help="where relative paths start (default: here)")
    parser.add_argument(
        "--root",
        action="append",
        default=[],
        metavar="DIR",
        help="look in this directory too; files elsewhere are not checked (default: --dir alone)",
    )
    parser.add_argument(
        "--changed-since",
        type=_moment,
        default=None,
        metavar="TIME",
        help="cited files must have changed since: an RFC 3339 time, or ms since 1970",
    )
    parser.add_argument("--exit-code", type=int, default=0, metavar="N", help="how the agent ended (default 0)")
    parser.add_argument("--tool-calls", type=int, default=None, metavar="N", help="how many tool calls were seen")
    parser.add_json("{file, conclusion, gate, message}")
    parser.runs(_verify)


def _add_show(parser: Parser) -> None:
    parser.explain(
        """
        Print what is known of a task that ended: its conclusion as it was judged, what was
        found of the files that it cites, and whether its parent was told. Exit code 1 unless
        it is a success that may be believed.
        """,
        """
        turngate conclusion show s1 task-7
        turngate conclusion show s1 task-7 --message    what the parent session was told
        turngate conclusion show s1 task-7 --wait 30
        """,
    )
    parser.add_argument("session", metavar="SESSION", type=utf8, help="the session that delegated the task")
    parser.add_argument("task", metavar="TASK", type=utf8, help="the task's id")
    parser.add_argument("--message", action="store_true", help="print the text that the parent session gets")
    parser.add_argument(
        "--wait", type=seconds(0, 86_400), default=0.0, metavar="S", help="wait until it is judged, so long"
    )
    parser.add_json("the state and its revision")
    add_connection(parser, "identity")
    parser.runs(_show)


def _add_list(parser: Parser) -> None:
    parser.explain(
        "List conclusions over all sessions or of one; those that have not changed for longest come first.",
        """
        turngate conclusion list
        turngate conclusion list --session s1
        turngate conclusion list --limit 20 --cursor 4711    the next page
        turngate conclusion list --all --json
        """,
    )
    parser.add_argument("--session", type=utf8, default="", metavar="SESSION", help="of one session only")
    parser.add_argument(
        "--limit", type=number(1, _MAX_PAGE), default=100, metavar="N", help="entries a page, at most 1000"
    )
    parser.add_argument("--cursor", type=number(0, 2**53), default=0, metavar="N", help="go on where a page ended")
    parser.add_argument("--all", action="store_true", help="every page")
    parser.add_json("one line a page: {entries, cursor, more}")
    add_connection(parser, "identity")
    parser.runs(_list)


def output_of(name: str) -> str:
    """Return an agent's output; bytes that are no UTF-8 show as U+FFFD."""
    return read_bytes(name).decode("utf-8", "replace")


def _moment(text: str) -> int:
    if text.isascii() and text.isdigit() and len(text) <= 15:
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise argparse.ArgumentTypeError(
            f"{ascii(text)[:80]} is no time; write it as 2026-07-31T09:00:00Z, or as ms since 1970"
        )
    return int(moment.timestamp() * 1000)


def _parse(args: argparse.Namespace) -> int:
    from turngate.cli import conclusion_shown
    from turngate_protocol.conclusion import parse

    code = OK
    for name in args.files:
        shown = "standard input" if name == STDIN and not args.json else name
        code = max(code, conclusion_shown.parsed(shown, parse(output_of(name)), args.json))
    return code


def _verify(args: argparse.Namespace) -> int:
    from turngate.cli import conclusion_shown
    from turngate.evidence import Evidence, RootUnusable
    from turngate_protocol.conclusion import GateOptions, Task, enrich, refs_to_check, verify
    from turngate_protocol.conclusion.parent import message_for_parent

    directory = str(Path(args.dir).expanduser().resolve())
    try:
        evidence = Evidence([directory, *(Path(root).expanduser().resolve() for root in args.root)])
    except RootUnusable as error:
        raise UsageError(error.message) from None
    task = Task("offline", "completed", work_dir=directory, output=output_of(args.file), exit_code=args.exit_code)
    task, conclusion = enrich(task, now_ms=0)
    if conclusion is None:  # never: the fallback is on
        raise UsageError("nothing was concluded")
    options = GateOptions(base_dir=directory, strict=args.changed_since is not None)
    asked = refs_to_check(conclusion, options)
    answers = dict(zip(asked.paths, evidence.look(asked.paths), strict=True))
    judged, gate = verify(
        conclusion, answers, options=options, tool_calls=args.tool_calls, start=_start(args.changed_since)
    )
    message = message_for_parent(task, judged, answers, None, base_dir=directory)
    name = "standard input" if args.file == STDIN and not args.json else args.file
    return conclusion_shown.verified(name, judged, gate, message, args.json)


def _start(moment: int | None) -> "StartRecord | None":
    from turngate_protocol.conclusion import StartRecord

    return None if moment is None else StartRecord(moment)


def _show(args: argparse.Namespace) -> int:
    async def work(client: "TurnClient") -> int:
        from turngate.cli import conclusion_shown

        told = await client.conclusion(args.session, args.task, wait_ms=int(args.wait * 1000))
        return conclusion_shown.found(told, as_json=args.json, message=args.message)

    return with_client(args, work)


def _list(args: argparse.Namespace) -> int:
    if args.all and args.cursor:
        raise UsageError("--all and --cursor exclude each other; leave one out")

    async def work(client: "TurnClient") -> int:
        from turngate.cli import conclusion_shown

        cursor, more, first = args.cursor, True, True
        while more and (first or args.all):
            told = await client.conclusions(cursor, args.limit, args.session)
            conclusion_shown.page(told, args.json, first=first)
            cursor, more, first = told.cursor, told.more, False
        if more and not args.json:
            of = f" --session {args.session}" if args.session else ""
            sys.stdout.write(f"there is more: turngate conclusion list{of} --limit {args.limit} --cursor {cursor}\n")
        return OK

    return with_client(args, work)
