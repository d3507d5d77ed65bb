"""3. A turn that owes a report and ends without one is reminded, twice at most.

Which turns owe one is the operator's choice; by default those that changed something. Whether a turn changed something
is the runner's word, never the model's.
"""

from tests.fundamentals.reports import DONE
from tests.running import System
from turngate_protocol.report.session import EndingOutcome


async def test_a_turn_that_only_read_owes_nothing(system: System):
    client = await system.client()
    ended = await client.end_turn("session-1", 1, mutated=False)
    assert ended.outcome is EndingOutcome.SETTLED


async def test_a_turn_that_changed_something_is_reminded_and_may_then_report(system: System):
    client = await system.client()

    first = await client.end_turn("session-1", 1, ending=1, mutated=True)
    assert first.outcome is EndingOutcome.REMINDER
    assert "Report" in first.text

    await client.submit_report("session-1", 1, DONE, mutated=True)
    second = await client.end_turn("session-1", 1, ending=2, mutated=True)
    assert second.outcome is EndingOutcome.SETTLED


async def test_after_two_reminders_it_ends_unreported(system: System):
    client = await system.client()
    outcomes = [(await client.end_turn("session-1", 1, ending=n, mutated=True)).outcome for n in (1, 2, 3)]
    assert outcomes == [EndingOutcome.REMINDER, EndingOutcome.REMINDER, EndingOutcome.UNREPORTED]
