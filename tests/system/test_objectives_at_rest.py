"""Objectives at rest cost nothing: lists page and a supervisor's memory stays flat.

2,000 objectives by default; TURNGATE_TEST_OBJECTIVES=20000 for the number that the design names. What a step on one
costs among many is measured by `bench/rest.py`.
"""

import asyncio
import os
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
GROWTH_KIB: Final = 24 * 1024
"""What a page of large states may leave in an allocator, whatever their number."""


@pytest.fixture
def fleet(own_server: EmbeddedServer, namespace: str, tmp_path: Path) -> Iterator[EsmFleet]:
    fleet = EsmFleet(own_server.url, namespace, tmp_path)
    try:
        yield fleet
    finally:
        fleet.end()


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads memory from /proc")
async def test_objectives_at_rest_are_listed_by_pages_and_cost_no_memory(
    fleet: EsmFleet, own_server: EmbeddedServer, namespace: str
):
    await fleet.start(1, 0, {})
    (supervisor,) = fleet.supervisors
    async with await TurnClient.connect("ann", pool=POOL, url=own_server.url, namespace=namespace) as client:
        await _rest(client, 0, FEW)
        await _listed(client)
        await _worked(client)
        kib_before = supervisor.resident_kib

        await _rest(client, FEW, MANY)
        assert await _listed(client) == MANY
        assert await _listed(client) == MANY
        await _worked(client)
        grown = supervisor.resident_kib - kib_before

    assert grown < GROWTH_KIB, f"{MANY} objectives at rest cost {grown} KiB"


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


async def _worked(client: TurnClient) -> None:
    """Take steps on one objective, so that a supervisor holds all that it needs for its work."""
    await client.objectives.clear("busy")
    await client.objectives.create("busy", "Do all of it", pool=POOL)
    for _ in range(20):
        await client.objectives.pause("busy")
        await client.objectives.resume("busy")
