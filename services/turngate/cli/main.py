"""The entry point of `turngate`: the commands by name, what all of them share, and what becomes of their errors.

A user never sees a traceback: whatever goes wrong is one sentence on stderr that says what to do next, and an exit
code.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from turngate import __version__
from turngate.cli.commands import (
    EXIT_CODES,
    INTERRUPTED,
    NO_SERVER,
    NOT_OK,
    READER_GONE,
    USAGE,
    Command,
    Parser,
    lazily,
)

COMMANDS: Final = (
    Command("up", "start a NATS server and all services here, until Ctrl-C", lazily("up")),
    Command("demo", "play a fleet of agent runners and show what becomes of their turns", lazily("demo")),
    Command("serve", "run one service against a NATS server", lazily("serve")),
    Command("report", "check and draw reports, print their schema; needs no server", lazily("report")),
    Command("turn", "submit, end, show, answer and dismiss turns", lazily("turn")),
    Command("question", "ask, show, answer and cancel questions; list those that wait", lazily("question")),
    Command("task", "tell that delegated tasks ended", lazily("task")),
    Command("conclusion", "check what delegated agents end with; show what was concluded", lazily("conclusion")),
    Command("esm", "give sessions objectives, steer them, and watch them being driven to their end", lazily("esm")),
    Command("runner", "run command line agents as the roles of objectives", lazily("runner")),
    Command("mcp", "give an agent the turn tools over MCP, on standard input and output or HTTP", lazily("mcp")),
    Command("hook", "what the hooks of agents run: evidence after a tool, the gate at a stop", lazily("hook")),
    Command("runners", "list the runners that are alive and what each does", lazily("runners")),
    Command("inbox", "list what waits for a person", lazily("inbox")),
    Command("watch", "show what waits for a person, live, and answer it with one key", lazily("watch")),
    Command("console", "say who may use the web console", lazily("console")),
    Command("events", "follow what happens", lazily("events")),
    Command("dead", "look at messages that nothing could be done with; retry or drop them", lazily("dead")),
    Command("provision", "make or bring up to date the streams, as the administrator", lazily("provision")),
    Command("auth", "say who may connect: identities, permissions, certificates", lazily("auth")),
    Command("backup", "write a namespace's streams and buckets into a directory, and check one", lazily("backup")),
    Command("restore", "put a backup into a server", lazily("restore")),
    Command("doctor", "say what is wrong with a system and what to do", lazily("doctor")),
)

_DESCRIPTION: Final = """\
Turngate gates the turns of AI coding agents over NATS JetStream: reports are
validated, and answered with one keypress."""

_EPILOG: Final = f"""\
first steps:
  turngate demo                          see it work, in half a minute
  turngate up                            start a system here and keep it running
  turngate turn submit s1 1 report.json  end turn 1 of session s1 with a report
  turngate turn show s1                  what is known of session s1
  turngate inbox                         what waits for a person
  turngate esm create s2 'Make it pass'  give session s2 a long objective
  turngate runner -- my-agent            run an agent for the objectives
  turngate doctor                        what is wrong, and what to do

settings come from flags, then TURNGATE_* variables, then a YAML file (--config,
TURNGATE_CONFIG, or ./turngate.yaml), then defaults. `--nats-url URL` is
TURNGATE_NATS_URL=URL and `nats_url: URL`; the help of each command lists its own.
NO_COLOR=1 turns colours off.

{EXIT_CODES}"""


def parser() -> Parser:
    """Return the parser of the whole command line."""
    made = Parser("turngate", description=_DESCRIPTION, epilog=_EPILOG)
    made.add_argument("--version", action="version", version=f"turngate {__version__}")
    made.add_argument("--config", metavar="FILE", default=None, help="YAML file with settings [TURNGATE_CONFIG]")
    made.add_commands(COMMANDS)
    return made


def main(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code; `run` is this with the process around it."""
    args = argparse.Namespace()
    try:
        args = parser().parse_args(arguments)
        code: int = args.run(args)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _forget_stdout()
        return READER_GONE
    except Exception as error:  # noqa: BLE001  the last place before the user, who gets a sentence
        return _tell(error, args)
    return code


def run() -> int:
    """Run `turngate` with the arguments of this process; returns the exit code."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by whoever started this
            nowhere = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115  for as long as the process lives
            setattr(sys, name, nowhere)
        # A terminal that can't show a glyph gets its escape instead of a crash.
        getattr(sys, name).reconfigure(errors="backslashreplace")
    try:
        try:
            return main(sys.argv[1:])
        finally:
            # Also after --help, which ends with SystemExit: Python's own last flush would print a traceback.
            sys.stdout.flush()
    except BrokenPipeError:
        _forget_stdout()
        return READER_GONE


def _tell(error: Exception, args: argparse.Namespace) -> int:
    """Print what went wrong in one sentence, and return the exit code."""
    from turngate.cli.failures import explain

    failure = explain(error)
    if os.environ.get("TURNGATE_LOG_LEVEL") == "debug":
        import traceback

        traceback.print_exception(error)
    try:
        if getattr(args, "json", False):
            from turngate.cli.output import print_json

            print_json({"error": failure.body})
            sys.stdout.flush()
        sys.stderr.write(f"turngate: {failure.sentence}\n")
    except BrokenPipeError:
        _forget_stdout()
    return failure.code


def _forget_stdout() -> None:
    # Python flushes stdout once more at its end, which would fail again and say so.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


__all__ = ["NOT_OK", "NO_SERVER", "USAGE", "main", "parser", "run"]

if __name__ == "__main__":
    sys.exit(run())
