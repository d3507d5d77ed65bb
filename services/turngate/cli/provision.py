"""`turngate provision`: make the streams, buckets and consumers of a namespace, or bring them up to date."""

import argparse
import sys
from typing import TYPE_CHECKING

from turngate.cli.commands import OK, Parser
from turngate.cli.connected import add_connection, with_connection

if TYPE_CHECKING:
    from turngate.jetstream.connect import Connection
    from turngate.jetstream.request import Requester
    from turngate.settings import Settings


def add_arguments(parser: Parser) -> None:
    """Add the arguments of `turngate provision`."""
    parser.explain(
        """
        Make what is missing of a namespace's streams, buckets and consumers, and bring up to
        date what is older. `turngate up` and services on a server without identities do this
        by themselves. Where identities are checked only the administrator may: run it with
        the seed of admin before the services are started, and after an upgrade.
        """,
        """
        TURNGATE_NATS_SEED_FILE=auth/seeds/admin.seed turngate provision
        turngate provision --nats-url nats://n1:4222 --replicas 3
        """,
    )
    parser.add_json("{created, updated}")
    add_connection(parser, "durability", "replicas", "retention_days", "bucket_mib", "presence_ms")
    parser.runs(_run)


def _run(args: argparse.Namespace) -> int:
    async def work(_connection: "Connection", requester: "Requester", settings: "Settings") -> int:
        from turngate.cli.output import print_json
        from turngate.jetstream.provision import provision

        made = await provision(requester, settings.topology())
        if args.json:
            print_json(made)
        else:
            created, updated = (", ".join(names) or "nothing" for names in (made.created, made.updated))
            sys.stdout.write(f"created: {created}\nupdated: {updated}\n")
        return OK

    return with_connection(args, work)
