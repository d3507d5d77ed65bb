"""Objectives at rest cost nothing: lists page, a supervisor's memory stays flat, a step costs as much as among few.

2,000 objectives by default; TURNGATE_TEST_OBJECTIVES=20000 for the number that the design names.
"""

import asyncio
import os
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.system.esm_fleet import POOL, EsmFleet
from turngate.jetstream.embedded import EmbeddedServer
from turngate.jetstream.request import Requester
from turngate.jetstream.store import Event, Store
from turngate.runner import TurnClient
from turngate_contracts import codec
from turngate_contracts.messages import SCHEMAS
from turngate_protocol.esm.continuation import advance
from turngate_protocol.esm.inputs import Create, Pause
from turngate_protocol.esm.state import EsmState

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

MANY: Final = int(os.environ.get("TURNGATE_TEST_OBJECTIVES", "2000"))
FEW: Final = 20
STEPS: Final = 120
GROWTH_KIB: Final = 24 * 1024
"""What a page of large states may leave in an allocator, whatever their number."""


@pytest.fixture
def fleets(own_server: EmbeddedServer, namespace: str, tmp_path: Path) -> Iterator[tuple[EsmFleet, EsmFleet]]:
    """Two systems on one server: in one there are few objectives, in the other many."""
    directories = (tmp_path / "few", tmp_path / "many")
    for directory in directories:
        directory.mkdir()
    few, many = (
        EsmFleet(own_server.url, f"{namespace}{end}", directory)
        for end, directory in zip("fm", directories, strict=True)
    )
    try:
        yield few, many
    finally:
        few.end()
        many.end()


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads memory from /proc")
async def test_objectives_at_rest_cost_neither_memory_nor_time(
    fleets: tuple[EsmFleet, EsmFleet], own_server: EmbeddedServer, namespace: str
):
    for fleet in fleets:
        await fleet.start(1, 0, {})
    supervisor = fleets[1].supervisors[0]
    few = await TurnClient.connect("ann", pool=POOL, url=own_server.url, namespace=f"{namespace}f")
    many = await TurnClient.connect("ann", pool=POOL, url=own_server.url, namespace=f"{namespace}m")
    async with few, many:
        for client in (few, many):
            await _rest(client, 0, FEW)
            await _listed(client)
        await _compared(few, many)
        kib_before = supervisor.resident_kib

        await _rest(many, FEW, MANY)
        assert await _listed(many) == MANY
        assert await _listed(many) == MANY
        grown = supervisor.resident_kib - kib_before
        among_few, among_many = await _compared(few, many)

    assert grown < GROWTH_KIB, f"{MANY} objectives at rest cost {grown} KiB"
    assert among_many <= among_few * 1.3, f"a step took {among_few:.2f} ms among few, {among_many:.2f} ms among many"


async def _rest(client: TurnClient, first: int, last: int) -> None:
    """Put paused objectives into the bucket, as long ago created."""
    requester = await Requester.start(client.connection)
    store = Store(requester, client.subjects, "objectives", SCHEMAS[EsmState])
    slots = asyncio.Semaphore(64)

    async def put(number: int) -> None:
        session = f"rest-{number:06}"
        state = advance(EsmState(session), Create(text="x" * 2_000, esm_id=f"e{number}", pool=POOL), 1)
        state = advance(state, Pause(), 2)
        async with slots:
            await store.save(session, codec.encode(state), 0, Event("objective.paused", 2))

    await asyncio.gather(*(put(number) for number in range(first, last)))
    await requester.stop()


async def _listed(client: TurnClient) -> int:
    """List all objectives at rest, a page at a time, and return how many there were."""
    return len({entry.session async for entry in client.objectives.every() if entry.session.startswith("rest-")})


async def _compared(few: TurnClient, many: TurnClient) -> tuple[float, float]:
    """The median time of a command on one objective in each system, in ms; taken in turn, on a machine that is busy."""
    took: dict[TurnClient, list[float]] = {few: [], many: []}
    for client in took:
        await client.objectives.clear("busy")
        await client.objectives.create("busy", "Do all of it", pool=POOL)
    for _ in range(STEPS):
        for client, times in took.items():
            began = time.perf_counter()
            await client.objectives.pause("busy")
            await client.objectives.resume("busy")
            times.append((time.perf_counter() - began) * 500)
    return statistics.median(took[few]), statistics.median(took[many])
