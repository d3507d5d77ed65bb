"""Supervisors, runners and the server killed at random while objectives run: each still reaches the end it has.

A bounded version by default. TURNGATE_TEST_CHAOS=full runs 60 objectives with 3 supervisors and 6 runners for a minute,
and kills the server three times. The seed is printed; TURNGATE_TEST_SEED repeats it.
"""

import asyncio
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from tests import esm_answers as answers
from tests.system.esm_fleet import POOL, EsmFleet
from tests.system.esm_serial import problems
from tests.waiting import wait_until
from turngate.jetstream.embedded import EmbeddedServer
from turngate.jetstream.request import Requester
from turngate.runner import TurnClient
from turngate_contracts.errors import Unavailable

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


class Size(NamedTuple):
    """How much chaos."""

    objectives: int
    supervisors: int
    runners: int
    seconds: float
    every_s: float
    server_kills: int


SMALL: Final = Size(12, 2, 3, 10, 0.8, 1)
FULL: Final = Size(60, 3, 6, 60, 1.0, 3)
SIZE: Final = FULL if os.environ.get("TURNGATE_TEST_CHAOS") == "full" else SMALL
ENDS_S: Final = 120


def _slow(role: dict[str, Any]) -> dict[str, Any]:
    return role | {"delay_ms": 150}


WORKS, CLAIMS, BLOCKS = _slow(answers.WORKS), _slow(answers.CLAIMS), _slow(answers.BLOCKS)
PASSES, FAILS, RESUMES = _slow(answers.PASSES), _slow(answers.FAILS), _slow(answers.RESUMES)
REVIEWS: Final = {"critic": PASSES, "audit": PASSES, "recovery": RESUMES}
LIMIT: Final = {"failure": {"kind": "usage_limit", "message": "quota"}, "delay_ms": 150, "tokens": 2}

SCENARIOS: Final[dict[str, Any]] = {
    "done-*": [{"worker": WORKS, **REVIEWS}] * 4 + [{"worker": CLAIMS, **REVIEWS}],
    "rejected-*": [{"worker": CLAIMS, **REVIEWS, "critic": FAILS}] * 2 + [{"worker": CLAIMS, **REVIEWS}],
    "blocked-*": [{"worker": WORKS, **REVIEWS}] * 2 + [{"worker": BLOCKS, **REVIEWS}],
    "limited-*": [{"worker": WORKS, **REVIEWS}] * 3 + [{"worker": LIMIT, **REVIEWS}],
}
STATUS: Final = {"done": "complete", "rejected": "complete", "blocked": "blocked", "limited": "usage_limited"}


@pytest.fixture
def fleet(own_server: EmbeddedServer, namespace: str, tmp_path: Path) -> Iterator[EsmFleet]:
    made = EsmFleet(own_server.url, namespace, tmp_path)
    try:
        yield made
    finally:
        made.end()


async def test_every_objective_reaches_its_end_whoever_dies(
    fleet: EsmFleet, own_server: EmbeddedServer, namespace: str
):
    chance = random.Random(int(os.environ.get("TURNGATE_TEST_SEED", random.randrange(10**6))))
    await fleet.start(SIZE.supervisors, SIZE.runners, SCENARIOS)
    kinds = list(STATUS)
    sessions = [f"{kinds[number % len(kinds)]}-{number}" for number in range(SIZE.objectives)]
    async with await TurnClient.connect("ann", pool=POOL, url=own_server.url, namespace=namespace) as client:
        await asyncio.gather(*(client.objectives.create(s, f"Objective {s}", pool=POOL) for s in sessions))

        await _chaos(fleet, own_server, chance)

        for session in sessions:
            await _ends_well(client, session)
        await _all_is_quiet(client)

    assert sum(process.kills for process in (*fleet.supervisors, *fleet.runners)) >= SIZE.seconds / SIZE.every_s / 2
    assert fleet.crashes() == []


async def _chaos(fleet: EsmFleet, server: EmbeddedServer, chance: random.Random) -> None:
    """Kill one process after another, and the server now and then."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    server_kills = [began + SIZE.seconds * (n + 1) / (SIZE.server_kills + 1) for n in range(SIZE.server_kills)]
    while loop.time() < began + SIZE.seconds:
        await asyncio.sleep(SIZE.every_s)
        await asyncio.to_thread(fleet.kill_one, chance)
        if server_kills and loop.time() > server_kills[0]:
            server_kills.pop(0)
            await asyncio.to_thread(server.kill)
            await asyncio.to_thread(server.restart)


async def _ends_well(client: TurnClient, session: str) -> None:
    wanted = STATUS[session.partition("-")[0]]

    async def ended() -> Any:
        try:
            found = await client.objectives.get(session)
        except Unavailable:
            return None
        objective = found.state.objective
        return found if objective is not None and objective.status == wanted else None

    try:
        found = await wait_until(ended, ENDS_S, f"{session} is {wanted}")
    except AssertionError as error:
        last = await client.objectives.get(session)
        raise AssertionError(f"{error}; it is {last.activity} and {last.state}") from None
    history = [cause async for cause in client.objectives.history(session)]
    wrong = problems(found.state, history)
    assert wrong == [], f"{session}: {wrong}\n" + "\n".join(map(str, history))


async def _all_is_quiet(client: TurnClient) -> None:
    """Nothing is left in the queue of results, and nothing went to the dead letters."""
    requester = await Requester.start(client.connection)

    async def messages(stream: str) -> int:
        info = await requester.api(f"STREAM.INFO.{client.subjects.stream(stream)}")
        return int(info["state"]["messages"])

    async def no_results() -> bool:
        return await messages("esm") == 0

    await wait_until(no_results, 30, "every result was taken")
    assert await messages("dead") == 0
    await requester.stop()
