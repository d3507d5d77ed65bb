"""`turngate restore`: put a backup into a server that nothing runs on."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from turngate.cli.commands import OK, Parser
from turngate.cli.connected import add_connection, with_connection

if TYPE_CHECKING:
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
        """,
        """
        turngate restore /backups/monday
        turngate restore --replace --replicas 3 /backups/monday
        """,
    )
    parser.add_argument("directory", type=Path, metavar="DIR")
    parser.add_argument("--replace", action="store_true", help="delete the streams that the server has")
    parser.add_json("the manifest of what was restored")
    add_connection(parser, "durability", "replicas")
    parser.runs(_run)


def _run(args: argparse.Namespace) -> int:
    async def work(_connection: "Connection", requester: "Requester", settings: "Settings") -> int:
        from turngate.backup.restore import restore
        from turngate.cli.backup import Told, show

        topology = settings.topology()
        manifest = await restore(requester, topology, args.directory, Told(), replace=args.replace)
        show(args, manifest, "restored from")
        return OK

    return with_connection(args, work)
