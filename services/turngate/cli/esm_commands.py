"""What people command of objectives: create, edit, pause, resume, clear, guide, run, configure."""

import argparse
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from turngate.cli.commands import OK, Parser, UsageError, utf8
from turngate.cli.connected import add_connection, with_client
from turngate.cli.inputs import STDIN, read_bytes

if TYPE_CHECKING:
    from turngate.runner import TurnClient
    from turngate_contracts.esm import ObjectiveStands

MOST_BYTES: Final = 512 * 1024
"""Longest file whose text is sent, so that the service says how long it may be; a longer one is not even looked at."""

_Command = Callable[["TurnClient", argparse.Namespace], "Awaitable[ObjectiveStands]"]


def add_create(parser: Parser) -> None:
    """Add the arguments of `turngate esm create`."""
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
    add_session(parser)
    _add_text(parser, "what is to be achieved")
    _add_how(parser)

    def create(client: "TurnClient", args: argparse.Namespace) -> "Awaitable[ObjectiveStands]":
        return client.objectives.create(
            args.session, args.text, pool=args.pool, work_dir=args.work_dir, mode=args.mode, op=args.op
        )

    _ends_as_command(parser, create)


def add_others(parser: Parser) -> None:
    """Add the commands about an objective that is there."""
    _add_edit(parser.add_command("edit", "give an objective a new text; what runs for the old one is stopped"))
    for name, help_, example in _PLAIN:
        _add_plain(parser.add_command(name, help_), name, help_, example)
    _add_guide(parser.add_command("guide", "say something to whoever works on the objective next"))
    _add_run(parser.add_command("run", "start the next run now, whatever delay is running"))
    _add_configure(parser.add_command("configure", "choose the pool, directory and mode of an objective's agents"))


def add_session(parser: Parser) -> None:
    """Add the session that a command is about."""
    parser.add_argument("session", metavar="SESSION", type=utf8, help="the session's id")


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
    add_session(parser)
    _add_text(parser, "what is to be achieved")
    _ends_as_command(parser, lambda client, args: client.objectives.edit(args.session, args.text, op=args.op))


_PLAIN: Final = (
    ("pause", "stop an objective until it is resumed", "turngate esm pause s1"),
    ("resume", "let an objective go on that is paused, blocked or limited", "turngate esm resume s1"),
    ("clear", "take a session's objective away; its history stays", "turngate esm clear s1"),
)


def _add_plain(parser: Parser, name: str, what: str, example: str) -> None:
    parser.explain(f"{what[0].upper()}{what[1:]}. A role that runs is stopped.", example)
    add_session(parser)

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
    add_session(parser)
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
    add_session(parser)
    parser.add_argument("--run-id", type=utf8, default="", metavar="ID", help="base id of the run, where it matters")
    _ends_as_command(parser, lambda client, args: client.objectives.run(args.session, run_id=args.run_id, op=args.op))


def _add_configure(parser: Parser) -> None:
    parser.explain(
        """
        Choose whose runners work on a session's objective, where, and how. What is not
        given stays as it is. A role that waits for a runner is offered to the new pool at
        once; one that runs already is left to end where it is.
        """,
        """
        turngate esm configure s1 --pool gpu
        turngate esm configure s1 --work-dir /srv/printer --mode careful
        """,
    )
    add_session(parser)
    _add_how(parser)

    def configure(client: "TurnClient", args: argparse.Namespace) -> "Awaitable[ObjectiveStands]":
        if not (args.pool or args.work_dir or args.mode):
            raise UsageError("say what to change: --pool, --work-dir or --mode")
        return client.objectives.configure(
            args.session, pool=args.pool, work_dir=args.work_dir, mode=args.mode, op=args.op
        )

    _ends_as_command(parser, configure)


def _add_text(parser: Parser, what: str) -> None:
    parser.add_argument("text", metavar="TEXT", nargs="?", type=utf8, help=f"{what}; - for standard input")
    parser.add_argument("--file", metavar="FILE", default="", help="read it from a file instead")


def _add_how(parser: Parser) -> None:
    parser.add_argument("--pool", type=utf8, default="", help="pool whose runners work on it (default: the session's)")
    parser.add_argument("--work-dir", type=utf8, default="", metavar="DIR", help="where agents work, on their host")
    parser.add_argument("--mode", type=utf8, default="", help="mode that agents are run in, passed on as it is")


def _ends_as_command(parser: Parser, command: _Command) -> None:
    """Add what all commands share, and what they do."""
    parser.add_operation()
    parser.add_json("where the objective stands then")
    add_connection(parser, "identity")
    parser.runs(_runs(command))


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
    where = "standard input" if name == STDIN else name
    data = read_bytes(name)
    if len(data) > MOST_BYTES:
        raise UsageError(f"{where} has {len(data)} bytes, far more than any text may have; name another file")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise UsageError(f"{where} is not UTF-8; save it as UTF-8") from None


def _stands(told: "ObjectiveStands", args: argparse.Namespace) -> None:
    from turngate.cli import esm_shown
    from turngate.cli.output import print_json
    from turngate.terminal import Terminal
    from turngate_protocol.esm.activity import doing

    if args.json:
        print_json(told)
        return
    terminal = Terminal()
    status = told.objective.status.value.replace("_", " ") if told.objective else "no objective"
    again = " (done before)" if told.repeated else ""
    what = doing(told.activity, esm_shown.now_ms())
    more = "" if told.objective is None or what.startswith(status) else f"; {what}"
    terminal.line(terminal.paint(f"session {told.session}", "bold"), f"  {status}{more}{again}")
