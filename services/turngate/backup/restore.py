"""Putting a backup back, and looking whether it is what was backed up.

Killed in between, the server has some of the streams; the backup is still there, and a restore that replaces them
begins anew. Nothing may run on the namespace meanwhile.
"""

import asyncio
import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from turngate.backup import snapshot
from turngate.backup.create import Progress
from turngate.backup.errors import (
    BackupUnusable,
    RestoreFailed,
    ServicesRunning,
    StreamsInTheWay,
    WrongNamespace,
)
from turngate.backup.manifest import Manifest, StreamFile, check_files, chunks_of, read_manifest
from turngate.backup.plan import left_out, restore_order
from turngate.clock import system_clock
from turngate.jetstream.connect import parse_headers
from turngate.jetstream.provision import TopologyNewer, provision, stream_version
from turngate.jetstream.reconcile import MESSAGE_NOT_FOUND
from turngate.jetstream.request import JetStreamError, Reply, Requester
from turngate.jetstream.watermarks import Watermarks
from turngate_contracts.topology import TOPOLOGY_VERSION, Topology

PING_S: Final = 0.5
"""How long services may take to say that they run."""
SOURCE_HEADER: Final = "Nats-Stream-Source"
"""On a sourced message: the stream and the sequence that it came from."""


async def restore(
    requester: Requester, topology: Topology, directory: Path, progress: Progress, *, replace: bool = False
) -> Manifest:
    """Put a backup's streams into a server, make what else the topology needs, and return the manifest.

    Args:
        requester: the connection's requests.
        topology: the namespace, how many copies of each stream there shall be, and how durable they are.
        directory: the backup.
        progress: told how far it is.
        replace: delete streams that are in the way.

    Raises:
        BackupUnusable, WrongNamespace, TopologyNewer: the backup can't be restored here; nothing was changed.
        StreamsInTheWay, ServicesRunning: the server is not free for it; nothing was changed.
        RestoreFailed: a stream was not restored, or not as it was.
        Unavailable, JetStreamError: the server does not answer, or refused.
    """
    manifest = read_manifest(directory)
    namespace = topology.subjects.namespace
    if manifest.namespace != namespace:
        raise WrongNamespace(manifest.namespace, namespace)
    if manifest.topology > TOPOLOGY_VERSION:
        raise TopologyNewer(str(directory), manifest.topology)
    await asyncio.to_thread(check_files, directory, manifest)
    running = await _running_services(requester, namespace)
    if running:
        raise ServicesRunning(running)
    await _make_room(requester, topology, replace=replace)
    entries = {entry.stream: entry for entry in manifest.streams}
    made = {config["name"]: _as_made(config) for config in topology.streams()}
    for planned in restore_order(topology):
        entry = entries.pop(planned.name, None)
        # A stream that came with a later version than the backup's is made empty by provisioning.
        if entry is not None:
            await _put_back(requester, directory, entry, made[planned.name], progress, exact=not planned.moves)
    if entries:
        raise BackupUnusable(directory, f"{', '.join(entries)} is not part of this version's topology")
    await provision(requester, topology)
    # The highest sequences that were seen may be above what was backed up, and that is known.
    await Watermarks(requester, topology, system_clock()).accept()
    return manifest


def _as_made(config: dict[str, Any]) -> dict[str, Any]:
    """Return what can be chosen only when a stream is made: how many copies, and whether it is stored lazily."""
    return {"num_replicas": config["num_replicas"], "persist_mode": config.get("persist_mode", "default")}


async def _running_services(requester: Requester, namespace: str) -> list[str]:
    names: set[str] = set()

    def on_reply(reply: Reply | Exception) -> bool:
        if isinstance(reply, Reply):
            try:
                name = str(msgspec.json.decode(reply.body, type=dict[str, Any]).get("name", ""))
            except (msgspec.DecodeError, UnicodeDecodeError):
                return True
            if name.startswith(f"{namespace}-"):
                names.add(name.removeprefix(f"{namespace}-"))
        return True

    requester.request_nowait("$SRV.PING", b"", on_reply, timeout_ms=int(PING_S * 1000))
    await asyncio.sleep(PING_S)
    return sorted(names)


async def _make_room(requester: Requester, topology: Topology, *, replace: bool) -> None:
    wanted = [planned.name for planned in restore_order(topology)] + left_out(topology)
    there = [name for name in wanted if await stream_version(requester, name) is not None]
    if there and not replace:
        raise StreamsInTheWay(there)
    # The events first: they must not see their sources go.
    for name in sorted(there, key=lambda name: name != topology.subjects.stream("events")):
        await requester.api(f"STREAM.DELETE.{name}", timeout_ms=30_000)


async def _put_back(
    requester: Requester, directory: Path, entry: StreamFile, made: dict[str, Any], progress: Progress, *, exact: bool
) -> None:
    config = {**entry.snapshot["config"], **made}
    sources = config.pop("sources", None) or []
    progress(entry.stream, 0)
    size = min(snapshot.CHUNK_BYTES, requester.connection.body_limit)
    given = {"config": config, "state": entry.snapshot["state"]}
    state = await snapshot.put_back(requester, entry.stream, given, _counted(directory, entry, size, progress))
    _check(entry, state, exact=exact)
    if sources:
        await _go_on_sourcing(requester, entry.stream, sources)


def _check(entry: StreamFile, state: dict[str, Any], *, exact: bool) -> None:
    """Compare what a stream holds with what the backup has of it.

    The server tells a snapshot's state before it reads the messages: under load, some of those may have gone meanwhile,
    acknowledged or pushed out of their key's history. No key goes, and nothing is added.
    """
    messages, last, subjects = int(state["messages"]), int(state["last_seq"]), int(state.get("num_subjects", 0))
    if last < entry.last_sequence or (exact and last > entry.last_sequence):
        raise RestoreFailed(entry.stream, f"it ends at {last}, the backup at {entry.last_sequence}")
    if exact and messages > entry.messages:
        raise RestoreFailed(entry.stream, f"it holds {messages} messages, the backup {entry.messages}")
    if exact and entry.keeps_keys and subjects != entry.subjects:
        raise RestoreFailed(entry.stream, f"it holds {subjects} keys, the backup {entry.subjects}")


async def _go_on_sourcing(requester: Requester, stream: str, sources: list[dict[str, Any]]) -> None:
    """Have a stream go on with its sources after what it holds of them.

    A server does not look for that in a stream that was restored: it would source everything once more. Where nothing
    of a source is left, it does: an event may come twice, and none is lost.
    """
    for source in sources:
        taken = await _last_sourced(requester, stream, source["subject_transforms"][0]["dest"])
        source.pop("opt_start_seq", None)
        if taken:
            source["opt_start_seq"] = taken + 1
    config = (await requester.api(f"STREAM.INFO.{stream}"))["config"]
    await requester.api(f"STREAM.UPDATE.{stream}", config | {"sources": sources}, timeout_ms=30_000)


async def _last_sourced(requester: Requester, stream: str, subjects: str) -> int:
    try:
        answer = await requester.api(f"STREAM.MSG.GET.{stream}", {"last_by_subj": subjects})
    except JetStreamError as error:
        if error.err_code == MESSAGE_NOT_FOUND:
            return 0
        raise
    fields = parse_headers(base64.b64decode(answer["message"].get("hdrs", "")))[1]
    _, _, rest = fields.get(SOURCE_HEADER, "").partition(" ")
    sequence = rest.partition(" ")[0]
    return int(sequence) if sequence.isdigit() else 0


def _counted(directory: Path, entry: StreamFile, size: int, progress: Progress) -> Iterator[bytes]:
    done = 0
    for chunk in chunks_of(directory, entry, size):
        done += len(chunk)
        progress(entry.stream, done)
        yield chunk
