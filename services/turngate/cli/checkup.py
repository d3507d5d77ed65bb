"""What `turngate doctor` looks at: a list of checks, each with what it found and what to do about it.

It changes nothing and needs no service. Every check runs, whatever the others found; one that gets no answer says so.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct

from turngate import __version__
from turngate.cli.checkup_safety import check_dead, check_durability, check_payload, check_sequences
from turngate.cli.checkup_streams import check_backlog, check_events, check_topology, look
from turngate.cli.findings import FAIL, OK, WARN, Check
from turngate.jetstream.request import JetStreamError, Reply
from turngate.registry import SERVICES
from turngate_contracts.errors import TurngateError
from turngate_protocol.spans import span

if TYPE_CHECKING:
    from turngate.cli.checkup_streams import Topography
    from turngate.jetstream.connect import Connection
    from turngate.jetstream.request import Requester
    from turngate_contracts.topology import Topology

OLDEST_SERVER: Final = (2, 12)
"""The first nats-server with message schedules and atomic batches."""
CLOCK_WARN_MS: Final = 2_000
PING_S: Final = 0.5


class Checkup(Struct, frozen=True):
    """Everything that was found; `ok` unless a check failed."""

    ok: bool
    url: str
    namespace: str
    checks: list[Check]
    streams: list[dict[str, Any]]
    consumers: list[dict[str, Any]]


class _Examined(Struct, frozen=True):
    connection: "Connection"
    requester: "Requester"
    topology: "Topology"
    topography: "Topography"


async def examine(connection: "Connection", requester: "Requester", topology: "Topology", url: str) -> Checkup:
    """Run every check of one namespace on one server or cluster."""
    topography = await look(requester, topology)
    everything = _Examined(connection, requester, topology, topography)
    checks: list[Check] = []
    for name, check in _CHECKS:
        try:
            checks += await check(everything)
        except (TurngateError, JetStreamError) as error:
            checks.append(Check(name, FAIL, str(error), "look into the NATS server's log"))
    ok = all(check.status != FAIL for check in checks)
    namespace = topology.subjects.namespace
    return Checkup(ok, url, namespace, checks, topography.stream_rows(), topography.consumer_rows())


async def _server(on: _Examined) -> list[Check]:
    info = on.connection.server_info
    version = str(info.get("version", "unknown"))
    away_ms = on.topography.round_trip_ms
    facts = {"version": version, "name": info.get("server_name", ""), "round_trip_ms": round(away_ms, 2)}
    says = f"nats-server {version}, {away_ms:.1f} ms away"
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    if numbers < OLDEST_SERVER:
        wanted = ".".join(map(str, OLDEST_SERVER))
        return [Check("server", FAIL, f"{says}, is too old", f"upgrade nats-server to {wanted} or newer", facts)]
    return [Check("server", OK, says, facts=facts), check_payload(on.connection)]


async def _jetstream(on: _Examined) -> list[Check]:
    account = on.topography.account
    if account is None:
        return [Check("jetstream", FAIL, "JetStream is off for this account", "start nats-server with JetStream (-js)")]
    limit = int(account.get("limits", {}).get("max_storage", -1))
    used = int(account.get("storage", 0))
    facts = {"storage": used, "max_storage": limit, "streams": account.get("streams", 0)}
    says = f"{used / 2**20:.1f} MiB stored in {facts['streams']} streams"
    if limit > 0 and used > 0.8 * limit:
        return [Check("jetstream", WARN, f"{says}, of {limit / 2**20:.0f} MiB", "give the account more storage", facts)]
    return [Check("jetstream", OK, says, facts=facts)]


async def _topology(on: _Examined) -> list[Check]:
    return check_topology(on.topography, on.topology)


async def _services(on: _Examined) -> list[Check]:
    namespace = on.topology.subjects.namespace
    replies: list[Reply] = []

    def on_reply(reply: Reply | Exception) -> bool:
        if isinstance(reply, Reply):
            replies.append(reply)
        return True

    # Nobody knows how many there are: whoever answers within this time is counted.
    on.requester.request_nowait("$SRV.PING", b"", on_reply, timeout_ms=int(PING_S * 1000))
    await asyncio.sleep(PING_S)
    found: dict[str, list[str]] = {name: [] for name in SERVICES}
    for reply in replies:
        info = _json(reply.body)
        name = str(info.get("name", "")).removeprefix(f"{namespace}-")
        if name in found:
            found[name].append(str(info.get("version", "")))
    return [_service(name, versions) for name, versions in found.items()]


def _service(name: str, versions: list[str]) -> Check:
    facts = {"processes": len(versions), "versions": sorted(set(versions))}
    if not versions:
        return Check(name, FAIL, f"no {name} process answers", f"run `turngate serve {name}` or `turngate up`", facts)
    says = f"{len(versions)} {'process answers' if len(versions) == 1 else 'processes answer'}"
    if set(versions) != {__version__}:
        listed = ", ".join(sorted(set(versions)))
        return Check(name, WARN, f"{says}, of version {listed}; this is {__version__}", "run one version", facts)
    return Check(name, OK, f"{says}, version {__version__}", facts=facts)


async def _backlog(on: _Examined) -> list[Check]:
    return await check_backlog(on.requester, on.topography, on.topology)


async def _events(on: _Examined) -> list[Check]:
    return check_events(on.topography, on.topology)


async def _clock(on: _Examined) -> list[Check]:
    if not on.topography.streams:
        return []
    told, before, after = on.topography.server_time, on.topography.asked_ms, on.topography.answered_ms
    try:
        # The server writes nanoseconds, of which Python reads microseconds.
        server_ms = datetime.fromisoformat(re.sub(r"(\.\d{6})\d+", r"\1", told)).timestamp() * 1000
    except ValueError:
        return [Check("clock", WARN, f"the server does not say what time it is: {told[:40]!r}", "upgrade nats-server")]
    difference = round(server_ms - (before + after) / 2)
    facts = {"server_ahead_ms": difference}
    if abs(difference) > CLOCK_WARN_MS:
        side = "ahead" if difference > 0 else "behind"
        says = f"the server's clock is {span(abs(difference))} {side} of this machine's"
        return [Check("clock", WARN, says, "run NTP on both; order and verdicts do not depend on it, times do", facts)]
    return [Check("clock", OK, f"{abs(difference)} ms apart from the server's", facts=facts)]


async def _durability(on: _Examined) -> list[Check]:
    return check_durability(on.topography, on.topology)


async def _sequences(on: _Examined) -> list[Check]:
    return await check_sequences(on.requester, on.topography, on.topology)


async def _dead(on: _Examined) -> list[Check]:
    return await check_dead(on.requester, on.topography, on.topology)


def _json(body: bytes) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


_CHECKS: Final[tuple[tuple[str, Callable[[_Examined], Awaitable[list[Check]]]], ...]] = (
    ("server", _server),
    ("jetstream", _jetstream),
    ("topology", _topology),
    ("durability", _durability),
    ("sequences", _sequences),
    ("services", _services),
    ("backlog", _backlog),
    ("events", _events),
    ("clock", _clock),
    ("dead letters", _dead),
)
