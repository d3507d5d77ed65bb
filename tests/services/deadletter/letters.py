"""Dead letters of a test's namespace: how they come about, and how they are read."""

import asyncio
import json
from typing import Any

from tests.fundamentals.reports import DONE
from tests.running import System
from tests.waiting import wait_until
from turngate.jetstream.consume import ConsumeLoop, Delivery
from turngate.jetstream.direct import read_page
from turngate_contracts import codec
from turngate_contracts.dead import DeadEntry, DeadLetter, DeadPage, ListDead
from turngate_contracts.messages import ReportSubmitted, wrap_report
from turngate_contracts.topology import VALIDATION

UNREADABLE = b'{"turn":"seven"}'
RUNNER = "runner-1"


async def letters_of(system: System) -> list[DeadLetter]:
    """Every dead letter, the longest unchanged first."""
    found, _ = await read_page(system.requester, system.subjects.stream("dead"), 0, 256, system.subjects.dead_letters())
    return [codec.decode(stored.body, DeadLetter, "a DeadLetter") for stored in found]


async def bury_unreadable(system: System, session: str = "s1", body: bytes = UNREADABLE) -> DeadLetter:
    """Have the validation service bury a message, and return its letter."""
    sequence = (await system.requester.publish(system.subjects.turn_ended("pool-1", RUNNER, session), body)).seq

    async def buried() -> list[DeadLetter]:
        return [letter for letter in await letters_of(system) if letter.sequence == sequence]

    return (await wait_until(buried, why="the message is buried"))[0]


async def publish_report(system: System, session: str = "s1", turn: int = 1) -> int:
    """Publish a good report as its runner does, and return its sequence."""
    raw, _ = wrap_report(json.dumps(DONE).encode())
    body = codec.encode(ReportSubmitted(session, turn, 1, RUNNER, "pool-1", report=raw))
    return (await system.requester.publish(system.subjects.turn_report("pool-1", RUNNER, session), body)).seq


async def bury_report(system: System, session: str = "s1") -> DeadLetter:
    """Exhaust a good report while no service validates, and return the letter that its advisory led to."""
    await configure_intake(system, max_deliver=2, ack_wait=100_000_000)
    await publish_report(system, session)
    await deliver(system, 2)
    letter = (await wait_until(lambda: letters_of(system), why="the report is buried"))[0]
    await configure_intake(system, max_deliver=1_000, ack_wait=30_000_000_000)
    return letter


async def deliver(system: System, times: int) -> None:
    """Take messages of the intake so many times in all, and never end one."""
    taken: list[Delivery] = []

    def take(delivery: Delivery) -> None:
        taken.append(delivery)
        delivery.drop()

    loop = ConsumeLoop(system.connection, system.subjects.stream("turns"), VALIDATION, take)
    await loop.start()
    await wait_until(lambda: len(taken) >= times, why="the messages were delivered")
    # The server gives up a message when it would be delivered once more.
    await asyncio.sleep(0.25)
    await loop.stop()


async def configure_intake(system: System, **changes: Any) -> None:
    """Change the consumer of the validation service."""
    stream = system.subjects.stream("turns")
    info = await system.requester.api(f"CONSUMER.INFO.{stream}.{VALIDATION}")
    name = f"CONSUMER.DURABLE.CREATE.{stream}.{VALIDATION}"
    await system.requester.api(name, {"stream_name": stream, "config": {**info["config"], **changes}})


async def intake(system: System) -> dict[str, Any]:
    """What the server says of the intake stream."""
    state: dict[str, Any] = (await system.requester.api(f"STREAM.INFO.{system.subjects.stream('turns')}"))["state"]
    return state


async def listed(system: System, **wanted: Any) -> tuple[DeadEntry, ...]:
    """The letters that a list shows."""
    person = await system.client("ann")
    return (await person.call("dead.list", ListDead(**wanted), DeadPage)).entries
