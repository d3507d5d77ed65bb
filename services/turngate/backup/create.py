"""Making a backup, while everything goes on.

Killed in between, the directory has no manifest and is no backup; the server forgets a snapshot that nobody confirms.
"""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

from turngate import __version__
from turngate.backup import snapshot
from turngate.backup.manifest import (
    FORMAT,
    Manifest,
    SnapshotWriter,
    StreamFile,
    check_files,
    make_directory,
    write_manifest,
)
from turngate.backup.plan import Planned, plan
from turngate.jetstream.provision import TopologyMissing, TopologyNewer, stream_version
from turngate.jetstream.request import Requester
from turngate_contracts.topology import TOPOLOGY_VERSION, Topology

Progress = Callable[[str, int], None]
"""Told a stream and how many bytes of it there are so far."""


async def create(requester: Requester, topology: Topology, directory: Path, progress: Progress) -> Manifest:
    """Write a backup of a namespace into a new directory, read it again, and return its manifest.

    Raises:
        DirectoryInUse: there is something in the directory.
        TopologyMissing, TopologyNewer: the server has not what this version knows.
        SnapshotFailed: a stream could not be read to its end.
        Unavailable, JetStreamError: the server does not answer, or refused.
        OSError: the disk refused.
    """
    began = _now()
    await _check_topology(requester, topology)
    make_directory(directory)
    streams = [await _take(requester, planned, directory, progress) for planned in plan(topology)]
    server = str(requester.connection.server_info.get("version", ""))
    manifest = Manifest(
        FORMAT, __version__, TOPOLOGY_VERSION, server, topology.subjects.namespace, began, _now(), tuple(streams)
    )
    await asyncio.to_thread(check_files, directory, manifest)
    write_manifest(directory, manifest)
    return manifest


async def _check_topology(requester: Requester, topology: Topology) -> None:
    for planned in plan(topology):
        version = await stream_version(requester, planned.name)
        if version is None:
            raise TopologyMissing(planned.name)
        if version > TOPOLOGY_VERSION:
            raise TopologyNewer(planned.name, version)


async def _take(requester: Requester, planned: Planned, directory: Path, progress: Progress) -> StreamFile:
    writer = SnapshotWriter(directory, planned.name)

    def write(chunk: bytes) -> None:
        writer.write(chunk)
        progress(planned.name, writer.size)

    progress(planned.name, 0)
    try:
        taken = await snapshot.take(requester, planned.name, write, consumers=planned.consumers)
        digest = await asyncio.to_thread(writer.finish)
    finally:
        writer.abandon()
    state = taken["state"]
    return StreamFile(
        planned.name,
        writer.path.name,
        writer.size,
        digest,
        int(state["messages"]),
        int(state.get("num_subjects", 0)),
        planned.from_states,
        int(state["first_seq"]),
        int(state["last_seq"]),
        taken,
    )


def _now() -> int:
    return int(time.time() * 1000)
