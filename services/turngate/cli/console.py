"""`turngate console token`: who may use the console."""

import argparse
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from turngate.cli.commands import NOT_OK, OK, Parser, utf8
from turngate.cli.config import add_settings, load

if TYPE_CHECKING:
    from turngate.console.tokens import TokenFile

_KEYS: Final = ("state_dir", "console_tokens", "log_level", "log_format")


def add_arguments(parser: Parser) -> None:
    """Add `token add`, `token list` and `token remove`."""
    parser.explain(
        """
        Say who may use the web console. On 127.0.0.1 and without tokens, everybody on
        this machine may do everything. As soon as there is one, each browser and each
        program needs one; on any other address the console does not start without.
        """,
        """
        turngate console token add ann --role operator
        turngate serve console --console-host 0.0.0.0
        """,
    )
    tokens = parser.add_command("token", "make, list and remove tokens")
    tokens.explain(
        """
        A token is shown once, when it is made; the file keeps only its hash. What its
        holder does is recorded under NAME. Consoles that run notice a change at once, and
        removing a token ends what was begun with it. Without any token left nobody may
        do anything; remove the file to need no tokens on 127.0.0.1 again.
        """,
        """
        turngate console token add ann --role operator
        turngate console token list
        turngate console token remove ann
        """,
    )
    _add_add(tokens.add_command("add", "make a token and print it"))
    _add_list(tokens.add_command("list", "list the tokens, without what they are"))
    _add_remove(tokens.add_command("remove", "remove a token"))


def _add_add(parser: Parser) -> None:
    parser.explain("Make a token and print it, this once.", "turngate console token add ann --role operator")
    parser.add_argument("name", metavar="NAME", type=utf8, help="who gets it")
    parser.add_argument(
        "--role",
        choices=("viewer", "operator"),
        default="viewer",
        help="viewer: may look; operator: may also answer and steer (default viewer)",
    )
    parser.add_json("{name, role, token}")
    add_settings(parser, *_KEYS)
    parser.runs(_add)


def _add_list(parser: Parser) -> None:
    parser.explain("List who has a token. Exit code 0 also when nobody has.", "turngate console token list --json")
    parser.add_json("one line a token: {id, name, role, created_at}")
    add_settings(parser, *_KEYS)
    parser.runs(_list)


def _add_remove(parser: Parser) -> None:
    parser.explain(
        "Remove a token: what it opened is closed. Exit code 1 when nobody has that name.",
        "turngate console token remove ann",
    )
    parser.add_argument("name", metavar="NAME", type=utf8, help="whose token")
    add_settings(parser, *_KEYS)
    parser.runs(_remove)


def _file(args: argparse.Namespace) -> "TokenFile":
    settings = load(args, os.environ, Path.cwd())
    from turngate.console.places import tokens_path
    from turngate.console.tokens import TokenFile

    return TokenFile(tokens_path(settings))


def _add(args: argparse.Namespace) -> int:
    from turngate.console.tokens import Role

    tokens = _file(args)
    made = tokens.add(args.name, Role(args.role), time.time_ns() // 1_000_000)
    if args.json:
        from turngate.cli.output import print_json

        print_json({"name": args.name, "role": args.role, "token": made})
    else:
        sys.stdout.write(f"{made}\n")
        sys.stderr.write(f"This is the token of {args.name}, {args.role}; it is not shown again.\n")
    return OK


def _list(args: argparse.Namespace) -> int:
    from turngate.cli.output import print_json
    from turngate.cli.times import at
    from turngate.terminal import Terminal

    tokens = _file(args)
    found = tokens.tokens()
    for token in found:
        facts = {"id": token.id, "name": token.name, "role": token.role.value, "created_at": token.created_at}
        if args.json:
            print_json(facts)
        else:
            Terminal().line(f"{token.name}  {token.role.value}  since {at(token.created_at)}")
    if not found and not args.json:
        Terminal().line("nobody has a token; make one: turngate console token add NAME --role operator")
    return OK


def _remove(args: argparse.Namespace) -> int:
    if _file(args).remove(args.name):
        sys.stdout.write(f"the token of {args.name} is removed\n")
        return OK
    from turngate_contracts.errors import shown

    sys.stderr.write(f"turngate: {shown(args.name)} has no token; `turngate console token list` shows who has\n")
    return NOT_OK
