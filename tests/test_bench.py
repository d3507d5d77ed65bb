"""The benchmark command runs; how fast anything is belongs into `make bench`."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_the_report_benchmark_prints_its_ratio_and_target(tmp_path):
    figures = tmp_path / "figures.json"

    done = subprocess.run(
        [sys.executable, "-m", "bench", "--only", "report", "--quick", "--json", figures],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )

    assert done.returncode == 0, done.stderr
    assert "11k: all four / json.loads" in done.stdout
    assert "≤ 1.6" in done.stdout
    assert [row["name"] for row in json.loads(figures.read_text())["rows"] if row["target"]] == [
        "11k: all four / json.loads"
    ]


def test_the_conclusion_benchmark_prints_its_ratio_and_targets(tmp_path):
    figures = tmp_path / "figures.json"

    done = subprocess.run(
        [sys.executable, "-m", "bench", "--only", "conclusion", "--quick", "--json", figures],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )

    assert done.returncode == 0, done.stderr
    assert [(row["name"], row["target"]) for row in json.loads(figures.read_text())["rows"] if row["target"]] == [
        ("parse and enrich / C loader", "≤ 2"),
        ("64 KB of prose before the block", "≤ 20"),
    ]
