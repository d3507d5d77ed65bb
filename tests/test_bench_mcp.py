"""The benchmark of `turngate mcp` runs through; how fast it is belongs into `make bench`."""

import pytest
from msgspec.structs import replace

from bench import mcp
from bench.options import QUICK
from turngate_contracts.topology import Durability

pytestmark = pytest.mark.slow


def test_it_compares_starts_and_reports_with_those_of_a_bare_server(monkeypatch):
    monkeypatch.setattr(mcp, "Durability", [Durability.RELAXED])
    monkeypatch.setattr(mcp, "_WARM_UP", 1)

    rows = mcp.run(replace(QUICK, start_ups=1, latency_turns=2))

    assert all(row.figure is not None and row.figure > 0 for row in rows if "adds" not in row.name)
    assert [(row.name, str(row.target)) for row in rows if row.target] == [
        ("start / bare server", "≤ 1.3"),
        ("relaxed: Report adds", "≤ 15"),
    ]
