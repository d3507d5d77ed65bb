"""`turngate runner`: one runner process that takes roles of objectives and runs a command line agent for each."""

import argparse
import os
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from turngate.cli.commands import OK, Parser, UsageError, utf8, whole_number
from turngate.cli.config import add_settings, load
from turngate.cli.connected import id_of
from turngate.cli.keys import LOGIN_KEYS

if TYPE_CHECKING:
    from turngate.process import Ending
    from turngate.runner.adapters import Adapter
    from turngate.runner.host import RunnerHost
    from turngate.settings import Settings

ROLES: Final = ("worker", "critic", "audit", "recovery")
OUTPUTS: Final = ("plain", "events", "claude", "codex", "opencode")

_MS: Final = 1_000


def add_arguments(parser: Parser) -> None:
    """Add the arguments of `turngate runner`."""
    parser.explain(
        """
        Take roles of objectives (worker, critic, audit, recovery) and run a command line
        agent for each. The prompt comes to the command's standard input, or in a file
        where the command line names {prompt_file}; {work_dir}, {role}, {tools} and
        {session} are replaced too. What the agent's tools did counts as evidence, so let
        its output be read as it is: --output claude for `claude -p --output-format
        stream-json --verbose`, codex for `codex exec --json`, opencode for `opencode run
        --format json`, events for one JSON event a line, plain for text without evidence.

        It says `ready: …` on stderr when it takes work. SIGTERM or Ctrl-C drains it:
        nothing more is taken, agents get --drain seconds to finish, and what they could
        not finish is handed back to other runners. A second signal ends it at once.
        """,
        """
        turngate runner -- my-agent --task -
        turngate runner --output claude --allow-env ANTHROPIC_API_KEY \\
            -- claude -p --output-format stream-json --verbose
        turngate runner --role critic --role audit --slots 4 --output codex -- codex exec --json -
        turngate runner --pool gpu --root /srv/work -- my-agent --file {prompt_file}
        turngate runner --scenario play.yaml      agents that follow a script, to try things out
        """,
    )
    parser.add_argument(
        "--pool", action="append", type=utf8, metavar="P", help="pool to take roles of; repeatable [TURNGATE_POOL]"
    )
    parser.add_argument(
        "--role", action="append", choices=ROLES, metavar="R", help=f"{', '.join(ROLES)}; repeatable (default: all)"
    )
    _add_agent(parser)
    parser.add_argument("--slots", type=whole_number, default=1, metavar="N", help="agents at once (default 1)")
    parser.add_argument(
        "--drain", type=whole_number, default=10, metavar="S", help="seconds that agents get to finish (default 10)"
    )
    parser.add_argument("command", nargs="*", metavar="COMMAND", help="the agent's command line, after --")
    add_settings(
        parser,
        *("nats_url", *LOGIN_KEYS, "namespace", "connect_timeout_ms", "identity"),
        *("clock_offset_ms", "log_level", "log_format"),
    )
    parser.runs(_run)


def _add_agent(parser: Parser) -> None:
    parser.add_argument(
        "--output", choices=OUTPUTS, default="plain", metavar="KIND", help=f"{', '.join(OUTPUTS)} (default plain)"
    )
    parser.add_argument(
        "--allow-env",
        action="append",
        default=[],
        metavar="NAME",
        help="environment variable that agents may see, beside PATH, HOME and the like; repeatable",
    )
    parser.add_argument(
        "--root",
        action="append",
        type=Path,
        default=[],
        metavar="DIR",
        help="directory below which agents may work, and whose files it answers for; repeatable (default: anywhere)",
    )
    parser.add_argument(
        "--work-dir",
        type=Path,
        metavar="DIR",
        help="where agents work whose objective names no directory (default: the first root, or here)",
    )
    parser.add_argument("--scenario", type=Path, metavar="FILE", help="instead of a COMMAND: a YAML script of answers")


def default_runner(host: str, pid: int) -> str:
    """Return the id of a runner that nobody gave one: no other process has it."""
    return f"{id_of(host, 'runner')}-{pid}"


def _run(args: argparse.Namespace) -> int:
    settings = load(args, os.environ, Path.cwd())
    adapter = _adapter(args)
    roots = _roots(args)
    from turngate import process
    from turngate.logs import set_up_logging

    set_up_logging(settings.log_level, settings.log_format)

    async def main() -> None:
        await _serve(args, settings, adapter, roots, process.Ending())

    process.run(main())
    return OK


def _adapter(args: argparse.Namespace) -> "Adapter":
    if bool(args.command) == (args.scenario is not None):
        raise UsageError("give the agent's command line after --, such as `-- my-agent --task -`, or a --scenario FILE")
    if args.command:
        from turngate.runner.adapters.command import CommandAdapter

        return CommandAdapter(args.command, output=args.output, allowed=args.allow_env)
    from turngate.runner.adapters.scripted import ScriptedAdapter
    from turngate_contracts.errors import InvalidMessage

    try:
        return ScriptedAdapter.from_file(args.scenario)
    except OSError as error:
        raise UsageError(f"{args.scenario} can't be read: {error.strerror}; name another file") from None
    except (InvalidMessage, UnicodeDecodeError) as error:
        raise UsageError(f"{args.scenario}: {error}") from None


def _roots(args: argparse.Namespace) -> list[Path]:
    """Check the directories; also go to where agents work that are told of no other place."""
    for path in (*args.root, *([args.work_dir] if args.work_dir else ())):
        if not path.is_dir():
            raise UsageError(f"{path} is no directory; make it, or name another")
    roots = [path.resolve() for path in args.root]
    if args.work_dir is not None:
        work_dir = args.work_dir.resolve()
        if roots and not any(work_dir.is_relative_to(root) for root in roots):
            raise UsageError(f"--work-dir {args.work_dir} is below no --root; agents could not work there")
        if not roots:
            os.chdir(work_dir)
        elif work_dir != roots[0]:
            # The host takes the first root for those that name none.
            roots.insert(0, work_dir)
    return roots


async def _serve(
    args: argparse.Namespace, settings: "Settings", adapter: "Adapter", roots: list[Path], ending: "Ending"
) -> None:
    from turngate.clock import system_clock
    from turngate.runner.host import RunnerHost
    from turngate_protocol.esm.objective import Role

    host = RunnerHost(
        settings.identity or settings.login().identity() or default_runner(socket.gethostname(), os.getpid()),
        adapter,
        pools=dict.fromkeys(args.pool or [settings.pool]),
        roles=[Role(name) for name in dict.fromkeys(args.role or ROLES)],
        roots=roots,
        slots=args.slots,
        url=settings.nats_url,
        namespace=settings.namespace,
        connect_timeout_ms=settings.connect_timeout_ms,
        login=settings.login(),
        drain_ms=args.drain * _MS,
        clock=system_clock(settings.clock_offset_ms),
    )
    await host.start()
    try:
        if roots:
            # The conclusions of tasks that ran here cite files of this host.
            await host.client.serve_stat(roots)
        await _until_ending(host, settings, ending)
    finally:
        finished = await host.stop()
    if not finished:
        sys.stderr.write("turngate: some agents did not stop; others will find out and go on\n")


async def _until_ending(host: "RunnerHost", settings: "Settings", ending: "Ending") -> None:
    import asyncio
    import logging

    from turngate.logs import without_secrets
    from turngate.process import ConnectionClosed

    log = logging.getLogger(__name__)
    log.setLevel(logging.INFO)  # scripts and supervisors wait for the next line, whatever the level is
    url = without_secrets(settings.nats_url)
    roles = [role.value for role in host.roles]
    facts = {"ready": [host.identity], "pools": list(host.pools), "roles": roles, "slots": host.slot_count, "url": url}
    log.info(
        "ready: %s takes %s of %s on %s, namespace %s",
        host.identity,
        ", ".join(roles),
        ", ".join(host.pools),
        url,
        settings.namespace,
        extra={"facts": facts},
    )
    closed = host.client.connection.closed_for_good
    waits = [asyncio.create_task(event.wait()) for event in (ending.wanted, closed)]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in waits:
            task.cancel()
    if not ending.wanted.is_set():
        raise ConnectionClosed(str(host.client.connection.last_error or "no reason given"))
    log.info("draining: %s; %d agents run", ending.reason, len(host.held))
