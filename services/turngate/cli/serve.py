"""`turngate serve NAME`: one service against a server or cluster, in one process or several."""

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from turngate.cli.commands import OK, Command, Parser, UsageError, whole_number
from turngate.cli.config import add_settings, load, to_environment
from turngate.cli.keys import CONCLUSION_KEYS, CONSOLE_KEYS, LOGIN_KEYS, MONITOR_KEYS, SUPERVISOR_KEYS, TOPOLOGY_KEYS
from turngate.registry import CONSOLE, EVERY

if TYPE_CHECKING:
    from turngate.children import Children
    from turngate.settings import Settings

MAX_PORT: Final = 65_535
_OWN: Final = {
    "validation": ("mode", "max_blocks", "window"),
    "conclusion": CONCLUSION_KEYS,
    "supervisor": ("window", "pool", *SUPERVISOR_KEYS),
    CONSOLE: ("state_dir", *CONSOLE_KEYS),
}
"""The settings that only some services have."""


def add_arguments(parser: Parser) -> None:
    """Add a command for each service."""
    parser.explain(
        """
        Run one service against the NATS server or cluster that TURNGATE_NATS_URL or
        --nats-url names. It makes the streams that are missing, says `ready: …` on
        stderr when it takes work, and runs until SIGTERM or Ctrl-C, which drain it:
        nothing more is taken, what is under way is finished. A second signal ends it
        at once. Start as many as the load wants, on any number of machines.
        """,
        """
        turngate serve validation
        turngate serve validation --processes 4 --nats-url nats://n1:4222,nats://n2:4222
        """,
    )
    parser.add_commands([Command(name, f"run the {name} service", _filler(name)) for name in EVERY])


def add_regression(parser: Parser) -> None:
    """Add `--accept-regression`, for whoever knows that saves are lost."""
    parser.add_argument(
        "--accept-regression",
        action="store_true",
        help="start although a bucket lost saves that it had acknowledged: the loss is known, once",
    )


def children_of(name: str, count: int, settings: "Settings") -> "Children":
    """Return `count` further processes of a service, with these settings, that end with this one."""
    from msgspec.structs import replace

    from turngate.children import Children

    if settings.metrics_port + count > MAX_PORT:
        raise UsageError(f"--metrics-port {settings.metrics_port} leaves no port for process {count + 1}")
    command = [sys.executable, "-m", "turngate.cli.main", "serve", name, "--parent", str(os.getpid())]

    def environment(number: int) -> dict[str, str]:
        port = settings.metrics_port and settings.metrics_port + number
        return os.environ | to_environment(replace(settings, metrics_port=port))

    return Children(count, command, environment)


def _filler(name: str) -> Callable[[Parser], None]:
    def fill(parser: Parser) -> None:
        parser.explain(
            f"Run the {name} service until SIGTERM or Ctrl-C.",
            f"""
            turngate serve {name}
            turngate serve {name} --durability relaxed
            """,
        )
        parser.set_defaults(processes=1)
        if name != CONSOLE:  # which has one address
            parser.add_argument(
                "--processes", type=whole_number, metavar="N", help="how many processes share its work (default 1)"
            )
        parser.add_argument("--parent", type=int, default=0, help=argparse.SUPPRESS)
        add_regression(parser)
        names = ("nats_url", *LOGIN_KEYS, "namespace", *TOPOLOGY_KEYS, *_OWN.get(name, ()))
        add_settings(parser, *names, "clock_offset_ms", "connect_timeout_ms", *MONITOR_KEYS)
        parser.set_defaults(service=name)
        parser.runs(_run)

    return fill


def _run(args: argparse.Namespace) -> int:
    settings = load(args, os.environ, Path.cwd())
    from turngate import process
    from turngate.logs import set_up_logging

    set_up_logging(settings.log_level, settings.log_format)
    children = children_of(args.service, args.processes - 1, settings)

    async def main() -> None:
        await process.serve(
            settings,
            [args.service],
            process.Ending(args.parent),
            children=children,
            accept_regression=args.accept_regression,
        )

    process.run(main())
    return OK
