"""Validation processes killed with SIGKILL under load: each attempt still has exactly one verdict, the one told."""

import random

import pytest

from tests.system.load import Load
from tests.system.nothing_lost import assert_nothing_lost
from tests.system.observer import Observer
from tests.system.processes import Fleet
from tests.system.runners import Runners

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

TURNS = 2_000
KILLS = 3


async def test_a_process_killed_three_times_under_load_loses_nothing(
    fleet: Fleet, observer: Observer, runners: Runners
):
    killed, _ = await fleet.start(2)

    async with Load(await runners.several(4), await runners.person(), random.randrange(10**6)) as load:
        for _ in range(KILLS):
            await load.goes_on(150)
            killed.kill()
            await load.goes_on(50)
            killed.start()
            await killed.ready()
            await observer.assert_sequences_rise()
        await load.reached(TURNS)

    assert killed.kills == KILLS
    await assert_nothing_lost(observer, load.ledger)
    fleet.assert_no_crash_was_logged()
