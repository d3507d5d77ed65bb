"""`turngate hook`: the command that agents' command lines run after each tool and when they stop."""

import argparse
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from turngate.cli.commands import NOT_OK, OK, Parser
from turngate.cli.connected import add_connection

if TYPE_CHECKING:
    from turngate.bridges.hook.decode import HookEvent
    from turngate.bridges.hook.gate import Decision

GO_ON: Final = 2
"""The exit code by which a hook tells its agent to go on."""
_CHUNK: Final = 1024 * 1024


def add_arguments(parser: Parser) -> None:
    """Add the arguments of `turngate hook`."""
    # Exit code 2 has a meaning of its own here: a mistake in the configuration must not keep an agent from stopping.
    parser.usage_exit = NOT_OK
    parser.explain(
        """
        Run by the hooks of Claude Code, Codex, Gemini CLI, Cursor, Goose and opencode, with
        their event as JSON on standard input. After a tool it writes down that the turn used
        it, and whether that may have changed something. When the agent stops it asks the gate
        whether the turn owes a report; if so the agent is told to report, by exit code 2 and
        standard error, or as Cursor expects it. When a subagent stops that called `conclude`,
        its task is told as finished. docs/agents shows the configuration.

        Whatever goes wrong lets the agent stop, with exit code 1 and a sentence.
        """,
        """
        turngate hook < event.json
        turngate hook --read-only 'mcp__docs__*'
        turngate hook --if-away block
        """,
    )
    parser.add_argument("--session", default="", metavar="ID", help="the session [TURNGATE_SESSION]")
    parser.add_argument(
        "--read-only",
        action="append",
        default=[],
        metavar="PATTERN",
        help="tools that change nothing, beside the known ones; with * and ?; repeatable",
    )
    parser.add_argument(
        "--if-away",
        choices=("allow", "block"),
        default="allow",
        help="what a stop does that can't be judged because the services are away: allow it (default), or send the "
        "agent on once",
    )
    add_connection(parser, "identity", "pool")
    parser.runs(_run)


def _run(args: argparse.Namespace) -> int:
    from turngate.bridges import conclusions
    from turngate.bridges.hook.decode import Kind, NotAnEvent, decode
    from turngate.bridges.hook.records import directories_of, record, session_of
    from turngate.bridges.names import NotASession
    from turngate.bridges.places import Places, agents_directory

    try:
        event = decode(_read())
        if event.kind is Kind.OTHER or event.interrupted:
            return OK
        places = Places(agents_directory(os.environ))
        directories = directories_of(event, os.environ, Path.cwd())
        session = session_of(event, args.session, os.environ, places, directories)
        directory = places.of_session(session)
        if event.kind is Kind.TOOL:
            record(event, directory, time.time(), args.read_only)
            return OK
        if event.kind is Kind.SUBAGENT_STOP and conclusions.of_agent(directory, event.agent) is None:
            return OK
    except (NotAnEvent, NotASession) as error:
        return _complain(str(error))
    except OSError as error:
        return _complain(f"{error.filename or 'a file'}: {error.strerror}")
    return _stop(args, event, session, directory, directories[0])


def _read() -> bytes:
    """Return what is on standard input, cut one byte over the limit; the rest is taken too, or its writer breaks."""
    from turngate.bridges.hook.decode import MAX_BYTES

    if sys.stdin is None:  # it was closed before this process began
        return b""
    data = sys.stdin.buffer.read(MAX_BYTES + 1)
    while len(data) > MAX_BYTES and sys.stdin.buffer.read(_CHUNK):
        pass
    return data


def _stop(args: argparse.Namespace, event: "HookEvent", session: str, directory: Path, work_dir: Path) -> int:
    try:
        decision = _decision(args, event, session, directory, work_dir.resolve())
    except Exception as error:  # noqa: BLE001  whatever it is, the agent may stop
        return _let_go(args, event, error)
    if decision.note:
        sys.stderr.write(f"turngate: {decision.note}\n")
    return _send_on(event, decision.go_on) if decision.go_on else OK


def _decision(
    args: argparse.Namespace, event: "HookEvent", session: str, directory: Path, work_dir: Path
) -> "Decision":
    from turngate.cli.connected import quiet_settings

    settings = quiet_settings(args)
    import asyncio

    from turngate.bridges.hook.gate import decide
    from turngate.cli.agents import identity_of
    from turngate.runner import TurnClient

    async def main() -> "Decision":
        client = await TurnClient.connect(
            identity_of(settings),
            pool=settings.pool,
            url=settings.nats_url,
            namespace=settings.namespace,
            timeout_ms=settings.connect_timeout_ms,
            login=settings.login(),
        )
        async with client:
            return await decide(client, event, session, directory, work_dir)

    return asyncio.run(main())


def _let_go(args: argparse.Namespace, event: "HookEvent", error: Exception) -> int:
    from turngate.bridges.hook.decode import Kind
    from turngate.cli.failures import explain
    from turngate_contracts.errors import Unavailable

    sentence = explain(error).sentence
    away = isinstance(error, Unavailable) and event.kind is Kind.STOP
    if away and args.if_away == "block" and not event.again:
        return _send_on(
            event,
            f"The turn's end could not be judged: {sentence}. If this turn owes a report, call Report, then stop.",
        )
    return _complain(f"the turn's end was not judged, and the agent may stop: {sentence}")


def _send_on(event: "HookEvent", reason: str) -> int:
    """Tell the agent to go on, as its program wants to hear it."""
    from turngate.bridges.hook.decode import Dialect

    if event.dialect is Dialect.CURSOR:
        import json

        sys.stdout.write(json.dumps({"followup_message": reason}) + "\n")
        return OK
    sys.stderr.write(f"{reason}\n")
    return GO_ON


def _complain(sentence: str) -> int:
    sys.stderr.write(f"turngate hook: {sentence}\n")
    return NOT_OK
