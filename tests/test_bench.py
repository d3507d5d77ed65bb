"""The benchmark command runs, and what it writes can be read; how fast anything is belongs into `make bench`."""

import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

from bench.__main__ import BENCHMARKS
from bench.charts import chart
from bench.noise import Calibration, Noise
from bench.results import Results, Run, document, read, write
from bench.rows import Row, Target, median_row
from bench.scale import table

ROOT = Path(__file__).parent.parent
QUIET = Noise(Calibration(20.0, 20.4, 0.3), Calibration(20.2, 20.5, 0.4))
BUSY = Noise(Calibration(20.0, 61.0, 8.0), Calibration(24.0, 30.0, 9.1))
ROWS = (
    median_row("pipeline", "no-op", (9_000, 10_000, 12_000), "turns/s"),
    median_row("pipeline", "service", (3_900, 4_000, 4_100), "turns/s", Target(5_000, at_least=True), ceiling="no-op"),
    Row("pipeline", "peer <a & b>", 1_000.0, "turns/s", ceiling="no-op"),
    Row("pipeline", "another peer", None, target=Target(3), note="left out: `make it` | first"),
)
SVG = "{http://www.w3.org/2000/svg}"


def bench(*arguments: object) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "bench", *map(str, arguments)], cwd=ROOT, capture_output=True, text=True
    )


def test_the_report_benchmark_prints_its_ratio_and_target(tmp_path):
    done = bench("--only", "report", "--quick", "--out", tmp_path)

    assert done.returncode == 0, done.stderr
    assert "11k: all four / json.loads" in done.stdout
    assert "≤ 1.6" in done.stdout
    assert targets(tmp_path) == [("11k: all four / json.loads", "≤ 1.6")]


def test_the_conclusion_benchmark_prints_its_ratio_and_targets(tmp_path):
    done = bench("--only", "conclusion", "--quick", "--out", tmp_path)

    assert done.returncode == 0, done.stderr
    assert targets(tmp_path) == [("parse and enrich / C loader", "≤ 2"), ("64 KB of prose before the block", "≤ 20")]


def test_each_benchmark_is_listed_with_what_it_measures():
    done = bench("--list")

    assert done.returncode == 0, done.stderr
    listed = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
    assert list(listed) == list(BENCHMARKS)


def test_results_are_a_table_with_medians_spreads_targets_and_reasons():
    said = document(Results({"cores": "2", "python": "3.11"}, (run("pipeline", QUIET), run("latency", BUSY))))

    assert said == EXPECTED


def test_a_later_run_replaces_its_own_benchmark_only(tmp_path):
    write(tmp_path, Results({"cores": "2"}, (run("pipeline", QUIET), run("latency", QUIET))))

    write(tmp_path, Results({"cores": "2"}, (run("pipeline", BUSY),)))

    found = read(tmp_path)
    assert found is not None
    assert {one.benchmark: one.noise for one in found.runs} == {"pipeline": BUSY, "latency": QUIET}


def test_results_of_another_machine_are_not_mixed_in(tmp_path):
    write(tmp_path, Results({"cores": "64"}, (run("latency", QUIET),)))

    write(tmp_path, Results({"cores": "2"}, (run("pipeline", QUIET),)))

    found = read(tmp_path)
    assert found is not None
    assert [one.benchmark for one in found.runs] == ["pipeline"]


def test_a_chart_has_a_bar_for_each_figure_as_long_as_its_share():
    drawn = ET.fromstring(chart("pipeline", ROWS))

    bars = {bar.get("class"): float(bar.get("width", "0")) for bar in drawn.findall(f"{SVG}rect[@x]")}
    assert bars == {"ceiling": 320.0, "missed": 128.0, "bar": 32.0}


def test_a_chart_says_names_as_they_are_and_ratios_to_the_ceiling():
    drawn = ET.fromstring(chart("pipeline", ROWS))

    said = [text.text for text in drawn.findall(f"{SVG}text")]
    assert "peer <a & b>" in said
    assert "4,000  (x0.40)" in said


def test_a_chart_is_readable_on_dark_pages_too():
    assert "prefers-color-scheme: dark" in chart("pipeline", ROWS)


def test_rows_without_a_ceiling_make_no_chart():
    assert chart("pipeline", ROWS[:1]) == ""


def test_what_was_not_measured_is_missing_from_the_table_of_scale_with_its_command():
    said = table(Results({"cores": "2"}))

    assert "not measured" in said
    assert "python -m bench --only bytes" in said


def run(benchmark: str, noise: Noise) -> Run:
    return Run(benchmark, "2026-01-02T03:04:05Z", "quick", noise, ROWS if benchmark == "pipeline" else ())


def targets(directory: Path) -> list[tuple[str, str]]:
    found = read(directory)
    assert found is not None
    return [(row.name, str(row.target)) for row in found.rows if row.target]


EXPECTED = """\
# Benchmarks

cores 2 · python 3.11

| benchmark | figure       | median                       | min … max      | target | met     |
|-----------|--------------|------------------------------|----------------|--------|---------|
| pipeline  | no-op        | 10,000 turns/s               | 9,000 … 12,000 | -      | -       |
| pipeline  | service      | 4,000 turns/s                | 3,900 … 4,100  | ≥ 5000 | NO      |
| pipeline  | peer <a & b> | 1,000 turns/s                |                | -      | -       |
| pipeline  | another peer | left out: `make it` \\| first |                | ≤ 3    | unknown |

## How busy the machine was

The same work before and after each benchmark. `waited` is its time by the clock in CPU times, `drift`
the slower of both in the faster one's; well over 1 means that others used the machine, or that its clock
changed. Then ratios and CPU times still say something, rates and latencies little.

| benchmark | measured at          | rounds | CPU before, after | waited | drift | load     | quiet |
|-----------|----------------------|--------|-------------------|--------|-------|----------|-------|
| pipeline  | 2026-01-02T03:04:05Z | quick  | 20.0, 20.2 ms     | 1.02   | 1.01  | 0.3, 0.4 | yes   |
| latency   | 2026-01-02T03:04:05Z | quick  | 20.0, 24.0 ms     | 3.05   | 1.20  | 8.0, 9.1 | NO    |"""
