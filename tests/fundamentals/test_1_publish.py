"""1. A turn goes in, a verdict comes out.

A runner hosts an agent. When the agent's turn ends with a report, the runner publishes it and waits for the verdict.
`system` is a NATS server with the topology and one validation process; `client` is what a runner uses.
"""

from tests.fundamentals.reports import DONE
from tests.running import System
from turngate_protocol.report.session import Outcome


async def test_a_good_report_is_accepted(system: System):
    client = await system.client("runner-1", pool="web")

    verdict = await client.submit_report("session-1", turn=1, report=DONE, mutated=True)

    assert verdict.outcome is Outcome.ACCEPTED


async def test_what_is_known_of_a_session_can_be_asked_for_at_any_time(system: System):
    client = await system.client("runner-1", pool="web")
    await client.submit_report("session-1", turn=1, report=DONE, mutated=True)

    found = await client.get("session-1", turn=1, attempt=1)

    assert found.state.pool == "web"
    assert found.state.current.turn == 1
    assert found.verdict is not None
    assert found.verdict.outcome is Outcome.ACCEPTED
