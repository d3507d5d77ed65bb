"""`turngate turn`: what a runner does with turns, and what a person does with their cards."""

import argparse
import sys
from typing import TYPE_CHECKING

from turngate.cli.commands import OK, Parser, UsageError, seconds, utf8, whole_number
from turngate.cli.connected import add_connection, with_client
from turngate.cli.inputs import STDIN, read_bytes

if TYPE_CHECKING:
    from turngate.runner import TurnClient

_MS = 1_000


def add_arguments(parser: Parser) -> None:
    """Add `submit`, `end`, `show`, `answer` and `dismiss`."""
    parser.explain(
        """
        Submit reports and end turns as a runner does; show, answer and dismiss their
        cards as a person does. Repeating a command is harmless: what is decided stays.
        """,
        """
        turngate turn submit s1 1 report.json --mutated
        turngate turn show s1
        turngate turn answer s1 1 2
        """,
    )
    _add_submit(parser.add_command("submit", "submit a report and print its verdict"))
    _add_end(parser.add_command("end", "say that the agent of a turn stopped"))
    _add_show(parser.add_command("show", "print what is known of a session"))
    _add_answer(parser.add_command("answer", "answer a card"))
    _add_dismiss(parser.add_command("dismiss", "close a card without an answer"))


def _add_turn(parser: Parser) -> None:
    parser.add_argument("session", metavar="SESSION", type=utf8, help="the session's id")
    parser.add_argument("turn", metavar="TURN", type=whole_number, help="the turn's number, counted from 1")


def _add_facts(parser: Parser) -> None:
    parser.add_argument("--mutated", action="store_true", help="the turn changed something")
    parser.add_argument("--used-tools", action="store_true", help="the turn used tools")
    parser.add_argument(
        "--timeout",
        type=seconds(0.001, 86_400),
        default=30.0,
        metavar="S",
        help="how long to wait for the outcome (default 30)",
    )


def _add_submit(parser: Parser) -> None:
    parser.explain(
        """
        Submit the report that a turn ends with and print its one verdict: accepted with
        the card that a person will see, or rejected with every problem. Exit code 1 when
        it is not accepted. A repaired report is the next attempt of the same turn.
        """,
        """
        turngate turn submit s1 1 report.json --mutated
        my-agent | turngate turn submit s1 2 --json
        turngate turn submit s1 2 repaired.json --attempt 2
        """,
    )
    _add_turn(parser)
    parser.add_argument("file", nargs="?", default=STDIN, metavar="FILE", help="the report; - or none: standard input")
    parser.add_argument("--attempt", type=whole_number, default=1, metavar="N", help="1, then one more for each repair")
    _add_facts(parser)
    parser.add_json("the verdict")
    add_connection(parser, "identity", "pool")
    parser.runs(_submit)


def _add_end(parser: Parser) -> None:
    parser.explain(
        """
        Say that the agent of a turn stopped, and print what follows: the turn is settled,
        or it owes a report and the agent must be reminded, or it ends unreported. Exit
        code 1 unless it is settled.
        """,
        """
        turngate turn end s1 1 --mutated
        turngate turn end s1 1 --mutated --ending 2    it stopped again after the reminder
        """,
    )
    _add_turn(parser)
    parser.add_argument(
        "--ending", type=whole_number, default=1, metavar="N", help="1, then one more each time that it stops again"
    )
    _add_facts(parser)
    parser.add_json("the outcome")
    add_connection(parser, "identity", "pool")
    parser.runs(_end)


def _add_show(parser: Parser) -> None:
    parser.explain(
        """
        Print what is known of a session: its current turn with its card, its answer, the
        prompts that wait behind it, and how its last turns ended.
        """,
        """
        turngate turn show s1
        turngate turn show s1 3 --attempt 2      what became of that attempt
        turngate turn show s1 --json
        """,
    )
    parser.add_argument("session", metavar="SESSION", type=utf8, help="the session's id")
    parser.add_argument("turn", metavar="TURN", nargs="?", type=whole_number, default=0, help="one turn only")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--attempt", type=whole_number, default=0, metavar="N", help="what became of this attempt")
    which.add_argument("--ending", type=whole_number, default=0, metavar="N", help="what became of this ending")
    parser.add_argument("--expand-all", action="store_true", help="show the details of every block")
    parser.add_json("the state, its revision, and the verdict that was asked for")
    add_connection(parser, "identity")
    parser.runs(_show)


def _add_answer(parser: Parser) -> None:
    parser.explain(
        """
        Pick an option of a card. The first answer wins: a later one is told who was first,
        with exit code 1.
        """,
        """
        turngate turn answer s1 1 2
        turngate turn answer s1 1 order/run-31 --text 'but not before noon'
        """,
    )
    _add_turn(parser)
    parser.add_argument(
        "choice", metavar="CHOICE", type=utf8, help="the option's number on the card, 1 to 9, or BLOCK/OPTION"
    )
    parser.add_argument("--text", type=utf8, default="", help="free text beside the option")
    parser.add_operation()
    parser.add_json("the answer that stands")
    add_connection(parser, "identity")
    parser.runs(_answer)


def _add_dismiss(parser: Parser) -> None:
    parser.explain(
        "Close a card without an answer; prompts that waited behind it go out.", "turngate turn dismiss s1 1"
    )
    _add_turn(parser)
    parser.add_operation()
    parser.add_json("what was closed")
    add_connection(parser, "identity")
    parser.runs(_dismiss)


def _submit(args: argparse.Namespace) -> int:
    report = read_bytes(args.file)

    async def work(client: "TurnClient") -> int:
        from turngate.cli import shown

        verdict = await client.submit_report(
            args.session,
            args.turn,
            report,
            attempt=args.attempt,
            mutated=args.mutated,
            used_tools=args.used_tools,
            timeout_ms=int(args.timeout * _MS),
        )
        return shown.verdict(verdict, args.json)

    return with_client(args, work)


def _end(args: argparse.Namespace) -> int:
    async def work(client: "TurnClient") -> int:
        from turngate.cli import shown

        ended = await client.end_turn(
            args.session,
            args.turn,
            ending=args.ending,
            mutated=args.mutated,
            used_tools=args.used_tools,
            timeout_ms=int(args.timeout * _MS),
        )
        return shown.ending(ended, args.json)

    return with_client(args, work)


def _show(args: argparse.Namespace) -> int:
    async def work(client: "TurnClient") -> int:
        from turngate.cli import shown

        found = await client.get(args.session, args.turn, attempt=args.attempt, ending=args.ending)
        asked = args.attempt or args.ending
        if asked and not args.turn:
            # Which turn is current is known only now.
            turn = found.state.current.turn
            found = await client.get(args.session, turn, attempt=args.attempt, ending=args.ending)
        if asked:
            return shown.found(found, args.json)
        return shown.session(found, args.turn, as_json=args.json, expand_all=args.expand_all)

    return with_client(args, work)


def _answer(args: argparse.Namespace) -> int:
    number, block, option = _choice(args.choice)

    async def work(client: "TurnClient") -> int:
        from turngate.cli import shown

        recorded = await client.answer(
            args.session, args.turn, number, block=block, option=option, text=args.text, op=args.op
        )
        return shown.answered(recorded, args.json)

    return with_client(args, work)


def _choice(text: str) -> tuple[int, str, str]:
    if text.isascii() and text.isdigit():
        if len(text) == 1 and text != "0":
            return int(text), "", ""
    else:
        block, slash, option = text.partition("/")
        if block and slash and option:
            return 0, block, option
    raise UsageError(f"{ascii(text)[:80]} is no choice; use a number from 1 to 9, or BLOCK/OPTION")


def _dismiss(args: argparse.Namespace) -> int:
    async def work(client: "TurnClient") -> int:
        from turngate.cli.output import print_json

        closed = await client.dismiss(args.session, args.turn, op=args.op)
        if args.json:
            print_json(closed)
        else:
            count = closed.released
            sent = f"; {count} {'prompt goes' if count == 1 else 'prompts go'} out" if count else ""
            sys.stdout.write(f"turn {closed.turn} of {closed.session} is closed{sent}\n")
        return OK

    return with_client(args, work)
