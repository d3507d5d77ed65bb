"""The demo plays every plot in real processes, ends by itself, and fails loudly when verdicts do not add up."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.fundamentals.reports import DONE
from tests.running import System
from turngate.demo.asking import asked
from turngate.demo.delegating import delegated
from turngate.demo.plots import plots
from turngate.demo.stories import stories
from turngate.demo.tally import Tally
from turngate_protocol.report import BlockType, decode, normalise, validate
from turngate_protocol.report.model import Report
from turngate_protocol.report.rules import Rules


def play(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "turngate.cli.main", "demo", "--fast", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=90, env={**os.environ, **environment})


def test_a_fleet_plays_and_every_attempt_has_one_verdict():
    done = play("--json")
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert summary["failures"] == []
    assert summary["sessions"] >= 25
    assert summary["verdicts"]["exhausted"] > 0
    assert summary["verdicts"]["rejected"] > 0
    assert summary["endings"]["unreported"] > 0
    assert summary["buried_proposals"] > 0
    assert summary["cards_answered"] == sum(story.reply is not None for story in stories())
    assert summary["latency_ms"]["p99"] > 0
    objectives = summary["objectives"]
    assert objectives["count"] == len(plots())
    assert objectives["recoveries"] == objectives["blocked"] == objectives["usage_limited"] == 1
    assert summary["questions"]["count"] == len(asked())
    assert summary["questions"]["runners_restarted"] == 1
    assert summary["tasks"]["parents_told"] == len(delegated())


def test_a_person_sees_cards_progress_and_the_end_table():
    done = play()
    assert done.returncode == 0, done.stderr
    for shown in ("you press 1", "╭─ session", "sessions done", "latency p50", "each with exactly one verdict"):
        assert shown in done.stdout
    for shown in ("night-migration: recovery finished", "payout-report: blocked", "asker: killed", "end of its plot"):
        assert shown in done.stdout
    assert "\x1b" not in done.stdout, "no colours where nobody sees them"


def test_its_reports_use_every_block_type():
    seen: set[str] = set()
    for story in stories():
        for turn in story.turns:
            for written in turn.reports:
                report = decode(written.encode() if isinstance(written, str) else json.dumps(written).encode())
                if isinstance(report, Report) and not validate(normalise(report), Rules(mutated=turn.mutated)):
                    seen |= {block.type for block in report.blocks}
    assert seen == {kind.value for kind in BlockType}


def fact(**changes: Any) -> dict[str, Any]:
    told = {"kind": "verdict", "session": "s", "turn": 1, "attempt": 1, "outcome": "accepted", "codes": [], "ms": 1.0}
    return {**told, "buried": False, **changes}


async def test_what_the_state_does_not_confirm_is_a_failure(system: System):
    client = await system.client()
    await client.submit_report("s", 1, DONE, mutated=True)
    honest, twice, other, missing = Tally(), Tally(), Tally(), Tally()
    honest.add(fact())
    twice.add(fact())
    twice.add(fact())
    other.add(fact(outcome="rejected"))
    missing.add(fact())
    missing.add(fact(attempt=2))
    repeated = Tally()
    for _ in range(2):
        repeated.add({"kind": "prompt_done", "prompt": "task-1"})
    found = await asyncio.gather(*(t.disagreements(client) for t in (honest, twice, other, missing, repeated)))
    assert found[0] == []
    assert all(found[1:])


def test_nothing_of_it_is_left_behind(tmp_path: Path):
    done = play("--json", TMPDIR=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.iterdir()) == []
