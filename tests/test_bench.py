"""The benchmark command runs, and what it writes can be read; how fast anything is belongs into `make bench`."""

import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from bench import events, peers, tasks
from bench.__main__ import BENCHMARKS
from bench.charts import chart
from bench.load import Span
from bench.noise import Calibration, Noise
from bench.options import Options
from bench.pipeline import Round
from bench.results import Results, Run, document, read, write
from bench.rig import Cpu
from bench.rows import Row, Target, median_row
from bench.scale import BEGIN, END, MEASURED, table

ROOT = Path(__file__).parent.parent
QUIET = Noise(Calibration(20.0, 20.4, 0.3), Calibration(20.2, 20.5, 0.4))
BUSY = Noise(Calibration(20.0, 61.0, 8.0), Calibration(24.0, 30.0, 9.1))
ROWS = (
    median_row("pipeline", "no-op", (9_000, 10_000, 12_000), "turns/s"),
    median_row("pipeline", "service", (3_900, 4_000, 4_100), "turns/s", Target(5_000, at_least=True), ceiling="no-op"),
    Row("pipeline", "peer <a & b>", 1_000.0, "turns/s", ceiling="no-op"),
    Row("pipeline", "another peer", None, target=Target(3), note="left out: `make it` | first"),
)
TINY = Options(rounds=1, warm_up_s=0.05, seconds=0.1, latency_rounds=1, latency_turns=4, memory_turns=200, start_ups=1)
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


def test_peers_that_are_not_installed_are_left_out_with_what_installs_them():
    one = Round(Span(9_000, 1.0, ()), 9_000, Cpu(100, 100, 50))

    rows = peers.rows({"noop": [one], "checked": [one], "validation": [one]})

    notes = {row.name: row.note for row in rows if row.figure is None}
    assert notes["Turngate's client, guarantees left out / FastStream on JetStream"] == (
        "left out: `make bench-peers` installs it"
    )
    assert not any(row.missed for row in rows)


def test_a_peer_is_compared_round_by_round():
    fast, slow = (Round(Span(turns, 1.0, ()), turns, Cpu(100, 100, 50)) for turns in (9_000, 2_000))

    rows = peers.rows({"noop": [fast], "checked": [fast], "validation": [fast], "faststream": [slow]})

    ratio = next(
        row
        for row in rows
        if row.name.startswith("Turngate's client") and row.name.endswith("/ FastStream on JetStream")
    )
    assert (ratio.figure, str(ratio.target), ratio.met) == (4.5, "≥ 3", True)


@pytest.mark.parametrize(
    ("benchmark", "figure"),
    [
        (events, "8 subscribers: save to its event at each"),
        (tasks, "conclusion and validation: CPU, worker"),
    ],
)
def test_a_benchmark_has_its_figures_and_names_each_once(benchmark, figure):
    rows = benchmark.run(TINY)

    names = [row.name for row in rows]
    assert figure in names
    assert len(names) == len(set(names))
    assert {row.ceiling for row in rows} - {""} <= set(names)


def test_the_document_about_scale_has_the_table_that_is_made_from_results():
    text = (ROOT / "docs" / "scale.md").read_text()

    made = text.partition(BEGIN)[2].partition(END)[0]
    assert [line.split("|")[2].strip() for line in made.splitlines() if line.startswith("| ")] == [
        line.split("|")[2].strip() for line in table(Results({})).splitlines() if line.startswith("| ")
    ]


def test_what_is_derived_for_a_cluster_follows_from_the_figures():
    rows = tuple(Row(one.benchmark, one.row, 1_000.0) for one in MEASURED)

    said = table(Results({}, (Run("any", "2026-01-02T03:04:05Z", "full", QUIET, rows),)))

    # 2 TB, of which 0.6, by 1,000 bytes a turn over 90 days.
    assert "13,000,000 /day" in said
    assert "not measured" not in said


def test_the_shards_of_the_document_are_stable_and_a_new_one_takes_only_its_share():
    code = (ROOT / "docs" / "scale.md").read_text().partition("```python\n")[2].partition("```")[0]
    made: dict[str, Any] = {}
    exec(code, made)
    before = {f"s-{n}": made["shard_of"](f"s-{n}", ["tg1", "tg2"]) for n in range(900)}

    after = {session: made["shard_of"](session, ["tg1", "tg2", "tg3"]) for session in before}

    moved = [session for session in before if before[session] != after[session]]
    assert {after[session] for session in moved} == {"tg3"}
    assert 200 < len(moved) < 400


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
