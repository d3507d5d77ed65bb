"""`turngate runners`: which runners are alive, and what each of them does."""

import argparse
from typing import TYPE_CHECKING

from turngate.cli.commands import OK, Parser, utf8
from turngate.cli.connected import add_connection, with_client

if TYPE_CHECKING:
    from turngate.runner import TurnClient


def add_arguments(parser: Parser) -> None:
    """Add the arguments of `turngate runners`."""
    parser.explain(
        """
        List the runners that are alive, by name: the pools and roles that they take, how
        many of their slots are busy, and what each agent does. A runner that was not
        heard of for 30 seconds is not listed. Exit code 0 also when there is none.
        """,
        """
        turngate runners
        turngate runners --only-pool gpu
        turngate runners --json
        """,
    )
    parser.add_argument("--only-pool", type=utf8, default="", metavar="P", help="those of one pool")
    parser.add_json("one line a runner")
    add_connection(parser, "identity")
    parser.runs(_run)


def _run(args: argparse.Namespace) -> int:
    async def work(client: "TurnClient") -> int:
        from turngate.cli import esm_shown
        from turngate.cli.output import print_json
        from turngate.terminal import Terminal

        runners = await client.objectives.runners(args.only_pool)
        if args.json:
            for runner in runners:
                print_json(runner)
        elif runners:
            esm_shown.runners_table(Terminal(), runners)
        else:
            Terminal().line("no runner is alive; start one: turngate runner -- COMMAND")
        return OK

    return with_client(args, work)
