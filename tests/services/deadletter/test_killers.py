"""A message that ends each process that is given it stops doing so, and what was in hand beside it is handled."""

import asyncio
import json
import os
import sys

from tests.fundamentals.reports import DONE
from tests.running import System, running
from tests.services.deadletter.killed import EXIT_CODE, KILLED_BY
from tests.services.deadletter.letters import letters_of
from turngate.jetstream.embedded import EmbeddedServer
from turngate.jetstream.store import Store
from turngate.jetstream.suspects import KILLS, TRUSTED
from turngate_contracts import codec
from turngate_contracts.dead import FoundBy
from turngate_contracts.errors import ErrorCode
from turngate_contracts.messages import ReportSubmitted, wrap_report
from turngate_contracts.topology import VALIDATION

POISON = "kills-its-process"


async def test_a_message_that_kills_its_process_is_buried_after_a_few_kills_and_its_neighbours_are_handled(
    nats_server: EmbeddedServer, namespace: str
):
    async with running(nats_server.url, namespace, validation=False) as system:
        await _redeliver_after(system, ms=150)
        await _publish(system, POISON)
        for number in range(3):
            await _publish(system, f"neighbour-{number}")

        kills = await _killed_until_one_survives(system)

        (letter,) = await letters_of(system)
        assert letter.reason.code is ErrorCode.PROCESS_KILLED
        assert letter.reason.message.startswith(f"{KILLS} processes ended while they handled it alone")
        assert (letter.found_by, letter.stream) == (FoundBy.LOOP, system.subjects.stream("turns"))
        assert POISON in letter.subject
        assert kills == TRUSTED + KILLS
        store = Store(system.requester, system.subjects, "turns", "")
        for number in range(3):
            assert (await store.load(f"neighbour-{number}")).value is not None


async def _killed_until_one_survives(system: System) -> int:
    """Start processes one after the other until the queue is empty; return how many were killed."""
    for kills in range(TRUSTED + KILLS + 3):
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tests.services.deadletter.killed",
            system.settings.nats_url,
            system.settings.namespace,
            env={**os.environ, KILLED_BY: POISON},
        )
        ended = asyncio.create_task(process.wait())
        while not ended.done() and not await _is_empty(system):
            await asyncio.wait([ended], timeout=0.05)
        if not ended.done():
            process.kill()
            await ended
            return kills
        assert ended.result() == EXIT_CODE
    raise AssertionError("it kills for ever")


async def _is_empty(system: System) -> bool:
    info = await system.requester.api(f"STREAM.INFO.{system.subjects.stream('turns')}")
    return int(info["state"]["messages"]) == 0


async def _publish(system: System, session: str) -> None:
    raw, _ = wrap_report(json.dumps(DONE).encode())
    body = codec.encode(ReportSubmitted(session, 1, 1, "runner-1", "pool-1", report=raw))
    await system.requester.publish(system.subjects.turn_report("pool-1", "runner-1", session), body)


async def _redeliver_after(system: System, ms: int) -> None:
    stream = system.subjects.stream("turns")
    info = await system.requester.api(f"CONSUMER.INFO.{stream}.{VALIDATION}")
    config = {**info["config"], "ack_wait": ms * 1_000_000}
    name = f"CONSUMER.DURABLE.CREATE.{stream}.{VALIDATION}"
    await system.requester.api(name, {"stream_name": stream, "config": config})
