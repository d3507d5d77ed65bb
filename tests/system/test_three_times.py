"""Each turn published three times at once, and three times more an hour later: one verdict, always in the same words.

The intake has no memory of its own for what is a repeat: the state of the session decides, whatever the clock says.
"""

import random

import pytest

from tests.fundamentals.reports import DONE
from tests.system.nothing_lost import as_remembered, assert_the_server_agrees, last_revision
from tests.system.observer import Observer
from tests.system.patience import each
from tests.system.processes import Fleet
from tests.system.repeater import DECIDED_S, Repeater, decoded, publish_turns
from tests.system.runners import Runners
from tests.waiting import wait_until
from turngate_contracts import codec

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

TURNS = 2_000
HOUR_MS = 3_600_000


async def test_a_turn_published_three_times_now_and_an_hour_later_has_one_verdict(
    fleet: Fleet, observer: Observer, runners: Runners
):
    now = await fleet.start(2)
    (client,) = await runners.several(1)
    runner = await Repeater.start(client, observer)
    seed = random.randrange(10**6)
    print(f"three times: seed {seed}")
    await publish_turns(runner, TURNS, seed)
    await assert_the_server_agrees(observer, runner.ledger)
    first = {number: runner.told[number][0] for number in runner.sent}
    decided = await last_revision(observer)

    for process in now:
        process.terminate()
        assert await process.ended() == 0
    await fleet.start(2, TURNGATE_CLOCK_OFFSET_MS=str(HOUR_MS))
    runner.told.clear()
    await each(runner.sent, runner.publish_three_times)
    await wait_until(lambda: runner.words == 3 * len(first), DECIDED_S, "every repeat is answered")

    assert await last_revision(observer) == decided, "a repeat was saved as a new revision"
    for number, verdict in first.items():
        expected = verdict if runner.is_newest(number) else codec.encode(as_remembered(decoded(verdict)))
        assert set(runner.told[number]) == {expected}, f"an hour later {number} is told otherwise"
    later = await runner.report("later", 1, 1, DONE)
    assert decoded(later).at > max(decoded(told).at for told in first.values()) + HOUR_MS // 2, "no clock was moved"
    fleet.assert_no_crash_was_logged()
