"""Everything that runs, as far as this identity may see it: runners, services, queues and dead letters."""

import asyncio
from collections.abc import Awaitable
from datetime import datetime
from typing import Any, Final, TypeVar

import msgspec
import nats.errors

from turngate.console.facts import Fleet, SeenQueue, SeenService
from turngate.console.reading import Reader
from turngate.jetstream.connect import Connection
from turngate.jetstream.request import JetStreamError, Requester
from turngate_contracts.dead import DeadPage
from turngate_contracts.errors import ErrorBody, ErrorCode, TurngateError
from turngate_contracts.topology import Topology

T = TypeVar("T")

ANSWER_S: Final = 0.25
"""How long services may take to say that they are there."""
MOST_SERVICES: Final = 500


class _Stats(msgspec.Struct):
    """The part of a micro service's statistics that is shown."""

    class Endpoint(msgspec.Struct):
        num_requests: int = 0
        num_errors: int = 0

    name: str
    id: str
    version: str = ""
    started: str = ""
    endpoints: tuple[Endpoint, ...] | None = ()


async def read_fleet(reader: Reader, connection: Connection, requester: Requester, topology: Topology) -> Fleet:
    """Return everything that runs; what can't be read is named with its reason and hides nothing else.

    Raises:
        Unavailable: the server is away.
    """
    unknown: dict[str, ErrorBody] = {}
    runners, services, queues, dead = await asyncio.gather(
        _or(unknown, "runners", reader.runners(), ()),
        _or(unknown, "services", _services(connection, topology.subjects.namespace), ()),
        _or(unknown, "queues", _queues(requester, topology), ()),
        _or(unknown, "dead", reader.dead(), DeadPage(())),
    )
    return Fleet(runners, services, queues, dead.entries, dead.more, unknown)


async def _or(unknown: dict[str, ErrorBody], part: str, awaited: Awaitable[T], otherwise: T) -> T:
    try:
        return await awaited
    except TurngateError as error:
        unknown[part] = error.body()
    except (JetStreamError, nats.errors.Error) as error:
        unknown[part] = ErrorBody(ErrorCode.UNAVAILABLE, str(error))
    return otherwise


async def _services(connection: Connection, namespace: str) -> tuple[SeenService, ...]:
    inbox = connection.new_inbox()
    found: list[SeenService] = []

    def on_message(_subject: bytes, _reply: bytes, body: bytes, _head: bytes) -> None:
        seen = _service(body, namespace)
        if seen is not None and len(found) < MOST_SERVICES:
            found.append(seen)

    subscription = await connection.listen(inbox, on_message)
    try:
        connection.send("$SRV.STATS", b"", inbox)
        # How many there are is not known: whoever is there answers within this time.
        await asyncio.sleep(ANSWER_S)
    finally:
        await connection.unlisten(subscription)
    return tuple(sorted(found, key=lambda seen: (seen.name, seen.started_at, seen.id)))


def _service(body: bytes, namespace: str) -> SeenService | None:
    try:
        stats = msgspec.json.decode(body, type=_Stats)
        started = int(datetime.fromisoformat(stats.started).timestamp() * 1000) if stats.started else 0
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError):
        return None  # somebody else's service on the same server
    prefix = f"{namespace}-"
    if not stats.name.startswith(prefix):
        return None
    endpoints = stats.endpoints or ()
    requests = sum(endpoint.num_requests for endpoint in endpoints)
    errors = sum(endpoint.num_errors for endpoint in endpoints)
    return SeenService(stats.name.removeprefix(prefix), stats.id, stats.version, started, requests, errors)


async def _queues(requester: Requester, topology: Topology) -> tuple[SeenQueue, ...]:
    async def one(stream: str, config: dict[str, Any]) -> SeenQueue:
        name = config["durable_name"]
        info = await requester.api(f"CONSUMER.INFO.{stream}.{name}")
        return SeenQueue(stream, name, info["num_pending"], info["num_ack_pending"], info["num_redelivered"])

    return tuple(await asyncio.gather(*(one(*each) for each in topology.consumers())))
