"""The results of runs in a directory: `results.json`, the table made from it in `results.md`, and a chart a benchmark.

A run of some benchmarks replaces theirs and leaves the others as they are, as long as the machine and the versions are
the same; each says when it was measured, how long its rounds were, and how busy the machine was meanwhile.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from bench.charts import chart
from bench.noise import Noise
from bench.rows import Row, aligned, markdown

JSON: Final = "results.json"
TABLE: Final = "results.md"


class Run(Struct, frozen=True):
    """One benchmark's results. `at` is RFC 3339 in UTC; `options` names the lengths: full or quick."""

    benchmark: str
    at: str
    options: str
    noise: Noise
    rows: tuple[Row, ...]


class Results(Struct, frozen=True):
    """What was measured on one machine with one set of versions."""

    machine: dict[str, str]
    runs: tuple[Run, ...] = ()

    @property
    def rows(self) -> tuple[Row, ...]:
        """The rows of all benchmarks."""
        return tuple(row for run in self.runs for row in run.rows)

    def find(self, benchmark: str, name: str) -> float | None:
        """Return a figure; None where it was not measured."""
        return next((row.figure for row in self.rows if (row.benchmark, row.name) == (benchmark, name)), None)

    def joined(self, later: "Results") -> "Results":
        """Return the results of both; where both have a benchmark, the later one's, and of another machine nothing."""
        if self.machine != later.machine:
            return later
        runs = {run.benchmark: run for run in (*self.runs, *later.runs)}
        return Results(later.machine, tuple(runs.values()))


def read(directory: Path) -> Results | None:
    """Return the results in a directory; None where there are none, or none that this version wrote."""
    try:
        return msgspec.json.decode((directory / JSON).read_bytes(), type=Results)
    except (FileNotFoundError, msgspec.ValidationError):
        return None


def write(directory: Path, measured: Results) -> None:
    """Add results to those in a directory, and draw everything anew."""
    directory.mkdir(parents=True, exist_ok=True)
    before = read(directory)
    results = before.joined(measured) if before is not None else measured
    contents: dict[str, str] = {
        JSON: msgspec.json.format(msgspec.json.encode(results)).decode(),
        TABLE: document(results),
    }
    for run in results.runs:
        drawn = chart(run.benchmark, run.rows)
        if drawn:
            contents[f"{run.benchmark}.svg"] = drawn
    for name, content in contents.items():
        (directory / name).write_text(content.rstrip("\n") + "\n", encoding="utf-8")


def document(results: Results) -> str:
    """Return the results as a Markdown document: the machine, the figures and the noise."""
    return "\n".join(
        (
            "# Benchmarks\n",
            facts(results.machine),
            "",
            markdown(results.rows),
            "",
            "## How busy the machine was\n",
            "The same work before and after each benchmark. `waited` is its time by the clock in CPU times, `drift`",
            "the slower of both in the faster one's; well over 1 means that others used the machine, or that its clock",
            "changed. Then ratios and CPU times still say something, rates and latencies little.\n",
            noise_table(results.runs),
        )
    )


def facts(machine: Mapping[str, str]) -> str:
    """Return the machine in one line."""
    return " · ".join(f"{name} {value}" for name, value in machine.items())


def noise_table(runs: Sequence[Run]) -> str:
    """Return how busy the machine was at each benchmark as a Markdown table."""
    table = [("benchmark", "measured at", "rounds", "CPU before, after", "waited", "drift", "load", "quiet")]
    for run in runs:
        one, two = run.noise.before, run.noise.after
        cpu, load = f"{one.cpu_ms:.1f}, {two.cpu_ms:.1f} ms", f"{one.load:.1f}, {two.load:.1f}"
        quiet = "yes" if run.noise.quiet else "NO"
        waited, drift = f"{run.noise.waited:.2f}", f"{run.noise.drift:.2f}"
        table.append((run.benchmark, run.at, run.options, cpu, waited, drift, load, quiet))
    return aligned(table)
