"""What a benchmark found: rows with a figure, its spread and its target, as a Markdown table.

A figure alone says little on a machine that others share, so most rows are medians of rounds with the lowest and the
highest beside them, and the ones with a target are ratios of two things that were measured in the same run.
"""

import statistics
from collections.abc import Iterable, Sequence

from msgspec import Struct


class Target(Struct, frozen=True):
    """What a figure should reach.

    Attributes:
        limit: the figure that just reaches it.
        at_least: whether more is better.
        required: whether missing it makes `--check` fail; the others are aims for later.
    """

    limit: float
    at_least: bool = False
    required: bool = True

    def met_by(self, figure: float) -> bool:
        """Say whether a figure reaches the target."""
        return figure >= self.limit if self.at_least else figure <= self.limit

    def __str__(self) -> str:
        """Return the target as the table shows it."""
        return f"{'≥' if self.at_least else '≤'} {self.limit:g}{'' if self.required else ' (aim)'}"


class Row(Struct, frozen=True):
    """One figure.

    Attributes:
        benchmark: the benchmark's name.
        name: what was measured; unique within the benchmark.
        figure: the median, or None where there is none.
        unit: of the figure; empty for ratios.
        rounds: what the figure is the median of.
        target: what it should reach.
        note: what else is to be said; stands in place of a figure that is missing.
        ceiling: the name of the row that shows how far the same client can get, which charts put beside it.
    """

    benchmark: str
    name: str
    figure: float | None
    unit: str = ""
    rounds: tuple[float, ...] = ()
    target: Target | None = None
    note: str = ""
    ceiling: str = ""

    @property
    def met(self) -> bool | None:
        """Whether the target was reached; None where there is none, or nothing to compare with it."""
        return None if self.target is None or self.figure is None else self.target.met_by(self.figure)

    @property
    def missed(self) -> bool:
        """Whether a required target was not reached."""
        return self.target is not None and self.target.required and not self.met


def median_row(
    benchmark: str,
    name: str,
    rounds: Iterable[float],
    unit: str = "",
    target: Target | None = None,
    note: str = "",
    ceiling: str = "",
) -> Row:
    """Return the row of a median, with the rounds that it was taken from."""
    values = tuple(rounds)
    return Row(benchmark, name, statistics.median(values), unit, values, target, note, ceiling)


def paired(these: Sequence[float], those: Sequence[float]) -> list[float]:
    """Return the ratios of figures that were measured one right after the other."""
    return [this / that for this, that in zip(these, those, strict=True)]


def markdown(rows: Sequence[Row]) -> str:
    """Return the rows as a Markdown table."""
    return aligned([("benchmark", "figure", "median", "min … max", "target", "met"), *map(_cells, rows)])


def aligned(table: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table whose columns are aligned for reading in a terminal; its first row is the head."""
    table = [[cell.replace("|", "\\|").replace("\n", " ") for cell in cells] for cells in table]
    widths = [max(len(cells[at]) for cells in table) for at in range(len(table[0]))]
    lines = ["| " + " | ".join(c.ljust(w) for c, w in zip(cells, widths, strict=True)) + " |" for cells in table]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def _cells(row: Row) -> tuple[str, str, str, str, str, str]:
    figure = row.note if row.figure is None else f"{shown(row.figure)} {row.unit}".rstrip()
    if row.figure is not None and row.note:
        figure += f" ({row.note})"
    spread = f"{shown(min(row.rounds))} … {shown(max(row.rounds))}" if len(row.rounds) > 1 else ""
    target = str(row.target) if row.target else "-"
    met = {None: "-" if row.target is None else "unknown", True: "yes", False: "NO"}[row.met]
    return row.benchmark, row.name, figure, spread, target, met


def shown(value: float) -> str:
    """Return a figure with as many digits as it deserves."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"
