"""A verdict is the same whichever way its runner learns it: by mailbox, by asking, or by sending the attempt again."""

from typing import Any

import msgspec
import pytest

from tests.fundamentals.reports import CARD, DONE, UNCHECKED
from tests.running import System

PADDED: dict[str, Any] = {**DONE, "headline": f"  {DONE['headline']}  "}
"""A report that normalising changes."""


@pytest.mark.parametrize("report", [DONE, PADDED, CARD, UNCHECKED], ids=["fits", "normalised", "card", "rejected"])
async def test_what_submitting_returns_is_what_asking_tells(system: System, report: dict[str, Any]):
    client = await system.client()

    told = await client.submit_report("session-1", 1, report, mutated=True)

    found = await client.get("session-1", 1, attempt=1)
    again = await client.submit_report("session-1", 1, report, mutated=True)
    assert msgspec.json.encode(found.verdict) == msgspec.json.encode(told)
    assert msgspec.json.encode(again) == msgspec.json.encode(told)


async def test_a_verdict_holds_the_accepted_report_however_it_came(system: System):
    client = await system.client()

    verdict = await client.submit_report("session-1", 1, DONE, mutated=True)

    assert msgspec.json.decode(bytes(verdict.report)) == DONE
