"""What `turngate doctor` looks at to say what could be lost: message size, durability, sequences, dead letters."""

from typing import TYPE_CHECKING, Any, Final

from turngate.cli.findings import FAIL, OK, WARN, Check
from turngate.cli.times import at
from turngate.clock import system_clock
from turngate.jetstream.direct import read_page
from turngate.jetstream.watermarks import StreamRegressed, Watermarks
from turngate_contracts import codec
from turngate_contracts.dead import DeadLetter, LetterStatus
from turngate_contracts.errors import InvalidMessage
from turngate_contracts.messages import REPORT_ENVELOPE
from turngate_contracts.topology import Durability
from turngate_protocol.report import REPORT_MAX

if TYPE_CHECKING:
    from turngate.cli.checkup_streams import Topography
    from turngate.jetstream.connect import Connection
    from turngate.jetstream.request import Requester
    from turngate_contracts.topology import Topology

WANTED_PAYLOAD: Final = 4 * 1024 * 1024
"""The max_payload that everything fits: a whole state of a session, and a dead letter with its body."""
_LETTERS_SHOWN: Final = 3
_LETTERS_READ: Final = 256


def check_payload(connection: "Connection") -> Check:
    """Say whether what Turngate sends fits."""
    limit, largest = connection.max_payload, connection.body_limit
    needed = REPORT_MAX + REPORT_ENVELOPE
    facts = {"max_payload": limit, "largest_body": largest, "needed": needed, "wanted": WANTED_PAYLOAD}
    do = "set max_payload to 4MB in the server's configuration"
    if largest < needed:
        says = f"only messages of up to {largest // 1024} KiB fit; a report may need {needed // 1024} KiB"
        return Check("max payload", FAIL, says, do, facts)
    says = f"messages of up to {largest // 1024} KiB fit"
    if limit < WANTED_PAYLOAD:
        return Check("max payload", WARN, f"{says}; large states and dead letters may not", do, facts)
    return Check("max payload", OK, says, facts=facts)


def check_durability(topography: "Topography", topology: "Topology") -> list[Check]:
    """Say what an acknowledged save survives, as far as a client can see."""
    info = topography.streams.get(topology.subjects.stream("turns"))
    bucket = topography.streams.get(topology.subjects.bucket_stream("turns"))
    if info is None or bucket is None:
        return []
    replicas = int(bucket["config"].get("num_replicas", 1))
    strict = info["config"].get("persist_mode") == "async"
    facts: dict[str, Any] = {"replicas": replicas, "wanted": topology.durability.value}
    if replicas > 1:
        says = f"{replicas} replicas: saves survive the loss of {(replicas - 1) // 2} of their servers"
        return [Check("durability", OK, says, facts=facts)]
    facts["made"] = Durability.STRICT.value if strict else Durability.RELAXED.value
    if strict:
        says = "one replica, made strict: saves survive a power cut where the server has `sync_interval: always`"
        return [Check("durability", OK, says, facts=facts)]
    says = "one replica, made relaxed: saves survive the end of every process, not a power cut"
    if topology.durability is Durability.STRICT:
        return [Check("durability", WARN, says, "restore a backup into a topology that is made strict", facts)]
    return [Check("durability", OK, says, facts=facts)]


async def check_sequences(requester: "Requester", topography: "Topography", topology: "Topology") -> list[Check]:
    """Say which buckets lost saves that had been seen."""
    if topology.subjects.stream("marks") not in topography.streams:
        return []
    standings = await Watermarks(requester, topology, system_clock()).standings()
    lost = [standing for standing in standings if standing.regressed]
    if not lost:
        noted = sum(1 for standing in standings if standing.seen)
        return [Check("sequences", OK, f"no bucket went back; {noted} are noted", facts={"noted": noted})]
    return [
        Check(
            "sequences",
            FAIL,
            StreamRegressed(standing).message,
            "restore it from a backup, or start once with --accept-regression",
            {"stream": standing.stream, "seen": standing.seen, "last": standing.last},
        )
        for standing in lost
    ]


async def check_dead(requester: "Requester", topography: "Topography", topology: "Topology") -> list[Check]:
    """Say how many dead letters wait for somebody to decide about them."""
    s = topology.subjects
    info = topography.streams.get(s.stream("dead"))
    if info is None:
        return []
    count, last = int(info["state"]["messages"]), int(info["state"]["last_seq"])
    if not count:
        return [Check("dead letters", OK, "none", facts={"messages": 0, "waiting": 0})]
    found, _ = await read_page(
        requester, s.stream("dead"), max(0, last - _LETTERS_READ), _LETTERS_READ, s.dead_letters()
    )
    waiting = []
    for stored in found:
        try:
            letter = codec.decode(stored.body, DeadLetter, "a DeadLetter")
        except InvalidMessage:
            continue
        if letter.status is LetterStatus.WAITING:
            waiting.append(letter)
    facts: dict[str, Any] = {"messages": count, "waiting": len(waiting)}
    if not waiting:
        return [Check("dead letters", OK, f"{count}, all decided about", facts=facts)]
    newest = waiting[-_LETTERS_SHOWN:]
    texts = [f"{letter.reason.code.value} on {letter.subject} at {at(letter.at)}" for letter in newest]
    facts["newest"] = [
        {
            "letter": letter.letter,
            "reason": letter.reason.code.value,
            "message": letter.reason.message,
            "subject": letter.subject,
            "at": letter.at,
        }
        for letter in newest
    ]
    many = "message" if len(waiting) == 1 else "messages"
    says = f"{len(waiting)} {many} could not be used; the newest: {'; '.join(texts)}"
    do = "repair who sent them, then `turngate dead retry` or `drop`; `turngate dead list` shows them"
    return [Check("dead letters", WARN, says, do, facts)]
