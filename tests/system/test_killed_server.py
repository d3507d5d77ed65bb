"""nats-server killed with SIGKILL under load, several times: nothing that a client was told is lost or told twice."""

import asyncio
import random

import pytest

from tests.system.load import Load
from tests.system.nothing_lost import assert_nothing_lost
from tests.system.observer import Observer
from tests.system.processes import Fleet
from tests.system.runners import Runners
from tests.waiting import wait_until
from turngate.jetstream.embedded import EmbeddedServer

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

TURNS = 2_000
KILLS = 5


async def test_a_server_killed_five_times_under_load_loses_nothing(
    own_server: EmbeddedServer, fleet: Fleet, observer: Observer, runners: Runners
):
    await fleet.start(2)

    async with Load(await runners.several(4), await runners.person(), random.randrange(10**6)) as load:
        for _ in range(KILLS):
            await load.goes_on(150)
            await asyncio.to_thread(own_server.kill)
            await wait_until(lambda: not observer.connection.is_connected, why="clients notice that the server is gone")
            await asyncio.to_thread(own_server.start)
            await observer.assert_sequences_rise()
        await load.reached(TURNS)

    await assert_nothing_lost(observer, load.ledger)
    fleet.assert_no_crash_was_logged()
