"""States leave at their age, whole: nothing older comes back, and what still waits for something stays."""

import asyncio

from tests.fundamentals.reports import DONE
from tests.running import System, running
from tests.waiting import wait_until
from turngate.clock import system_clock
from turngate.jetstream.direct import Stored, read_page
from turngate.jetstream.embedded import EmbeddedServer
from turngate.jetstream.provision import ensure_stream
from turngate.jetstream.retention import Retention, is_open
from turngate.jetstream.store import Store
from turngate_contracts import codec
from turngate_contracts import headers as h
from turngate_contracts.examples import CARD
from turngate_contracts.topology import Durability, Topology
from turngate_protocol.esm.objective import Objective, Status
from turngate_protocol.esm.state import EsmState

AGE_MS = 2_500


async def test_an_open_card_outlives_its_age_and_a_settled_session_leaves_with_all_its_revisions(
    nats_server: EmbeddedServer, namespace: str
):
    async with running(nats_server.url, namespace) as system:
        retention = await _aging(system)
        client = await system.client()
        for turn in range(1, 4):
            await client.submit_report("settled", turn, DONE)
        await client.submit_report("open", 1, CARD, mutated=True)
        before = await _first_id(system, "open")
        store = Store(system.requester, system.subjects, "turns", "")

        async def settled_has_left() -> bool:
            await retention.sweep()
            return (await store.load("settled")).revision == 0

        await wait_until(settled_has_left, why="its age is over")

        assert await _revisions(system, "settled") == []
        await asyncio.sleep(AGE_MS / 1000 / 2)
        await retention.sweep()
        kept = await _revisions(system, "open")
        assert kept
        assert kept[-1].fields["ce-id"].startswith("open.")
        assert before <= {stored.fields["ce-id"] for stored in kept}
        assert (await client.get("open")).state.waiting
        again = await client.submit_report("settled", 4, DONE)
        assert again.turn == 4


async def test_a_revision_is_read_once(nats_server: EmbeddedServer, namespace: str):
    async with running(nats_server.url, namespace) as system:
        retention = await _aging(system, age_ms=60_000)
        client = await system.client()
        await client.submit_report("open", 1, CARD, mutated=True)
        late = Retention(system.requester, _topology(system, 60_000), lambda: system_clock()() + 55_000)

        await retention.sweep()
        await late.sweep()
        once = late.touched
        await late.sweep()

        assert (retention.touched, once) == (0, 1)
        assert late.touched == 2  # what was saved again is old to this clock too, and is no older revision


async def test_a_shorter_age_does_not_throw_out_what_is_open(nats_server: EmbeddedServer, namespace: str):
    async with running(nats_server.url, namespace) as system:
        client = await system.client()
        await client.submit_report("settled", 1, DONE)
        await client.submit_report("open", 1, CARD, mutated=True)
        await asyncio.sleep(AGE_MS / 1000)

        await _aging(system)

        assert (await client.get("open")).state.waiting
        store = Store(system.requester, system.subjects, "turns", "")
        await wait_until(lambda: _is_gone(store, "settled"), why="its age is over")


def test_what_wants_something_and_objectives_that_are_not_complete_are_open():
    settled = Stored(1, "x", b"", {})
    wanting = Stored(1, "x", b"", {h.WANTS: "1"})
    deleted = Stored(1, "x", b"", {h.WANTS: "1", h.KV_OPERATION: "DEL"})
    paused, complete = (
        Stored(1, "x", codec.encode(EsmState("s", objective=Objective("s", "e", "text", status=status))), {})
        for status in (Status.PAUSED, Status.COMPLETE)
    )

    assert [is_open("turns", each) for each in (settled, wanting, deleted)] == [False, True, False]
    assert [is_open("objectives", each) for each in (paused, complete)] == [True, False]
    assert is_open("objectives", Stored(1, "x", b"of a later version", {}))


async def _is_gone(store: Store, key: str) -> bool:
    return (await store.load(key)).revision == 0


async def _aging(system: System, age_ms: int = AGE_MS) -> Retention:
    topology = _topology(system, age_ms)
    for config in topology.streams():
        # No age may be below the window of known message ids.
        await ensure_stream(system.requester, {**config, "duplicate_window": 1_000_000_000}, topology)
    return Retention(system.requester, topology, system_clock())


def _topology(system: System, age_ms: int) -> Topology:
    return Topology(system.subjects, Durability.RELAXED, retention_ms=age_ms)


async def _revisions(system: System, session: str) -> list[Stored]:
    stream, key = system.subjects.bucket_stream("turns"), system.subjects.key("turns", session)
    return (await read_page(system.requester, stream, 0, 256, key))[0]


async def _first_id(system: System, session: str) -> set[str]:
    return {(await _revisions(system, session))[-1].fields["ce-id"]}
