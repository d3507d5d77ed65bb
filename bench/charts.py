"""Charts of results as SVG, written by hand: horizontal bars, each group with its ceiling on top and ratios to it.

The colours follow the reader's, light or dark, also where the image is embedded in a page. All text is escaped: names
come from rows, which may quote what a program said.
"""

from collections.abc import Sequence
from typing import Final
from xml.sax.saxutils import escape

from bench.rows import Row, shown

_WIDTH: Final = 900
_LABELS: Final = 400
_BARS: Final = 320
_LINE: Final = 24
_BAR: Final = 14
_MARGIN: Final = 16
_STYLE: Final = """\
  <style>
    svg { color-scheme: light dark; font: 13px system-ui, sans-serif }
    text { fill: #1c2430 } .title { font-weight: 600; font-size: 15px } .group { fill: #5a6472 }
    .ceiling { fill: #b9c2cf } .bar { fill: #2f6fde } .missed { fill: #c2410c } .back { fill: #ffffff }
    @media (prefers-color-scheme: dark) {
      text { fill: #e6e9ee } .group { fill: #9aa5b4 } .ceiling { fill: #4a5666 } .bar { fill: #6ea0ff }
      .missed { fill: #fb923c } .back { fill: #12161c }
    }
  </style>"""


def chart(benchmark: str, rows: Sequence[Row]) -> str:
    """Return the chart of a benchmark's rows, or nothing where no row has a ceiling to be compared with.

    Args:
        benchmark: the title.
        rows: the benchmark's rows; those that name a ceiling are drawn below it.
    """
    groups = _groups(rows)
    if not groups:
        return ""
    lines: list[str] = []
    y = _MARGIN + 14
    lines.append(_text("title", _MARGIN, y, benchmark))
    for group in groups:
        y += _LINE + 6
        lines.append(_text("group", _MARGIN, y, group[0].unit or "ratio"))
        most = max(row.figure or 0 for row in group) or 1
        for row in group:
            y += _LINE
            lines += _bar(y, row, group[0], most)
    height = y + _MARGIN
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}"'
        f' role="img" aria-label="{escape(benchmark, {chr(34): "&quot;"})}">'
    )
    back = f'  <rect class="back" width="{_WIDTH}" height="{height}"/>'
    return "\n".join((head, _STYLE, back, *lines, "</svg>"))


def _groups(rows: Sequence[Row]) -> list[list[Row]]:
    """Return each ceiling with the rows that are compared with it, as far as they have figures."""
    by_name = {row.name: row for row in rows}
    groups: dict[str, list[Row]] = {}
    for row in rows:
        ceiling = by_name.get(row.ceiling)
        if ceiling is None or ceiling is row or ceiling.figure is None or row.figure is None:
            continue
        groups.setdefault(ceiling.name, [ceiling]).append(row)
    return list(groups.values())


def _bar(y: int, row: Row, ceiling: Row, most: float) -> list[str]:
    figure = row.figure or 0.0
    width = max(1.0, max(0.0, figure) / most * _BARS)
    said = shown(figure)
    if row is not ceiling and ceiling.figure:
        said += f"  (x{shown(figure / ceiling.figure)})"
    kind = "ceiling" if row is ceiling else "missed" if row.missed else "bar"
    x = _MARGIN + _LABELS
    return [
        _text("label", _MARGIN, y, _short(row.name)),
        f'  <rect class="{kind}" x="{x}" y="{y - _BAR + 3}" width="{width:.1f}" height="{_BAR}" rx="2"/>',
        _text("figure", round(x + width + 8), y, said),
    ]


def _short(name: str, most: int = 58) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"


def _text(kind: str, x: int, y: int, text: str) -> str:
    return f'  <text class="{kind}" x="{x}" y="{y}">{escape(text)}</text>'
