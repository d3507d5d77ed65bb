"""Everything that an intruder may try, and what a system held before and after."""

import hashlib
from typing import Any

from tests.matching import covers
from turngate.jetstream.connect import Connection
from turngate.jetstream.direct import PAGE, read_page
from turngate.jetstream.request import Requester
from turngate_contracts.catalogue import (
    ASKS,
    DEAD,
    INTAKE,
    MAILBOX,
    PRESENCE,
    REQUESTS,
    STATES,
    TIMERS,
    WORK,
)
from turngate_contracts.permissions import fill
from turngate_contracts.topology import Topology

STREAM_VERBS = (
    *("CREATE", "UPDATE", "DELETE", "INFO", "PURGE", "SNAPSHOT", "RESTORE"),
    *("MSG.GET", "MSG.DELETE", "PEER.REMOVE", "LEADER.STEPDOWN"),
)
CONSUMER_VERBS = (
    "CREATE",
    "DURABLE.CREATE",
    "DELETE",
    "INFO",
    "MSG.NEXT",
    "PAUSE",
    "RESET",
    "UNPIN",
    "LEADER.STEPDOWN",
)
ACCOUNT_VERBS = ("INFO", "STREAM.NAMES", "STREAM.LIST", "META.LEADER.STEPDOWN", "ACCOUNT.PURGE.CORE", "SERVER.REMOVE")
ELSEWHERE = (
    *("$SRV.PING", "$SRV.STATS", "$SRV.INFO.tg-validation", "$SYS.REQ.SERVER.PING", "$SYS.REQ.ACCOUNT.CORE.CONNZ"),
    *("$SYS.REQ.USER.INFO", "$SYS.ACCOUNT.CORE.CONNECT", "_R_.abcdef.ghijkl", "_INBOX.r2.x", "_INBOX.validation.x"),
    *(
        "_INBOX.x",
        "other.namespace",
        "tg",
        "tg.anything",
        "tg.live.turns.s1",
        "tg.event.turns.s1",
        "tg.event.progress.s1",
    ),
    *("$JS.FC.TG_WORK.x.y", "$JS.SNAPSHOT.ACK.TG_TURNS.x", "$JS.M.abc", "$JSC.R.abc", "_GR_.x.y", "$MQTT.msgs.x"),
)
WIDE = (
    ">",
    "*",
    "*.>",
    "tg.>",
    "tg.*.*.>",
    "tg.to.>",
    "tg.to.*.verdict",
    "tg.api.>",
    "tg.work.>",
    "$KV.>",
    "$JS.>",
    "$SYS.>",
)


def everything(topology: Topology, names: dict[str, str]) -> set[str]:
    """Every subject of the contract with these names in it, and every verb of JetStream on streams and consumers."""
    subjects = topology.subjects
    rows: list[Any] = [*INTAKE, *MAILBOX, *WORK, *STATES, *TIMERS, PRESENCE, DEAD, *REQUESTS, *ASKS]
    addresses = [row.address() for row in rows]
    addresses += [row.event_address() for row in STATES] + [row.live_address() for row in STATES]
    addresses += [row.schedule_address() for row in TIMERS]
    found = {fill(address, subjects, **names).replace("*", "x1") for address in addresses}
    found |= {
        subjects.mark("TG_TURNS"),
        subjects.suspect("x1"),
        subjects.advisories("MAX_DELIVERIES", "TG_TURNS")[:-1] + "x",
    }
    found |= {f"$JS.API.{verb}" for verb in ACCOUNT_VERBS} | set(ELSEWHERE)
    found |= {f"$JS.CORE.API.STREAM.{verb}.KV_tg_turns" for verb in STREAM_VERBS}
    consumers: dict[str, list[str]] = {config["name"]: ["evil"] for config in topology.streams()}
    for stream, config in (*topology.consumers(), *topology.pool_consumers(names["pool"], ["worker", "critic"])):
        consumers[stream].append(config["durable_name"])
    for stream, durables in consumers.items():
        found |= {f"$JS.API.STREAM.{verb}.{stream}" for verb in STREAM_VERBS}
        found |= {
            f"$JS.API.DIRECT.GET.{stream}",
            f"$JS.API.DIRECT.GET.{stream}.tg.any",
            f"$JS.API.CONSUMER.LIST.{stream}",
        }
        found |= {f"$JS.API.CONSUMER.{verb}.{stream}.{name}" for verb in CONSUMER_VERBS for name in durables}
        found |= {f"$JS.ACK.{stream}.{name}.1.1.1.1.0" for name in durables}
    return found


def allowed(patterns: tuple[str, ...], subjects: set[str]) -> set[str]:
    """Those subjects that a list covers."""
    return {subject for subject in subjects if any(covers(pattern, subject) for pattern in patterns)}


async def holdings(requester: Requester, topology: Topology) -> dict[str, Any]:
    """What every stream holds: its state, its settings, its consumers, and a digest of each message."""
    found: dict[str, Any] = {}
    for config in topology.streams():
        stream = config["name"]
        info = await requester.api(f"STREAM.INFO.{stream}")
        state = {key: info["state"].get(key) for key in ("messages", "first_seq", "last_seq", "consumer_count")}
        stored, after, more = [], 0, True
        while more:
            page, more = await read_page(requester, stream, after, PAGE, ">")
            stored += [(m.sequence, m.subject, hashlib.sha256(m.body).hexdigest()) for m in page]
            after = page[-1].sequence if page else after
        found[stream] = {"state": state, "config": info["config"], "stored": stored}
    return found


def stored_since(before: dict[str, Any], after: dict[str, Any]) -> set[str]:
    """The subjects of what was stored in between; raises where anything else is another than before."""
    new = set()
    for stream, held in before.items():
        now = after[stream]
        assert now["config"] == held["config"], stream
        assert now["stored"][: len(held["stored"])] == held["stored"], stream
        added = [subject for _, subject, _ in now["stored"][len(held["stored"]) :]]
        assert now["state"]["consumer_count"] == held["state"]["consumer_count"], stream
        assert now["state"]["last_seq"] == held["state"]["last_seq"] + len(added), stream
        new |= set(added)
    return new


class Heard:
    """What reached a subscription."""

    def __init__(self) -> None:
        self.subjects: list[str] = []
        self.replies: list[str] = []
        self.heads: list[bytes] = []

    def __call__(self, subject: bytes, reply: bytes, _body: bytes, head: bytes) -> None:
        self.subjects.append(subject.decode())
        self.replies.append(reply.decode())
        self.heads.append(head)


class Refusals:
    """What the server refused to take from a connection: publishes by their lower-case subjects."""

    def __init__(self, connection: Connection) -> None:
        self.publishes: set[str] = set()
        connection.on_refused_publish(self.publishes.add)
