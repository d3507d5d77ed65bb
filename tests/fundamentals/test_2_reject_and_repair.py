"""2. A report that does not fit is rejected with every problem at once, and the agent repairs it.

The turn changed files (`mutated`), so a report that calls it completed must say how it was checked. The verdict's text
is what the agent reads; its paths are JSON Pointers into the report.
"""

from tests.fundamentals.reports import DONE, UNCHECKED
from tests.running import System
from turngate_protocol.report.session import Outcome


async def test_a_rejection_names_each_problem_and_where_it_is(system: System):
    client = await system.client()

    verdict = await client.submit_report("session-1", 1, {**UNCHECKED, "headline": ""}, mutated=True)

    assert verdict.outcome is Outcome.REJECTED
    assert [(p.path, p.code) for p in verdict.problems] == [
        ("/headline", "headline_empty"),
        ("/blocks", "status_needs_verification"),
    ]
    assert verdict.text.startswith("REPORT_REJECTED: ")
    assert verdict.attempts_left == 3


async def test_a_repaired_report_is_the_next_attempt_of_the_same_turn(system: System):
    client = await system.client()
    await client.submit_report("session-1", 1, UNCHECKED, mutated=True)

    verdict = await client.submit_report("session-1", 1, DONE, attempt=2, mutated=True)

    assert verdict.outcome is Outcome.ACCEPTED


async def test_the_fourth_rejection_exhausts_the_turn(system: System):
    client = await system.client()
    outcomes = [
        (await client.submit_report("session-1", 1, UNCHECKED, attempt=n, mutated=True)).outcome for n in range(1, 5)
    ]
    assert outcomes == [Outcome.REJECTED, Outcome.REJECTED, Outcome.REJECTED, Outcome.EXHAUSTED]


async def test_even_what_is_no_json_gets_a_verdict(system: System):
    client = await system.client()

    verdict = await client.submit_report("session-1", 1, "I have finished everything, trust me!")

    assert [p.code for p in verdict.problems] == ["report_malformed"]
