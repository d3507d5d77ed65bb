"""Commands as data, and the parser that imports a command's module only when that command is asked for."""

import argparse
import sys
import textwrap
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, NoReturn

OK: Final = 0
NOT_OK: Final = 1
USAGE: Final = 2
NO_SERVER: Final = 3
INTERRUPTED: Final = 130
READER_GONE: Final = 141

EXIT_CODES: Final = """\
exit codes:
  0  done, and the answer is yes: accepted, answered, healthy
  1  done, and the answer is no: rejected, refused, something is wrong
  2  the command line, a setting or a file can't be used
  3  no server, or nobody answered in time"""

Run = Callable[[argparse.Namespace], int]


class UsageError(Exception):
    """Something about the command line that argparse can't know, such as a file that can't be read."""


class Command(NamedTuple):
    """A command or a group of commands: its name, one line of help, and what gives its parser its arguments."""

    name: str
    help: str
    fill: "Callable[[Parser], None]"


class Parser(argparse.ArgumentParser):
    """A parser whose arguments are added when it is first used, so that one command costs nothing to the others."""

    usage_exit = USAGE
    """The exit code for a command line that can't be used; a hook gives it another one."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        kwargs["allow_abbrev"] = False
        super().__init__(*args, **kwargs)
        self._fill: Callable[[Parser], None] | None = None
        self._below: argparse._SubParsersAction[Parser] | None = None

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Add this command's arguments, then parse as every parser does."""
        fill, self._fill = self._fill, None
        if fill is not None:
            fill(self)
        known, unknown = super().parse_known_args(args, namespace)
        if unknown and self.usage_exit != USAGE:
            # The parser above would say so too, and with its own exit code.
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return known, unknown

    def error(self, message: str) -> NoReturn:
        """Print the usage and what is wrong with the command line, then exit with `usage_exit`."""
        from turngate_protocol.text import visible

        self.print_usage(sys.stderr)
        self.exit(self.usage_exit, f"{self.prog}: error: {visible(message)}\n")

    def explain(self, text: str, examples: str = "") -> None:
        """Set what `--help` says beside the arguments.

        Args:
            text: what the command does; paragraphs.
            examples: command lines, one a line, and what they are for.
        """
        self.description = textwrap.dedent(text).strip()
        shown = textwrap.indent(textwrap.dedent(examples).strip(), "  ")
        self.epilog = f"examples:\n{shown}\n\n{EXIT_CODES}" if shown else EXIT_CODES

    def runs(self, run: Run) -> None:
        """Say what this command does; it returns the exit code."""
        self.set_defaults(run=run)

    def add_commands(self, commands: Sequence[Command]) -> None:
        """Add commands below this one; one of them must be given."""
        for command in commands:
            self.add_command(command.name, command.help)._fill = command.fill

    def add_command(self, name: str, help: str) -> "Parser":  # noqa: A002  argparse's own name for it
        """Add one command below this one and return its parser; for groups that are small enough not to be lazy."""
        if self._below is None:
            self._below = self.add_subparsers(title="commands", metavar="COMMAND", required=True, parser_class=Parser)
        made: Parser = self._below.add_parser(name, help=help)
        return made

    def add_operation(self) -> None:
        """Add `--op`, by which a repeated command is known."""
        self.add_argument(
            "--op",
            type=utf8,
            default="",
            metavar="ID",
            help="an id of this operation: repeating it with the same id is no second one",
        )

    def add_json(self, what: str) -> None:
        """Add `--json`, for scripts; `what` says what is printed then."""
        self.add_argument("--json", action="store_true", help=f"for scripts: {what}")


def lazily(module: str) -> "Callable[[Parser], None]":
    """Return what imports `turngate.cli.MODULE` and has its `add_arguments` fill the parser."""

    def fill(parser: Parser) -> None:
        from importlib import import_module

        import_module(f"turngate.cli.{module}").add_arguments(parser)

    return fill


def whole_number(text: str) -> int:
    """Return a number from 1 to 2**31 - 1, as turns, attempts and endings are; for argparse's `type`."""
    if text.isascii() and text.isdigit() and 1 <= int(text[:12]) < 2**31:
        return int(text)
    raise argparse.ArgumentTypeError(f"{ascii(text)[:80]} is not a whole number from 1 to 2147483647")


def number(least: int, most: int) -> Callable[[str], int]:
    """Return what reads a whole number from `least` to `most`; for argparse's `type`."""

    def read(text: str) -> int:
        if text.isascii() and text.isdigit() and least <= int(text[:20]) <= most:
            return int(text)
        raise argparse.ArgumentTypeError(f"{ascii(text)[:80]} is not a whole number from {least} to {most}")

    return read


def seconds(least: float, most: float) -> Callable[[str], float]:
    """Return what reads a number of seconds from `least` to `most`; for argparse's `type`."""

    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = -1.0
        if not least <= value <= most:  # not even where it is no number
            given = ascii(text)[:80]
            raise argparse.ArgumentTypeError(f"{given} is not a number of seconds from {least:g} to {most:.0f}")
        return value

    return read


def utf8(text: str) -> str:
    """Return a text that can be sent; for argparse's `type`. Arguments that are not UTF-8 come as lone surrogates."""
    from turngate_protocol.text import has_surrogate

    if has_surrogate(text):
        raise argparse.ArgumentTypeError(f"{ascii(text)[:80]} is not UTF-8; send it as UTF-8")
    return text
