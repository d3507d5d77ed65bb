"""`turngate backup`: write a namespace's streams into a directory while everything runs, and check what was written."""

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from turngate.cli.commands import OK, Command, Parser
from turngate.cli.connected import add_connection, quiet_settings, with_connection

if TYPE_CHECKING:
    from turngate.backup.manifest import Manifest
    from turngate.jetstream.connect import Connection
    from turngate.jetstream.request import Requester
    from turngate.settings import Settings

TELL_S: Final = 5.0
"""How often a long stream says how far it is."""


def add_arguments(parser: Parser) -> None:
    """Add the commands below `turngate backup`."""
    parser.explain(
        """
        Back up every stream and bucket of a namespace, with sequences, headers and times,
        while everything goes on. `turngate restore` puts a backup back.
        """,
        """
        turngate backup create /backups/monday
        turngate backup verify /backups/monday
        turngate backup verify --restore /backups/monday
        """,
    )
    parser.add_commands(
        [
            Command("create", "write a backup into a new directory", _create),
            Command("verify", "check that a backup is complete and undamaged; needs no server", _verify),
        ]
    )


def _create(parser: Parser) -> None:
    parser.explain(
        """
        Write a backup into a directory that is new or empty. Services go on meanwhile. The
        directory is a backup once it has a manifest.json, and only its owner can read it.
        """,
        "turngate backup create /backups/monday",
    )
    parser.add_argument("directory", type=Path, metavar="DIR")
    parser.add_json("the manifest")
    add_connection(parser)
    parser.runs(_run_create)


def _verify(parser: Parser) -> None:
    parser.explain(
        """
        Compare every file with the manifest. With --restore, put the backup into a server
        of its own, which is removed again, and look whether everything is there.
        """,
        """
        turngate backup verify /backups/monday
        turngate backup verify --restore /backups/monday
        """,
    )
    parser.add_argument("directory", type=Path, metavar="DIR")
    parser.add_argument("--restore", action="store_true", help="restore it into a temporary server too")
    parser.add_json("the manifest")
    parser.runs(_run_verify)


def _run_create(args: argparse.Namespace) -> int:
    async def work(_connection: "Connection", requester: "Requester", settings: "Settings") -> int:
        from turngate.backup.create import create

        manifest = await create(requester, settings.topology(), args.directory, Told())
        show(args, manifest, "backed up into")
        return OK

    return with_connection(args, work)


def _run_verify(args: argparse.Namespace) -> int:
    from turngate.backup.manifest import check_files, read_manifest

    manifest = read_manifest(args.directory)
    check_files(args.directory, manifest)
    if args.restore:
        quiet_settings(args)
        _restore_elsewhere(args.directory, manifest)
    show(args, manifest, "complete and undamaged in")
    return OK


def _restore_elsewhere(directory: Path, manifest: "Manifest") -> None:
    import asyncio
    import tempfile

    from turngate.backup.restore import restore
    from turngate.jetstream.connect import connect
    from turngate.jetstream.embedded import EmbeddedServer
    from turngate.jetstream.request import Requester
    from turngate_contracts.subjects import Subjects
    from turngate_contracts.topology import Topology

    async def main(url: str) -> None:
        connection = await connect(url, name="turngate-backup-verify")
        requester = await Requester.start(connection)
        try:
            await restore(requester, Topology(Subjects(manifest.namespace)), directory, Told())
        finally:
            await requester.stop()
            await connection.close()

    with (
        tempfile.TemporaryDirectory(prefix="turngate-backup-") as place,
        EmbeddedServer(Path(place) / "server", sync_always=False) as server,
    ):
        asyncio.run(main(server.url))


class Told:
    """Tells on stderr how far a long piece of work is."""

    def __init__(self) -> None:
        self._stream = ""
        self._at = time.monotonic()

    def __call__(self, stream: str, size: int) -> None:
        """Tell of a stream, once some seconds have gone by since the last time."""
        from turngate.terminal import Terminal

        now = time.monotonic()
        if now - self._at >= TELL_S:
            self._at = now
            Terminal(sys.stderr).line(f"{stream}: {_amount(size)} so far")


def show(args: argparse.Namespace, manifest: "Manifest", what: str) -> None:
    """Print what a backup has."""
    from turngate.cli.output import print_json
    from turngate.terminal import Terminal

    if args.json:
        print_json(_summary(manifest))
        return
    terminal = Terminal()
    for entry in manifest.streams:
        held = f"{entry.messages:>10} messages to {entry.last_sequence:<10}"
        terminal.line(f"{entry.stream:<24} {held} {_amount(entry.size)}")
    total = sum(entry.size for entry in manifest.streams)
    terminal.line(f"namespace {manifest.namespace}: {_amount(total)}, {what} {args.directory}")


def _summary(manifest: "Manifest") -> dict[str, Any]:
    import msgspec

    facts: dict[str, Any] = msgspec.to_builtins(manifest)
    for entry in facts["streams"]:
        del entry["snapshot"]
    return facts


def _amount(size: int) -> str:
    return f"{size / 2**20:.1f} MiB" if size >= 2**20 else f"{size / 2**10:.1f} KiB"
