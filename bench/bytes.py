"""What is stored: bytes in each stream for a turn and for a step of an objective, and the server's memory.

Counted by the server itself, over enough of each that its own overhead is in it. Queues hold a message until it is
acknowledged, so theirs is measured where nobody takes it; buckets and events keep theirs. Three copies are three times
as much.
"""

import asyncio
import tempfile
from pathlib import Path
from typing import Final

from bench.load import FIXTURES, Load
from bench.machine import rss_mib
from bench.options import Options
from bench.rig import QUIET_S, Rig, requests, rig, until_quiet
from bench.roles import Roles, encoded_result
from bench.rows import Row
from bench.supervisor import STEPS
from turngate.jetstream.connect import connect
from turngate.jetstream.embedded import EmbeddedServer
from turngate.jetstream.provision import provision
from turngate.jetstream.request import Requester
from turngate.jetstream.store import Event, Store
from turngate.process import run as run_loop
from turngate.settings import Settings
from turngate_contracts.esm import RoleOffer
from turngate_contracts.messages import SCHEMAS
from turngate_contracts.subjects import Subjects
from turngate_contracts.topology import Durability
from turngate_protocol.esm.objective import Role
from turngate_protocol.report.session import SessionTurns

NAME: Final = "bytes"
TURNS_A_SESSION: Final = 10
MEMORY: Final = "session: memory of the server"
_SESSIONS: Final = 30_000
"""From how many on the memory of one is more than noise."""
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
    return rows + _memory(max(_SESSIONS, options.memory_turns // 2))


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


def _memory(sessions: int) -> list[Row]:
    """Compare a server that was started on many sessions with one that was started on none: caches are not counted."""
    with (
        tempfile.TemporaryDirectory(prefix="turngate-bench-") as directory,
        EmbeddedServer(Path(directory) / "state", sync_always=False) as server,
    ):
        settings = Settings(nats_url=server.url, durability=Durability.RELAXED)
        run_loop(_fill(settings, 0))
        server.restart()
        empty = rss_mib(server.pid)
        run_loop(_fill(settings, sessions))
        server.restart()
        grown = max(0.0, rss_mib(server.pid) - empty)
    return [Row(NAME, MEMORY, grown * 1024 * 1024 / sessions, "B", note=f"with {sessions:,} sessions of one turn")]


async def _fill(settings: Settings, sessions: int) -> None:
    """Save a state for each of some sessions, and wait until each is an event too."""
    topology = settings.topology()
    body = (FIXTURES / "report_4k.json").read_bytes()
    connection = await connect(settings.nats_url, name="bench-client")
    requester = await Requester.start(connection)
    await provision(requester, topology)
    store = Store(requester, topology.subjects, "turns", SCHEMAS[SessionTurns])

    async def some(slot: int) -> None:
        for number in range(slot, sessions, _IN_FLIGHT):
            await store.save(f"s-{number}", body, 0, Event("turn.report_accepted", 1))

    await asyncio.gather(*(some(slot) for slot in range(_IN_FLIGHT)))
    events = topology.subjects.stream("events")
    async with asyncio.timeout(QUIET_S):
        while (await requester.api(f"STREAM.INFO.{events}"))["state"]["last_seq"] < sessions:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    await requester.stop()
    await connection.close()


async def _stored(requester: Requester, subjects: Subjects, name: str, bucket: str, count: int) -> list[Row]:
    kept = {
        "revisions in the bucket": subjects.bucket_stream(bucket),
        "events": subjects.stream("events"),
        "inbox": subjects.bucket_stream("inbox"),
    }
    return [Row(NAME, f"{name}: {what}", await _bytes(requester, stream) / count, "B") for what, stream in kept.items()]


async def _bytes(requester: Requester, stream: str) -> int:
    return int((await requester.api(f"STREAM.INFO.{stream}"))["state"]["bytes"])
