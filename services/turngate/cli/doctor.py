"""`turngate doctor`: what is wrong with a system, and what to do."""

import argparse
from typing import TYPE_CHECKING, Final

from turngate.cli.commands import NOT_OK, OK, Parser
from turngate.cli.connected import add_connection, with_connection

if TYPE_CHECKING:
    from turngate.cli.checkup import Checkup
    from turngate.jetstream.connect import Connection
    from turngate.jetstream.request import Requester
    from turngate.settings import Settings

_MARKS: Final = {"ok": ("✓", "green"), "warn": ("!", "yellow"), "fail": ("✗", "red")}


def add_arguments(parser: Parser) -> None:
    """Add the arguments of `turngate doctor`."""
    parser.explain(
        """
        Look at a system and say what is wrong and what to do: the server and its version,
        JetStream, streams and consumers and their topology version, services, what waits
        and what is stuck, whether events keep up, clocks, dead letters. It changes nothing.
        Exit code 1 when something does not work (✗); what is only worth a look (!) is 0.
        """,
        """
        turngate doctor
        turngate doctor --nats-url nats://n1:4222 --namespace staging
        turngate doctor --json | jq '.checks[] | select(.status != "ok")'
        """,
    )
    parser.add_json("{ok, checks, streams, consumers}")
    add_connection(parser)
    parser.runs(_run)


def _run(args: argparse.Namespace) -> int:
    async def work(connection: "Connection", requester: "Requester", settings: "Settings") -> int:
        from turngate.cli.checkup import examine
        from turngate.cli.output import print_json
        from turngate.logs import without_secrets

        found = await examine(connection, requester, settings.topology(), without_secrets(settings.nats_url))
        if args.json:
            print_json(found)
        else:
            _show(found)
        return OK if found.ok else NOT_OK

    return with_connection(args, work)


def _show(found: "Checkup") -> None:
    from turngate.terminal import Terminal

    terminal = Terminal()
    terminal.line(terminal.paint(found.url, "bold"), f", namespace {found.namespace}")
    for check in found.checks:
        mark, colour = _MARKS[check.status]
        terminal.line(terminal.paint(mark, colour, "bold"), f" {check.name:<12}  {check.says}")
        if check.do:
            terminal.line(f"{'':<16}→ ", terminal.paint(check.do, "bold"))
    if found.streams:
        terminal.line()
        rows = [[s["stream"], *map(str, (s["messages"], s["bytes"], s["last"], s["lag"]))] for s in found.streams]
        terminal.table(["stream", "messages", "bytes", "newest", "lag"], rows, right={1, 2, 3, 4})
    if found.consumers:
        terminal.line()
        rows = [
            [c["consumer"], c["stream"], *map(str, (c["pending"], c["in_hand"], c["redelivered"], c["pulls"]))]
            for c in found.consumers
        ]
        head = ["consumer", "of", "waiting", "in hand", "again", "pulls"]
        terminal.table(head, rows, right={2, 3, 4, 5})
    terminal.line()
    failed = sum(check.status == "fail" for check in found.checks)
    warned = sum(check.status == "warn" for check in found.checks)
    if failed:
        terminal.line(
            terminal.paint(f"{failed} {'thing does' if failed == 1 else 'things do'} not work", "red", "bold")
        )
    elif warned:
        terminal.line(
            terminal.paint(f"it works; {warned} {'thing is' if warned == 1 else 'things are'} worth a look", "yellow")
        )
    else:
        terminal.line(terminal.paint("all is well", "green", "bold"))
