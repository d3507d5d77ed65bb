"""`turngate up`: a NATS server as a child, the topology, and all services, here and now, until Ctrl-C."""

import argparse
import asyncio
import logging
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from turngate.cli import up_secure
from turngate.cli.auth import directory_of
from turngate.cli.commands import OK, Parser, UsageError, whole_number
from turngate.cli.config import add_settings, load
from turngate.cli.keys import CONCLUSION_KEYS, CONSOLE_KEYS, MONITOR_KEYS, SUPERVISOR_KEYS
from turngate.cli.serve import add_regression, children_of
from turngate.registry import CONSOLE, EVERY, missing

if TYPE_CHECKING:
    from turngate.jetstream.embedded import EmbeddedServer
    from turngate.process import Ending
    from turngate.settings import Settings

log = logging.getLogger(__name__)

_SERVER_CHECK_S = 1.0
_OPEN_STEPS = (
    "  turngate turn submit s1 1 report.json   end turn 1 of session s1 with a report",
    "  turngate runner -- my-agent --task -    run agents for the roles of objectives",
    "  turngate esm create s2 'Do all of it'   give session s2 an objective; then: turngate esm watch s2",
    "  turngate inbox                          what waits for a person",
    "  turngate events tail                    what happens, as it happens",
    "  turngate doctor                         what is wrong, and what to do",
)


def add_arguments(parser: Parser) -> None:
    """Add the arguments of `turngate up`."""
    parser.explain(
        """
        Start nats-server as a child on 127.0.0.1, make the streams, and run all services
        in this process. It says what to do next and runs until Ctrl-C or SIGTERM, which
        drain it. The data stays in --state-dir (default: $XDG_STATE_HOME/turngate, else
        ~/.local/state/turngate), and the next start goes on with it. The server ends with
        this process, however that ends; a server that ends by itself is started again.
        """,
        """
        turngate up
        turngate up --port 0 --state-dir ./state --durability relaxed
        turngate up --validation 4          four processes share the validation
        turngate up --console-port 0        the console on a free port
        turngate up --secure --tls          with identities, permissions and TLS
        turngate up --json                  one line of JSON when it is ready, for scripts
        """,
    )
    parser.add_argument(
        "--validation", type=whole_number, default=1, metavar="N", help="how many processes validate (default 1)"
    )
    parser.add_argument(
        "--secure",
        action="store_true",
        help="let in only those who have an identity: makes what is missing, see `turngate auth`",
    )
    parser.add_argument(
        "--tls", action="store_true", help="with --secure: speak TLS, with a certificate made by openssl"
    )
    parser.add_json("where it is, as one line of JSON once it is ready")
    add_regression(parser)
    names = ("server_port", "state_dir", "namespace", "durability", "retention_days", "bucket_mib")
    own = ("mode", "max_blocks", "window", "console", *CONCLUSION_KEYS, *CONSOLE_KEYS, *SUPERVISOR_KEYS)
    add_settings(parser, *names, *own, *MONITOR_KEYS)
    parser.runs(_run)


def default_state_dir() -> Path:
    """Return where the data is kept when nobody says where."""
    base = os.environ.get("XDG_STATE_HOME", "")
    # The XDG specification: a path that is not absolute is to be ignored.
    return (Path(base) if base.startswith("/") else Path.home() / ".local" / "state") / "turngate"


def state_dir_of(settings: "Settings") -> Path:
    """Return where the data is kept, by the settings or where nobody says it."""
    return (Path(settings.state_dir).expanduser() if settings.state_dir else default_state_dir()).absolute()


def _run(args: argparse.Namespace) -> int:
    settings = load(args, os.environ, Path.cwd())
    from msgspec.structs import replace

    from turngate import process
    from turngate.jetstream.embedded import EmbeddedServer
    from turngate.logs import set_up_logging
    from turngate_contracts.topology import Durability

    set_up_logging(settings.log_level, settings.log_format)
    state_dir = state_dir_of(settings)
    strict = settings.durability is Durability.STRICT
    settings, extra = _secured(replace(settings, state_dir=str(state_dir)), args)
    known = up_secure.stamp(directory_of(settings).config_file)
    port = settings.server_port or None
    with EmbeddedServer(state_dir, port=port, sync_always=strict, extra_config=extra) as server:
        process.run(_serve(server, settings, args, known))
    return OK


def _secured(settings: "Settings", args: argparse.Namespace) -> "tuple[Settings, str]":
    if args.secure:
        return up_secure.secure(settings, tls=args.tls)
    if args.tls:
        raise UsageError("--tls is for --secure: give both, or neither")
    up_secure.refuse_unsecured(Path(settings.state_dir))
    return settings, ""


async def _serve(
    server: "EmbeddedServer", settings: "Settings", args: argparse.Namespace, known: tuple[int, int]
) -> None:
    from msgspec.structs import replace

    from turngate import process

    ending = process.Ending()
    settings = replace(settings, nats_url=server.url)
    console = _console(settings)
    if console:
        settings = replace(settings, console_port=console)
    names = [name for name in EVERY if name != CONSOLE or console]
    children = children_of("validation", args.validation - 1, up_secure.of_service(settings, "validation"))
    keepers = [asyncio.create_task(_keep_running(server, ending), name="turngate-server-keeper")]
    if args.secure:
        following = up_secure.follow_changes(server, directory_of(settings).config_file, known)
        keepers.append(asyncio.create_task(following, name="turngate-identities"))

    def on_ready() -> None:
        _say(server, settings, args.json, serves_console=bool(console))

    try:
        accepts = args.accept_regression
        await process.serve(settings, names, ending, children=children, on_ready=on_ready, accept_regression=accepts)
    finally:
        for keeper in keepers:
            keeper.cancel()
        await asyncio.gather(*keepers, return_exceptions=True)


def _console(settings: "Settings") -> int:
    """Return the port that the console is served on, 0 where it is not served."""
    if settings.console == "off":
        return 0
    lacking = missing(CONSOLE)
    if lacking:
        log.warning("no console: it needs %s; install turngate[console] to have it", ", ".join(lacking))
        return 0
    from turngate.console.listening import CannotListen, bind
    from turngate.settings import DEFAULT_CONSOLE_PORT

    try:
        with bind(settings.console_host, settings.console_port) as found:
            return int(found.getsockname()[1])
    except CannotListen:
        # Nobody chose this port, so another one is as good; who chose one wants that one and no other.
        if settings.console_port != DEFAULT_CONSOLE_PORT:
            raise
    with bind(settings.console_host, 0) as found:
        return int(found.getsockname()[1])


async def _keep_running(server: "EmbeddedServer", ending: "Ending") -> None:
    from turngate.jetstream.embedded import EmbeddedServerError

    while True:
        await asyncio.sleep(_SERVER_CHECK_S)
        if server.running:
            continue
        log.error("nats-server ended by itself; it is started again, and its log is %s", server.log_file)
        try:
            # Started on its own port again, so every connection finds it.
            await asyncio.to_thread(server.start)
        except (EmbeddedServerError, OSError) as error:
            ending.fail(error)
            return


def _say(server: "EmbeddedServer", settings: "Settings", as_json: bool, *, serves_console: bool) -> None:
    facts: dict[str, Any] = {
        "url": server.url,
        "namespace": settings.namespace,
        "durability": settings.durability.value,
        "state_dir": str(server.state_dir),
        "pid": os.getpid(),
        "server_pid": server.pid,
    }
    if serves_console:
        from turngate.console.places import url_of

        facts["console"] = url_of(settings.console_host, settings.console_port)
    secured = up_secure.next_steps(settings) if settings.nats_seed_file else []
    if settings.nats_seed_file:
        facts["auth"] = str(directory_of(settings).path)
        facts["tls_ca"] = settings.tls_ca
    if as_json:
        from turngate.cli.output import print_json

        print_json(facts)
    else:
        sys.stdout.write(_next_steps(facts, secured))
    sys.stdout.flush()


_LOG_IN: Final = "It asks for a token: turngate console token add NAME --role operator --state-dir {}"


def _next_steps(facts: dict[str, Any], secured: list[str]) -> str:
    from turngate.settings import DEFAULT_URL
    from turngate_contracts.subjects import DEFAULT_NAMESPACE
    from turngate_protocol.text import visible

    wanted = {
        "TURNGATE_NATS_URL": (facts["url"], DEFAULT_URL),
        "TURNGATE_NAMESPACE": (facts["namespace"], DEFAULT_NAMESPACE),
    }
    exports = [f"  export {name}={value}" for name, (value, default) in wanted.items() if value != default]
    return "\n".join(
        [
            f"Turngate is up on {facts['url']}, namespace {facts['namespace']}, durability {facts['durability']}.",
            *([f"The console is at {facts['console']}"] if "console" in facts else []),
            *([_LOG_IN.format(visible(facts["state_dir"]))] if secured and "console" in facts else []),
            f"Its data is in {visible(facts['state_dir'])}.",
            "",
            "Next, in another terminal:",
            *exports,
            *(secured or _OPEN_STEPS),
            "",
            "Ctrl-C drains and stops it; the data stays.",
            "",
        ]
    )
