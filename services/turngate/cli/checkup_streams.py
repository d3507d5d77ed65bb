"""The part of `turngate doctor` that compares the server's streams and consumers with the topology.

`look` reads everything once; the checks then judge what was read. Only where messages seem to be left behind is the
server asked again, because a stream and its consumer can't be read in the same instant.
"""

import time
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from turngate.cli.findings import FAIL, OK, WARN, Check
from turngate.jetstream.provision import CONSUMER_NOT_FOUND, STREAM_NOT_FOUND
from turngate.jetstream.request import JetStreamError, NoResponders
from turngate_contracts.topology import TOPOLOGY_VERSION, VERSION_KEY

if TYPE_CHECKING:
    from turngate.jetstream.request import Requester
    from turngate_contracts.topology import Topology

BACKLOG: Final = 1_000
"""Messages that may wait before it is worth a warning."""
FULL: Final = 0.8

_SERVICE_OF: Final = {
    "tasks": "conclusion",
    "conclusions": "conclusion",
    "esm": "supervisor",
    "objectives": "supervisor",
}
"""Which service takes from a stream or bucket, where it is not validation."""

_Info = dict[str, Any]


class Topography(Struct):
    """What the server has of one namespace, as it told it.

    Attributes:
        account: JetStream's facts about the account, None where JetStream is off.
        streams: each stream of the topology that exists, by name.
        consumers: each consumer of the topology and of pools that exists, by stream and name.
        server_time: when the server answered, on its own clock.
        asked_ms: this machine's clock just before that answer.
        answered_ms: this machine's clock just after it.
        round_trip_ms: how long the server took to answer a request.
    """

    account: _Info | None
    streams: dict[str, _Info]
    consumers: dict[tuple[str, str], _Info]
    server_time: str = ""
    asked_ms: float = 0.0
    answered_ms: float = 0.0
    round_trip_ms: float = 0.0

    def stream_rows(self) -> list[_Info]:
        """Return each stream's figures."""
        return [
            {
                "stream": name,
                "version": _version(info),
                "messages": info["state"]["messages"],
                "bytes": info["state"]["bytes"],
                "first": info["state"]["first_seq"],
                "last": info["state"]["last_seq"],
                "consumers": info["state"]["consumer_count"],
                "lag": sum(int(source.get("lag", 0)) for source in info.get("sources") or []),
            }
            for name, info in self.streams.items()
        ]

    def consumer_rows(self) -> list[_Info]:
        """Return each consumer's figures: what waits, what is in hand, what came again, and who asks."""
        return [
            {
                "stream": stream,
                "consumer": name,
                "pending": info["num_pending"],
                "in_hand": info["num_ack_pending"],
                "redelivered": info["num_redelivered"],
                "pulls": info["num_waiting"],
                "delivered": info["delivered"]["stream_seq"],
                "ack_floor": info["ack_floor"]["stream_seq"],
            }
            for (stream, name), info in self.consumers.items()
        ]


async def look(requester: "Requester", topology: "Topology") -> Topography:
    """Read the server's streams and consumers of a topology.

    Raises:
        Unavailable: the server does not answer.
    """
    began = time.perf_counter()
    found = Topography(None, {}, {})
    try:
        found.account = await requester.api("INFO")
    except (NoResponders, JetStreamError):
        return found
    finally:
        found.round_trip_ms = (time.perf_counter() - began) * 1000
    for wanted in topology.streams():
        name = wanted["name"]
        found.asked_ms = time.time() * 1000
        info = await _info(requester, f"STREAM.INFO.{name}", STREAM_NOT_FOUND)
        if info is not None:
            found.answered_ms = time.time() * 1000
            found.server_time = str(info.get("ts", ""))
            found.streams[name] = info
    for stream, config in topology.consumers():
        name = config["durable_name"]
        info = (
            await _info(requester, f"CONSUMER.INFO.{stream}.{name}", CONSUMER_NOT_FOUND)
            if stream in found.streams
            else None
        )
        if info is not None:
            found.consumers[stream, name] = info
    work = topology.subjects.stream("work")
    if work in found.streams:
        pools = await requester.api(f"CONSUMER.LIST.{work}", {"offset": 0})
        for info in pools.get("consumers") or []:
            found.consumers[work, info["name"]] = info
    return found


def check_topology(found: Topography, topology: "Topology") -> list[Check]:
    """Compare which streams and consumers exist, and of which version, with what should."""
    if found.account is None:
        return []
    checks = []
    missing = [wanted["name"] for wanted in topology.streams() if wanted["name"] not in found.streams]
    missing += [
        f"{config['durable_name']} of {stream}"
        for stream, config in topology.consumers()
        if (stream, config["durable_name"]) not in found.consumers
    ]
    if missing:
        do = "run `turngate serve validation` or `turngate up`, which make what is missing"
        checks.append(Check("topology", FAIL, f"missing: {', '.join(missing)}", do, {"missing": missing}))
    for name, info in found.streams.items():
        version = _version(info)
        if version == 0:
            do = "use another namespace, or remove that stream"
            checks.append(Check("topology", FAIL, f"{name} was not made by Turngate", do))
        elif version > TOPOLOGY_VERSION:
            says = f"{name} has topology version {version}; this Turngate knows {TOPOLOGY_VERSION}"
            checks.append(Check("topology", FAIL, says, "upgrade Turngate here"))
        elif version < TOPOLOGY_VERSION:
            says = f"{name} has topology version {version}, older than {TOPOLOGY_VERSION}"
            checks.append(Check("topology", WARN, says, "restart a service, which brings it up to date"))
        checks += _fullness(name, info) + _replicas(name, info)
    if not checks:
        says = f"version {TOPOLOGY_VERSION}, {len(found.streams)} streams and {len(found.consumers)} consumers"
        checks.append(Check("topology", OK, says, facts={"version": TOPOLOGY_VERSION}))
    return checks


async def check_backlog(requester: "Requester", found: Topography, topology: "Topology") -> list[Check]:
    """Judge what waits in front of each consumer, whether anybody takes it, and what is stuck behind it."""
    checks = []
    for (stream, name), info in found.consumers.items():
        pending, pulls = int(info["num_pending"]), int(info["num_waiting"])
        facts = {"stream": stream, "consumer": name, "pending": pending, "in_hand": info["num_ack_pending"]}
        serve = f"`turngate serve {_service_of(stream)}`"
        if pending and not pulls and not info["num_ack_pending"]:
            says = f"{pending} messages wait for {name} of {stream}, and nobody takes them"
            work = stream == topology.subjects.stream("work")
            checks.append(
                Check("backlog", WARN, says, "start a runner of that pool" if work else f"run {serve}", facts)
            )
        elif pending > BACKLOG:
            says = f"{pending} messages wait for {name} of {stream}"
            checks.append(Check("backlog", WARN, says, f"add processes: {serve} --processes N", facts))
        left = await _left_behind(requester, found, stream, info)
        if left:
            says = f"{left} messages are stuck in {stream}: delivered, not acknowledged, not delivered again"
            do = (
                "their senders ask and send them again where that matters; removing them from the stream frees its room"
            )
            checks.append(Check("backlog", WARN, says, do, {"stream": stream, "stuck": left}))
    if not checks and found.consumers:
        waiting = sum(int(info["num_pending"]) for info in found.consumers.values())
        checks.append(Check("backlog", OK, f"{waiting} messages wait", facts={"pending": waiting}))
    return checks


def check_events(found: Topography, topology: "Topology") -> list[Check]:
    """Judge whether the events stream keeps up with the states."""
    info = found.streams.get(topology.subjects.stream("events"))
    if info is None:
        return []
    sources = info.get("sources") or []
    lag = sum(int(source.get("lag", 0)) for source in sources)
    facts = {"lag": lag, "events": info["state"]["messages"], "newest": info["state"]["last_seq"]}
    errors = [str(source["error"].get("description", "")) for source in sources if source.get("error")]
    if errors:
        return [
            Check("events", FAIL, f"states do not reach the events: {errors[0]}", "look into the server's log", facts)
        ]
    if lag > BACKLOG:
        do = "slow down or give the server more CPU: a state whose history is full skips revisions"
        return [Check("events", WARN, f"{lag} revisions behind the states", do, facts)]
    says = f"{facts['events']} kept, the newest is {facts['newest']}" + (f", {lag} behind" if lag else "")
    return [Check("events", OK, says, facts=facts)]


async def _left_behind(requester: "Requester", found: Topography, stream: str, consumer: _Info) -> int:
    """Count the messages that are in a queue although its only consumer is through with them."""
    known = found.streams.get(stream)
    if known is None or known["config"].get("retention") != "workqueue" or consumer["config"].get("filter_subject"):
        return 0
    if consumer["num_pending"] or consumer["num_ack_pending"]:
        return 0
    info = await _info(requester, f"STREAM.INFO.{stream}", STREAM_NOT_FOUND)
    if info is None or not info["state"]["messages"]:
        return 0
    # The consumer had nothing in hand when it was read: what it had been given by then is done, or is stuck.
    reached = int(consumer["delivered"]["stream_seq"])
    first, last = int(info["state"]["first_seq"]), int(info["state"]["last_seq"])
    return min(int(info["state"]["messages"]), min(reached, last) - first + 1) if first <= reached else 0


def _service_of(stream: str) -> str:
    return _SERVICE_OF.get(stream.lower().rpartition("_")[2], "validation")


def _fullness(name: str, info: _Info) -> list[Check]:
    limit, used = int(info["config"].get("max_bytes", -1)), int(info["state"]["bytes"])
    if limit <= 0 or info["config"].get("discard") != "new" or used <= FULL * limit:
        return []
    says = f"{name} is {used / limit:.0%} full and refuses messages when it is"
    return [Check("topology", WARN, says, "find out why nobody takes them, or raise its limit")]


def _replicas(name: str, info: _Info) -> list[Check]:
    cluster = info.get("cluster") or {}
    behind = [
        r.get("name", "?") for r in cluster.get("replicas") or [] if r.get("offline") or not r.get("current", True)
    ]
    if not behind:
        return []
    return [
        Check("topology", WARN, f"{name} has replicas that are not current: {', '.join(behind)}", "look after them")
    ]


def _version(info: _Info) -> int:
    text = str((info["config"].get("metadata") or {}).get(VERSION_KEY, ""))
    return int(text) if text.isdigit() else 0


async def _info(requester: "Requester", name: str, not_found: int) -> _Info | None:
    try:
        return await requester.api(name)
    except JetStreamError as error:
        if error.err_code == not_found:
            return None
        raise
