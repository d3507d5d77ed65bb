"""Commands that talk to a server: their settings, who they act as, and their connection."""

import argparse
import os
import re
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from turngate.cli.commands import Parser
from turngate.cli.config import add_settings, load
from turngate.cli.keys import LOGIN_KEYS

if TYPE_CHECKING:
    from turngate.jetstream.connect import Connection
    from turngate.jetstream.request import Requester
    from turngate.runner import TurnClient
    from turngate.settings import Settings

_NO_ID: Final = re.compile(r"[^A-Za-z0-9_-]", re.ASCII)


def add_connection(parser: Parser, *more: str) -> None:
    """Add the settings of a command that talks to a server, and `more`."""
    add_settings(parser, "nats_url", *LOGIN_KEYS, "namespace", "connect_timeout_ms", *more)


def default_identity(environment: Mapping[str, str]) -> str:
    """Return who a command acts as when nobody says: the user, written as an id."""
    name = environment.get("USER") or environment.get("LOGNAME") or environment.get("USERNAME") or "cli"
    return id_of(name, "cli")


def id_of(name: str, otherwise: str) -> str:
    """Return a name written as an id; `otherwise` where nothing of it is left."""
    return _NO_ID.sub("-", name)[:64] or otherwise


def with_client(args: argparse.Namespace, work: "Callable[[TurnClient], Awaitable[int]]") -> int:
    """Connect as the user, do `work`, and return its exit code."""
    settings = quiet_settings(args)
    import asyncio

    from turngate.runner import TurnClient

    async def main() -> int:
        client = await TurnClient.connect(
            settings.identity or settings.login().identity() or default_identity(os.environ),
            pool=settings.pool,
            url=settings.nats_url,
            namespace=settings.namespace,
            timeout_ms=settings.connect_timeout_ms,
            login=settings.login(),
        )
        async with client:
            return await work(client)

    return asyncio.run(main())


def with_connection(
    args: argparse.Namespace, work: "Callable[[Connection, Requester, Settings], Awaitable[int]]"
) -> int:
    """Connect without acting as anybody, do `work`, and return its exit code."""
    return connected(quiet_settings(args), work)


def connected(settings: "Settings", work: "Callable[[Connection, Requester, Settings], Awaitable[int]]") -> int:
    """Connect as the settings say without acting as anybody, do `work`, and return its exit code."""
    import asyncio

    from turngate.jetstream.connect import connect
    from turngate.jetstream.request import Requester

    async def main() -> int:
        connection = await connect(
            settings.nats_url,
            name="turngate-cli",
            timeout_ms=settings.connect_timeout_ms,
            login=settings.login(),
        )
        requester = await Requester.start(connection)
        try:
            return await work(connection, requester, settings)
        finally:
            await requester.stop()
            await connection.close()

    return asyncio.run(main())


def quiet_settings(args: argparse.Namespace) -> "Settings":
    """Return a command's settings, and keep its libraries from writing between what it prints."""
    settings = load(args, os.environ, Path.cwd())
    from turngate.logs import set_up_logging, silence

    if settings.log_level == "debug":
        set_up_logging("debug", settings.log_format)
    else:
        silence()
    return settings
