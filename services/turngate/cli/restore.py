"""`turngate restore`: put a backup into a server that nothing runs on."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from turngate.cli.commands import OK, Parser
from turngate.cli.connected import add_connection, connected, quiet_settings

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from turngate.jetstream.connect import Connection
    from turngate.jetstream.request import Requester
    from turngate.settings import Settings


def add_arguments(parser: Parser) -> None:
    """Add the arguments of `turngate restore`."""
    parser.explain(
        """
        Put the streams of a backup into a server, exactly as they were, and make what else
        the topology needs. Stop all services before: it is refused while one answers.
        Streams that exist are kept, and the restore is refused, unless --replace says that
        they are to be deleted. Started afterwards, the services look at every newest state
        once, make what is missing, and go on.

        The server of `turngate up` ends with its services. With --here it is started for
        the restore alone, on a free port, and ends again: stop `turngate up` before.
        """,
        """
        turngate restore /backups/monday
        turngate restore --replace --replicas 3 /backups/monday
        turngate restore --here --replace /backups/monday     for a system of `turngate up`
        """,
    )
    parser.add_argument("directory", type=Path, metavar="DIR")
    parser.add_argument("--replace", action="store_true", help="delete the streams that the server has")
    parser.add_argument(
        "--here", action="store_true", help="into the data of `turngate up` in --state-dir; no server is connected to"
    )
    parser.add_json("the manifest of what was restored")
    add_connection(parser, "durability", "replicas", "state_dir")
    parser.runs(_run)


def _run(args: argparse.Namespace) -> int:
    settings = quiet_settings(args)

    async def work(_connection: "Connection", requester: "Requester", settings: "Settings") -> int:
        from turngate.backup.restore import restore
        from turngate.cli.backup import Told, show

        topology = settings.topology()
        manifest = await restore(requester, topology, args.directory, Told(), replace=args.replace)
        show(args, manifest, "restored from")
        return OK

    return _in_server_of_up(settings, work) if args.here else connected(settings, work)


def _in_server_of_up(settings: "Settings", work: "Callable[[Connection, Requester, Settings], Awaitable[int]]") -> int:
    """Do `work` in the server that `turngate up` would start, with its identities where it has some."""
    from msgspec.structs import replace

    from turngate.cli import up_secure
    from turngate.cli.up import state_dir_of
    from turngate.jetstream.embedded import EmbeddedServer
    from turngate_contracts.topology import Durability

    state_dir = state_dir_of(settings)
    settings, extra = replace(settings, state_dir=str(state_dir)), ""
    if up_secure.has_identities(state_dir):
        settings, extra = up_secure.secure(settings, tls=False)
    strict = settings.durability is Durability.STRICT
    with EmbeddedServer(state_dir, sync_always=strict, extra_config=extra) as server:
        return connected(replace(settings, nats_url=server.url), work)
