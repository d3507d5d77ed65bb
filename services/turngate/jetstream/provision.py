"""Making a server agree with the topology. Nothing else creates or changes streams and consumers.

Idempotent: run by any number of processes at once, it makes what is missing and updates what is older. A server whose
topology is newer than ours is refused, because our messages might be read wrongly there.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

from msgspec import Struct

from turngate.jetstream.request import JetStreamError, Requester, RequestTimeout
from turngate.jetstream.splitting import SINCE, split, until_sourced
from turngate.jetstream.tightening import before_tightening
from turngate_contracts.errors import ErrorCode, TurngateError
from turngate_contracts.subjects import SPLIT
from turngate_contracts.topology import TOPOLOGY_VERSION, VERSION_KEY, Topology

log = logging.getLogger(__name__)

T = TypeVar("T")

STREAM_NOT_FOUND: Final = 10059
CONSUMER_NOT_FOUND: Final = 10014
NAME_IN_USE: Final = 10058
"""JetStream's err_code for a stream that exists with another configuration."""
API_TIMEOUT_MS: Final = 15_000
TRY_MS: Final = 3_000
PATIENCE_S: Final = 60.0
"""How long a cluster may take to choose the leaders of what was just made; until then it drops or refuses requests."""
PAUSE_S: Final = 0.2
NOT_NOW: Final = frozenset({10008, 10009, 10023, 10118})
"""JetStream's err_codes for: temporarily unavailable, no leader, not enough resources yet, stream is being moved."""
STORE_FAILED: Final = "error creating store for stream"
"""JetStream's description when a stream's folder can't be made; it has no err_code of its own."""
STORE_PATIENCE_S: Final = 2.0
"""How long such a failure may last: with the last stream of an account its folder goes too, some time after the answer,
and a stream that is made in that moment fails. A full disk lasts longer."""


class TopologyNewer(TurngateError):
    """The server holds a topology of a later version of Turngate."""

    code = ErrorCode.UNAVAILABLE

    def __init__(self, stream: str, found: int) -> None:
        super().__init__(
            f"{stream} has topology version {found}, this Turngate knows {TOPOLOGY_VERSION}; "
            "upgrade Turngate, or use another namespace",
            stream=stream,
            found=found,
            known=TOPOLOGY_VERSION,
        )


class TopologyForeign(TurngateError):
    """A stream of that name exists and was not made by Turngate."""

    code = ErrorCode.UNAVAILABLE

    def __init__(self, stream: str) -> None:
        super().__init__(f"stream {stream} was not made by Turngate; use another namespace or remove it", stream=stream)


class TopologyStuck(TurngateError):
    """A stream or consumer can't be changed into what this version needs."""

    code = ErrorCode.UNAVAILABLE

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(
            f"{name} can't be brought to topology version {TOPOLOGY_VERSION}: {reason}; "
            "restore it from a backup into a new namespace, or change what the reason names",
            name=name,
            reason=reason,
        )


class TopologyMissing(TurngateError):
    """The server has no topology of this namespace."""

    code = ErrorCode.UNAVAILABLE

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} does not exist on this server; run `turngate up` or `turngate serve validation`")


class Provisioned(Struct, frozen=True):
    """What provisioning did, by name."""

    created: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()


async def provision(requester: Requester, topology: Topology) -> Provisioned:
    """Make the streams, buckets and consumers of a topology.

    Raises:
        TopologyNewer: the server's is newer than ours.
        TopologyForeign: a stream of that name is somebody else's.
        TopologyStuck: the server refuses a change, with its reason.
        Unavailable: the server did not answer.
    """
    created: list[str] = []
    updated: list[str] = []
    for wanted in topology.streams():
        await _check_stream(requester, wanted["name"])
    for bucket in sorted(SPLIT):
        await _split(requester, topology, bucket)
    for wanted in topology.streams():
        done = await ensure_stream(requester, wanted, topology)
        (created if done == "created" else updated if done == "updated" else []).append(wanted["name"])
    for stream, consumer in topology.consumers():
        await ensure_consumer(requester, stream, consumer)
    return Provisioned(tuple(created), tuple(updated))


async def _split(requester: Requester, topology: Topology, bucket: str) -> None:
    """Give a bucket of a version before SINCE its subjects and move its keys; it has that version until all are moved.

    The bucket is changed first, so that processes of the version before save nothing any more; then the events that
    source it, once they have all that it holds, because what is moved would be new keys to them as they were. A shorter
    age waits for the move: what looks after open states knows the subjects of this version only.
    """
    name = topology.subjects.bucket_stream(bucket)
    found = await _stream_config(requester, name)
    if found is None or _version(found) >= SINCE:
        return
    streams = {wanted["name"]: wanted for wanted in topology.streams()}
    ages = (int(found.get("max_age", 0)), int(streams[name]["max_age"]))
    kept = {"metadata": found["metadata"], "max_age": max(ages) if all(ages) else 0}
    await ensure_stream(requester, streams[name] | kept, topology)
    await until_sourced(requester, topology.subjects, bucket)
    await ensure_stream(requester, streams[topology.subjects.stream("events")], topology)
    try:
        await _patiently(requester, lambda: split(requester, topology.subjects, bucket))
    except JetStreamError as error:
        raise TopologyStuck(f"stream {name}", error.description) from None


async def ensure_consumer(requester: Requester, stream: str, config: dict[str, Any]) -> None:
    """Make a durable consumer, or bring it up to date.

    Raises:
        TopologyMissing: its stream does not exist.
        TopologyStuck, Unavailable: as for `provision`.
    """
    name = config["durable_name"]
    try:
        info = await _ask(requester, f"CONSUMER.INFO.{stream}.{name}")
    except JetStreamError as error:
        if error.err_code == STREAM_NOT_FOUND:
            raise TopologyMissing(stream) from None
        if error.err_code != CONSUMER_NOT_FOUND:
            raise TopologyStuck(f"consumer {name} of {stream}", error.description) from None
    else:
        if _agrees(info["config"], config):
            return
    try:
        await _ask(
            requester,
            f"CONSUMER.DURABLE.CREATE.{stream}.{name}",
            {"stream_name": stream, "config": config},
        )
    except JetStreamError as error:
        raise TopologyStuck(f"consumer {name} of {stream}", error.description) from None


async def stream_version(requester: Requester, stream: str) -> int | None:
    """Return the topology version of a stream: None when it does not exist, 0 when it is not ours."""
    config = await _stream_config(requester, stream)
    return None if config is None else _version(config)


async def ensure_stream(requester: Requester, wanted: dict[str, Any], topology: Topology | None = None) -> str:
    """Make a stream or bring it up to date, and say which: `created`, `updated` or `kept`; raises as `provision`."""
    name = wanted["name"]
    config = await _stream_config(requester, name)
    if config is None:
        if await _create_stream(requester, wanted):
            return "created"
        # Another process made it in this instant, perhaps not as we would.
        await _check_stream(requester, name)
        config = await _stream_config(requester, name) or {}
    if _agrees(config, wanted):
        return "kept"
    # persist_mode can't be changed later: a topology keeps the durability that it was made with.
    changed = {**config, **{k: v for k, v in wanted.items() if k != "persist_mode"}}
    if 0 < wanted.get("max_age", 0) < config.get("duplicate_window", 0):
        # The server made it as long as the age was then, and takes none that is longer.
        changed["duplicate_window"] = wanted["max_age"]
    if "sources" in wanted:
        changed["sources"] = _same_sources(config.get("sources") or [], wanted["sources"])
    try:
        if topology is not None:
            changed |= await before_tightening(requester, topology, config, wanted)
        await _ask(requester, f"STREAM.UPDATE.{name}", changed)
    except JetStreamError as error:
        raise TopologyStuck(f"stream {name}", error.description) from None
    log.info("stream %s was brought to topology version %d", name, TOPOLOGY_VERSION)
    return "updated"


async def _ask(requester: Requester, name: str, body: Any = None) -> dict[str, Any]:
    """Call JetStream's API, as `_patiently`."""
    return await _patiently(requester, lambda: requester.api(name, body, timeout_ms=TRY_MS))


async def _patiently(requester: Requester, ask: Callable[[], Awaitable[T]]) -> T:
    """Ask again while the server is not ready to answer; whatever is asked here may be repeated."""
    loop = asyncio.get_running_loop()
    deadline, store_deadline = loop.time() + PATIENCE_S, 0.0
    while True:
        try:
            return await ask()
        except RequestTimeout:
            if loop.time() >= deadline:
                raise
        except JetStreamError as error:
            if error.description == STORE_FAILED:
                # From the first such failure on: a slow or lost answer before it is no reason to give up.
                store_deadline = store_deadline or loop.time() + STORE_PATIENCE_S
                if loop.time() >= store_deadline:
                    raise
            else:
                clustered = bool(requester.connection.server_info.get("cluster"))
                if not clustered or error.err_code not in NOT_NOW or loop.time() >= deadline:
                    raise
        await asyncio.sleep(PAUSE_S)


async def _check_stream(requester: Requester, name: str) -> None:
    version = await stream_version(requester, name)
    if version == 0:
        raise TopologyForeign(name)
    if version is not None and version > TOPOLOGY_VERSION:
        raise TopologyNewer(name, version)


async def _stream_config(requester: Requester, name: str) -> dict[str, Any] | None:
    try:
        info = await _ask(requester, f"STREAM.INFO.{name}")
    except JetStreamError as error:
        if error.err_code == STREAM_NOT_FOUND:
            return None
        raise TopologyStuck(f"stream {name}", error.description) from None
    config: dict[str, Any] = info["config"]
    return config


def _same_sources(found: list[dict[str, Any]], wanted: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the wanted sources with what else the server has of them: where a restored one goes on is part of it."""
    there = {source["name"]: source for source in found}
    return [{**there.get(source["name"], {}), **source} for source in wanted]


def _version(config: dict[str, Any]) -> int:
    version = str((config.get("metadata") or {}).get(VERSION_KEY, ""))
    return int(version) if version.isdecimal() else 0


async def _create_stream(requester: Requester, wanted: dict[str, Any]) -> bool:
    name = wanted["name"]
    if "sources" in wanted and requester.connection.server_info.get("cluster"):
        # A reader sees a restart of the server that it is connected to, and here that may be another than the stream's.
        wanted = {field: value for field, value in wanted.items() if field != "persist_mode"}
    try:
        await _ask(requester, f"STREAM.CREATE.{name}", wanted)
    except JetStreamError as error:
        if error.err_code == NAME_IN_USE:
            return False
        reason = error.description
        if reason == STORE_FAILED:
            reason += " (the server's log says why; most often its disk is full or can't be written)"
        raise TopologyStuck(f"stream {name}", reason) from None
    return True


def _agrees(found: dict[str, Any], wanted: dict[str, Any]) -> bool:
    """Say whether what the server has holds all that we want; it adds fields of its own."""
    for field, value in wanted.items():
        there = found.get(field)
        if field == "persist_mode":
            continue
        if isinstance(value, dict):
            if not _agrees(there or {}, value):
                return False
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            there = there or []
            if len(there) != len(value) or not all(_agrees(a, b) for a, b in zip(there, value, strict=True)):
                return False
        elif there != value and not (there is None and value in (False, 0, "")):
            return False
    return True
