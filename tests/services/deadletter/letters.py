"""Reading the dead letters of a test's namespace."""

from tests.running import System
from turngate.jetstream.direct import read_page
from turngate_contracts import codec
from turngate_contracts.dead import DeadLetter


async def letters_of(system: System) -> list[DeadLetter]:
    """Every dead letter, the longest unchanged first."""
    found, _ = await read_page(system.requester, system.subjects.stream("dead"), 0, 256, system.subjects.dead_letters())
    return [codec.decode(stored.body, DeadLetter, "a DeadLetter") for stored in found]
