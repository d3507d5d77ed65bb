"""`turngate dead`: messages that nothing could be done with; look at them, retry them, drop them."""

import argparse
from typing import TYPE_CHECKING

from turngate.cli.commands import NOT_OK, OK, Parser, UsageError, utf8
from turngate.cli.connected import add_connection, with_client
from turngate.cli.inbox import add_page

if TYPE_CHECKING:
    from turngate.runner import TurnClient

_STATUSES = ("waiting", "retrying", "retried", "dropped")
_MAX_PAGE = 500


def add_arguments(parser: Parser) -> None:
    """Add `list`, `show`, `retry` and `drop`."""
    parser.explain(
        """
        A message that can't be read, that failed too often, or that kills its process is
        kept as a dead letter: with its reason, where it came from, and what it was. What
        becomes of it is decided by people, and who decided stays known.
        """,
        """
        turngate dead list
        turngate dead show TG_TURNS-41-5f3a9c1e
        turngate dead retry TG_TURNS-41-5f3a9c1e --why 'validation was upgraded'
        turngate dead drop TG_TURNS-41-5f3a9c1e --why 'a runner that no longer exists'
        """,
    )
    _add_list(parser.add_command("list", "list dead letters, the longest unchanged first"))
    _add_show(parser.add_command("show", "show a dead letter with its body"))
    _add_retry(parser.add_command("retry", "publish a dead message again where it came from, as it was"))
    _add_drop(parser.add_command("drop", "remove a dead letter's body; who dropped it and why is kept"))


def _add_list(parser: Parser) -> None:
    parser.explain(
        "List dead letters, the longest unchanged first. Exit code 0 also when there are none.",
        """
        turngate dead list --status waiting
        turngate dead list --session s1 --json
        turngate dead list --stream TG_TURNS --reason invalid_message --all
        """,
    )
    add_page(parser, 50, _MAX_PAGE)
    parser.add_argument("--stream", type=utf8, default="", metavar="NAME", help="from one stream only, as TG_TURNS")
    parser.add_argument("--reason", type=utf8, default="", metavar="CODE", help="with one reason only")
    parser.add_argument("--session", type=utf8, default="", metavar="ID", help="of one session only")
    parser.add_argument("--status", choices=_STATUSES, default="", help="in one state only")
    parser.add_json("one line a page: {entries, cursor, more}")
    add_connection(parser, "identity")
    parser.runs(_list)


def _add_show(parser: Parser) -> None:
    parser.explain(
        """
        Show a dead letter. Its body is shown as text where it is text, made visible and
        bounded, and as hexadecimal otherwise; --json holds all of it, in base64.
        """,
        "turngate dead show TG_TURNS-41-5f3a9c1e",
    )
    _add_letter(parser)
    parser.add_json("{letter, revision}")
    add_connection(parser, "identity")
    parser.runs(_show)


def _add_retry(parser: Parser) -> None:
    parser.explain(
        """
        Publish a dead message again where it came from, as it was. Its handler knows what
        of it was done before, so nothing happens twice. A letter is retried once: what
        dies again has a letter of its own, which names this one. Exit code 1 when the
        letter was decided about before.
        """,
        "turngate dead retry TG_TURNS-41-5f3a9c1e --why 'validation was upgraded'",
    )
    _add_decision(parser)
    parser.runs(_retry)


def _add_drop(parser: Parser) -> None:
    parser.explain(
        """
        Remove a dead letter's body for good. Who dropped it, when and why is kept for as
        long as dead letters are. Exit code 1 when the letter was decided about before.
        """,
        "turngate dead drop TG_TURNS-41-5f3a9c1e --why 'a runner that no longer exists'",
    )
    _add_decision(parser)
    parser.runs(_drop)


def _add_letter(parser: Parser) -> None:
    parser.add_argument("letter", metavar="LETTER", type=utf8, help="its id, as `turngate dead list` shows it")


def _add_decision(parser: Parser) -> None:
    _add_letter(parser)
    parser.add_argument("--why", type=utf8, default="", metavar="TEXT", help="your words on why, kept with it")
    parser.add_json("{entry, already}")
    add_connection(parser, "identity")


def _list(args: argparse.Namespace) -> int:
    if args.all and args.cursor:
        raise UsageError("--all and --cursor exclude each other; leave one out")
    from turngate.cli.dead_shown import page as show
    from turngate_contracts.dead import DeadPage, ListDead

    async def work(client: "TurnClient") -> int:
        cursor, more, first = args.cursor, True, True
        while more and (first or args.all):
            wanted = ListDead(cursor, args.limit, args.stream, args.reason, args.session, args.status)
            page = await client.call("dead.list", wanted, DeadPage)
            show(page, as_json=args.json, first=first, hint=not args.all)
            cursor, more, first = page.cursor, page.more, False
        return OK

    return with_client(args, work)


def _show(args: argparse.Namespace) -> int:
    from turngate.cli.dead_shown import letter as show
    from turngate_contracts.dead import DeadFound, GetDead

    async def work(client: "TurnClient") -> int:
        show(await client.call("dead.get", GetDead(args.letter), DeadFound), as_json=args.json)
        return OK

    return with_client(args, work)


def _retry(args: argparse.Namespace) -> int:
    from turngate_contracts.dead import RetryDead

    return _decide(args, "dead.retry", RetryDead(args.letter, args.why))


def _drop(args: argparse.Namespace) -> int:
    from turngate_contracts.dead import DropDead

    return _decide(args, "dead.drop", DropDead(args.letter, args.why))


def _decide(args: argparse.Namespace, name: str, request: object) -> int:
    from turngate.cli.dead_shown import decided as show
    from turngate_contracts.dead import DeadDecided

    async def work(client: "TurnClient") -> int:
        told = await client.call(name, request, DeadDecided)  # type: ignore[arg-type]
        show(told, as_json=args.json)
        return NOT_OK if told.already else OK

    return with_client(args, work)
