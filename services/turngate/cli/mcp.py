"""`turngate mcp`: the turn tools for any agent that speaks MCP, over standard input and output, or over HTTP."""

import argparse
import importlib.util
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from turngate.cli.agents import PARENT_VARIABLE, RUN_VARIABLE, TASK_VARIABLE, identity_of
from turngate.cli.commands import OK, Parser, UsageError, utf8
from turngate.cli.connected import add_connection

if TYPE_CHECKING:
    from turngate.bridges.mcp.options import Options

DEFAULT_PORT: Final = 8766
CLAUDE_SESSION: Final = "CLAUDE_CODE_SESSION_ID"
"""Where Claude Code tells its MCP servers which of its sessions they serve."""

_MAX_PORT: Final = 65_535


def add_arguments(parser: Parser) -> None:
    """Add the arguments of `turngate mcp`."""
    parser.explain(
        """
        Give an agent the turn tools over the Model Context Protocol: Report, ask_user,
        ask_user_text, conclude, and get_esm and update_esm while its session has an
        objective. Without --http it talks over standard input and output, as agents start
        it by themselves; docs/agents shows their configuration.

        The session is --session, else TURNGATE_SESSION, else the one that the agent's
        program names, else one of the directory. It needs `pip install turngate[mcp]`.
        """,
        """
        turngate mcp
        turngate mcp --session web-1 --nats-url nats://10.0.0.7:4222
        turngate mcp --http --port 8766
        turngate mcp --task task-7 --parent s1      for an agent that was delegated a task
        """,
    )
    parser.add_argument("--session", type=utf8, default="", metavar="ID", help="the session [TURNGATE_SESSION]")
    parser.add_argument(
        "--task", type=utf8, default="", metavar="ID", help=f"the delegated task that it works on [{TASK_VARIABLE}]"
    )
    parser.add_argument(
        "--parent", type=utf8, default="", metavar="ID", help=f"the session that delegated it [{PARENT_VARIABLE}]"
    )
    parser.add_argument(
        "--run", dest="role_run", type=utf8, default="", metavar="ID", help=f"the run of an objective [{RUN_VARIABLE}]"
    )
    parser.add_argument(
        "--root", action="append", type=Path, default=[], metavar="DIR", help="answer for files below this too"
    )
    parser.add_argument(
        "--esm",
        choices=("auto", "on", "off"),
        default="auto",
        help="when the objective's tools are listed (default auto: while the session has one to pursue)",
    )
    parser.add_argument(
        "--no-elicitation", action="store_true", help="do not show questions in the client; people answer elsewhere"
    )
    _add_http(parser)
    add_connection(parser, "identity", "pool", "max_blocks", "log_level", "log_format")
    parser.runs(_run)


def _add_http(parser: Parser) -> None:
    group = parser.add_argument_group("HTTP")
    group.add_argument("--http", action="store_true", help="serve streamable HTTP instead, at /mcp, for many clients")
    group.add_argument("--host", default="127.0.0.1", metavar="ADDRESS", help="where to listen (default 127.0.0.1)")
    group.add_argument(
        "--port",
        type=_port,
        default=DEFAULT_PORT,
        metavar="N",
        help=f"the port; 0: a free one (default {DEFAULT_PORT})",
    )
    group.add_argument(
        "--token-file",
        type=Path,
        metavar="FILE",
        help="the token, in a file that is the user's alone (default: TURNGATE_MCP_TOKEN, else one is made)",
    )
    group.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="a name by which clients reach it, as host:port or host:*; repeatable",
    )
    group.add_argument(
        "--allow-origin", action="append", default=[], metavar="URL", help="an origin of pages that may call it"
    )


def _run(args: argparse.Namespace) -> int:
    if importlib.util.find_spec("mcp") is None:
        raise UsageError("the MCP SDK is not installed; run `pip install 'turngate[mcp]'`")
    if args.http:
        _check_http(args)
    options = _options(args)
    import anyio

    from turngate.bridges.mcp.server import TurngateServer

    server = TurngateServer(options)
    if not args.http:
        anyio.run(server.serve_stdio)
        return OK
    from turngate.bridges.mcp import http

    try:
        token, file = http.token_of(args.token_file, os.environ, options.agents)
    except http.TokenUnusable as error:
        raise UsageError(str(error)) from None
    app = http.application(server, token, args.host, args.allow_host, args.allow_origin)
    listening, url = http.listen(args.host, args.port)
    with listening:
        sys.stderr.write(f"ready: {url}, the token is {f'in {file}' if file else 'the given one'}\n")
        sys.stderr.flush()
        anyio.run(http.web_server(app).serve, [listening])
    return OK


def _options(args: argparse.Namespace) -> "Options":
    from turngate.bridges.mcp.options import Options, ShowObjective
    from turngate.bridges.names import NotASession, configured
    from turngate.bridges.places import agents_directory
    from turngate.cli.config import load
    from turngate.logs import set_up_logging
    from turngate_contracts.ids import check_id

    settings = load(args, os.environ, Path.cwd())
    set_up_logging("warning" if settings.log_level == "info" else settings.log_level, settings.log_format)
    try:
        session = configured(args.session, os.environ)
    except NotASession as error:
        raise UsageError(str(error)) from None
    named = {
        "task": args.task or os.environ.get(TASK_VARIABLE, ""),
        "parent": args.parent or os.environ.get(PARENT_VARIABLE, ""),
        "run": args.role_run or os.environ.get(RUN_VARIABLE, ""),
    }
    for name, value in named.items():
        if value:
            check_id(name, value)
    for root in args.root:
        if not root.is_dir():
            raise UsageError(f"--root {root} is no directory; name one that exists")
    return Options(
        url=settings.nats_url,
        identity=identity_of(settings),
        agents=agents_directory(os.environ),
        directory=Path(os.environ.get("CLAUDE_PROJECT_DIR") or Path.cwd()).resolve(),
        namespace=settings.namespace,
        pool=settings.pool,
        connect_timeout_ms=settings.connect_timeout_ms,
        session=session,
        environment_session="" if args.http else os.environ.get(CLAUDE_SESSION, ""),
        roots=tuple(root.resolve() for root in args.root),
        # With keys it is known who answers, and a runner's key may not.
        elicit=not (args.no_elicitation or settings.nats_seed_file or settings.nats_creds_file),
        objective=ShowObjective(args.esm),
        login=settings.login(),
        max_blocks=settings.max_blocks,
        **named,
    )


def _check_http(args: argparse.Namespace) -> None:
    from turngate.bridges.mcp.http import is_loopback

    if not is_loopback(args.host) and not args.allow_host:
        raise UsageError(
            f"--host {args.host} can be reached from elsewhere; name by --allow-host how clients reach it, "
            "such as --allow-host turngate.example:*"
        )


def _port(text: str) -> int:
    if text.isascii() and text.isdigit() and int(text[:6]) <= _MAX_PORT:
        return int(text)
    raise argparse.ArgumentTypeError(f"{ascii(text)[:80]} is no port; use 0 to {_MAX_PORT}")
