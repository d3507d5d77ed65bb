"""What is stored: bytes in each stream for a turn and for a step of an objective, and the server's memory.

Counted by the server itself, over enough of each that its own overhead is in it. Queues hold a message until it is
acknowledged, so theirs is measured where nobody takes it; buckets and events keep theirs. Three copies are three times
as much.
"""

from typing import Final

from bench.load import Load
from bench.loop import run as run_loop
from bench.machine import rss_mib
from bench.options import Options
from bench.rig import Rig, requests, rig, until_quiet
from bench.roles import Roles, encoded_result
from bench.rows import Row
from bench.supervisor import STEPS
from turngate.jetstream.request import Requester
from turngate_contracts.esm import RoleOffer
from turngate_contracts.subjects import Subjects
from turngate_contracts.topology import Durability
from turngate_protocol.esm.objective import Role

NAME: Final = "bytes"
TURNS_A_SESSION: Final = 10
MEMORY: Final = "session: memory of the server"
_TURNS: Final = 2_000
_CONTINUATIONS: Final = 200
_IN_FLIGHT: Final = 64
_RUNNER: Final = "bench"

_MIXES: Final = (
    ("turn, new sessions", "report_4k.json", 1),
    (f"turn, {TURNS_A_SESSION} a session", "report_4k.json", TURNS_A_SESSION),
    ("turn with a card, new sessions", "report_11k.json", 1),
)


def run(options: Options) -> list[Row]:
    """Count for turns and for steps, which take no longer in a full run; the server's memory is over more then."""
    rows: list[Row] = []
    with rig("idle", Durability.RELAXED) as idle:
        rows += run_loop(_queued(idle))
    for name, report, turns in _MIXES:
        with rig("validation", Durability.RELAXED) as real:
            rows += run_loop(_turns(real, name, report, turns))
    with rig("supervisor", Durability.RELAXED) as real:
        rows += run_loop(_steps(real))
    with rig("validation", Durability.RELAXED) as real:
        rows += run_loop(_memory(real, options.memory_turns // 2))
    return rows


async def _queued(on: Rig) -> list[Row]:
    subjects = on.topology.subjects
    async with requests(on) as requester:
        load = await Load.start(requester, subjects)
        await load.leave(_TURNS)
        offer = RoleOffer("s-bytes-1", "run-1", Role.WORKER, 1, "pool", 0)
        await requester.publish(subjects.esm_result(_RUNNER, "s-bytes-1"), *encoded_result(offer))
        turns, results = (
            await _bytes(requester, subjects.stream("turns")),
            await _bytes(requester, subjects.stream("esm")),
        )
    return [
        Row(NAME, "turn: intake, until it is acked", turns / _TURNS, "B"),
        Row(NAME, "continuation: intake, until it is acked", results, "B"),
    ]


async def _turns(on: Rig, name: str, report: str, turns: int) -> list[Row]:
    subjects = on.topology.subjects
    async with requests(on) as requester:
        load = await Load.start(requester, subjects, turns, report)
        # Whole sessions: each slot plays some of them to their end.
        await load.for_turns(_IN_FLIGHT, _IN_FLIGHT * turns * max(1, _TURNS // (_IN_FLIGHT * turns)))
        await until_quiet(requester, on.topology)
        return await _stored(requester, subjects, name, "turns", load.done)


async def _steps(on: Rig) -> list[Row]:
    subjects = on.topology.subjects
    async with requests(on) as requester:
        roles = await Roles.start(requester, on.topology, 8, real=True)
        await roles.for_continuations(_CONTINUATIONS)
        await until_quiet(requester, on.topology)
        rows = await _stored(requester, subjects, "objective's step", "objectives", roles.done * STEPS)
        work = await _bytes(requester, subjects.stream("work"))
        return [*rows, Row(NAME, "continuation: its offer, until it expires", work / roles.done, "B")]


async def _memory(on: Rig, turns: int) -> list[Row]:
    subjects = on.topology.subjects
    async with requests(on) as requester:
        load = await Load.start(requester, subjects)
        # The first ones fill the server's caches, which do not grow with the past.
        await load.for_turns(_IN_FLIGHT, turns // 2)
        await until_quiet(requester, on.topology)
        before = rss_mib(on.server_pid)
        await load.for_turns(_IN_FLIGHT, turns - turns // 2)
        await until_quiet(requester, on.topology)
        grown = max(0.0, (rss_mib(on.server_pid) - before) * 1024 * 1024 / (turns - turns // 2))
    return [Row(NAME, MEMORY, grown, "B", note=f"over the later half of {turns:,} sessions of one turn")]


async def _stored(requester: Requester, subjects: Subjects, name: str, bucket: str, count: int) -> list[Row]:
    kept = {
        "revisions in the bucket": subjects.bucket_stream(bucket),
        "events": subjects.stream("events"),
        "inbox": subjects.bucket_stream("inbox"),
    }
    return [Row(NAME, f"{name}: {what}", await _bytes(requester, stream) / count, "B") for what, stream in kept.items()]


async def _bytes(requester: Requester, stream: str) -> int:
    return int((await requester.api(f"STREAM.INFO.{stream}"))["state"]["bytes"])
