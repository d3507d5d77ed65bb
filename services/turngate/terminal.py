"""Drawing for people: cards, tables and coloured lines, safe to show whatever a model wrote.

Every plain text that is drawn goes through `turngate_protocol.text.visible`; only what `Terminal.paint` returned is
taken as it is. Colours appear on terminals only, not where NO_COLOR is set or TERM is `dumb`, and where FORCE_COLOR is
set. Lines are wrapped to a terminal's width, and left whole where a program reads them.

    terminal = Terminal()
    terminal.line("turn ", terminal.paint("accepted", "green", "bold"), " in 3 ms")
    terminal.card(report, title="session s1, turn 3")
    terminal.table(["session", "turns"], [["s1", "3"]], right={1})
"""

import os
import shutil
import sys
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, TextIO

from turngate_protocol.text import visible

if TYPE_CHECKING:
    from turngate_protocol.report import Block, Line, RenderOptions, Report

STYLES: Final[Mapping[str, str]] = {
    "bold": "1",
    "dim": "2",
    "inverse": "7",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "magenta": "35",
    "cyan": "36",
    "on_red": "41;97",
    "on_green": "42;30",
    "on_yellow": "43;30",
}
"""What `paint` takes."""

_STATUS: Final = {
    "completed": "on_green",
    "completed_with_notes": "on_green",
    "needs_action": "on_yellow",
    "blocked": "on_red",
    "failed": "on_red",
}
_GLYPH: Final = {"?": "yellow", "⛔": "red", "⚠": "yellow", "✓": "green", "✗": "red", "◐": "yellow", "Δ": "cyan"}
_BAR: Final = "│ "
_LEAST_WIDTH: Final = 30
_HANGING: Final = 2
_GAP: Final = 2


class Painted(str):
    """Text that is safe to write as it is; `plain` is what a person sees of it."""

    __slots__ = ("plain",)
    plain: str

    def __new__(cls, text: str, plain: str) -> "Painted":
        """Join what is written and what is seen."""
        made = super().__new__(cls, text)
        made.plain = plain
        return made


class _Part(NamedTuple):
    """A piece of a line that has one look; the text is visible already."""

    text: str
    styles: tuple[str, ...] = ()


class Terminal:
    """A stream that people read, terminal or not."""

    def __init__(self, stream: TextIO | None = None, *, colour: bool | None = None, width: int | None = None) -> None:
        """Find out what the stream can show.

        Args:
            stream: where to write; standard output by default.
            colour: whether to use colours; by default as the stream and the environment say.
            width: columns to wrap at, 0 for never; by default the terminal's width, and never elsewhere.
        """
        self.stream = sys.stdout if stream is None else stream
        self.colour = _wants_colour(self.stream) if colour is None else colour
        if width is None:
            width = shutil.get_terminal_size().columns if self.stream.isatty() else 0
        self.width = max(width, _LEAST_WIDTH) if width else 0

    def paint(self, text: str, *styles: str) -> Painted:
        """Return `text`, made visible, in some of STYLES where there are colours."""
        shown = text.plain if isinstance(text, Painted) else visible(text)
        if not self.colour or not styles or not shown:
            return Painted(shown, shown)
        return Painted(f"\x1b[{';'.join(STYLES[s] for s in styles)}m{shown}\x1b[0m", shown)

    def line(self, *pieces: str) -> None:
        """Write one line, made of plain texts and painted ones."""
        self.stream.write("".join(p if isinstance(p, Painted) else visible(p) for p in pieces) + "\n")

    def text(self, text: str, *styles: str) -> None:
        """Write a text of several lines, each made visible, such as a rejection."""
        for line in text.split("\n"):
            self.line(self.paint(line, *styles))

    def card(self, report: "Report", options: "RenderOptions | None" = None, *, title: str = "") -> None:
        """Draw a report as a card: status chip, blocks in display order, numbered options, the recommended one marked.

        Args:
            report: a report; it need not be valid.
            options: how much of it to show; nothing expanded by default.
            title: what stands above it, such as the session and the turn.
        """
        from turngate_protocol.report import RenderOptions, render

        lines = render(report, options or RenderOptions())
        places = _option_places(lines)
        self.line(self.paint("╭─", "dim"), self.paint(f" {title}", "bold") if title else "")
        for at, line in enumerate(lines):
            block = report.blocks[line.block] if line.block >= 0 else None
            if line.kind == "block" or (block is None and at):
                self.line(self.paint(_BAR.rstrip(), "dim"))
            for row in self._rows(_parts(report, line, block, places.get(at, -1))):
                self.line(self.paint(_BAR, "dim"), row)
        self.line(self.paint("╰─", "dim"))

    def table(self, head: Sequence[str], rows: Iterable[Sequence[str]], *, right: Collection[int] = ()) -> None:
        """Write a table with a head; on a terminal, rows that are too long for it are cut.

        Args:
            head: the columns' names.
            rows: as many cells each, plain or painted.
            right: the indexes of columns that are aligned to the right, such as numbers.
        """
        body = [[cell if isinstance(cell, Painted) else self.paint(cell) for cell in row] for row in rows]
        cells = [[self.paint(name, "bold") for name in head], *body]
        widths = [max(cell_width(row[column].plain) for row in cells) for column in range(len(head))]
        for row in cells:
            line = []
            left = self.width or sys.maxsize
            for column, cell in enumerate(row):
                last = column == len(row) - 1
                shown = self._cut(cell, left)
                space = " " * max(0, min(widths[column], left) - cell_width(shown.plain))
                padded = [space, shown] if column in right else [shown, "" if last else space]
                line += [*padded, "" if last else " " * _GAP]
                left = max(0, left - widths[column] - _GAP)
            self.stream.write("".join(line).rstrip() + "\n")

    def _cut(self, cell: Painted, width: int) -> Painted:
        if cell_width(cell.plain) <= width:
            return cell
        kept = cell.plain
        while kept and cell_width(kept) > max(0, width - 1):
            kept = kept[:-1]
        return Painted(f"{kept}…", f"{kept}…") if width else Painted("", "")

    def _rows(self, parts: Sequence[_Part]) -> list[Painted]:
        """Lay out a line of a card, wrapped where the terminal ends, each part in its look."""
        text = "".join(part.text for part in parts)
        rows = []
        indent = " " * (len(text) - len(text.lstrip(" ")) + _HANGING)
        for number, (start, end) in enumerate(_wrap(text, self.width - len(_BAR) if self.width else 0, len(indent))):
            row, at = [indent if number else ""], 0
            for part in parts:
                piece = part.text[max(0, start - at) : max(0, end - at)]
                row.append(self.paint(piece, *part.styles))
                at += len(part.text)
            rows.append(Painted("".join(row), ""))
        return rows


def cell_width(text: str) -> int:
    """Return how many columns a visible text takes on a terminal."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _wants_colour(stream: TextIO) -> bool:
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def _option_places(lines: "Sequence[Line]") -> dict[int, int]:
    """Which option of its block each option line is: from the tenth on all have the number 0."""
    seen: dict[int, int] = {}
    places = {}
    for at, line in enumerate(lines):
        if line.kind == "option":
            places[at] = seen.get(line.block, 0)
            seen[line.block] = places[at] + 1
    return places


def _parts(report: "Report", line: "Line", block: "Block | None", option: int) -> list[_Part]:
    """Split a line into parts by what its kind says, never by what a model wrote into it."""
    if line.kind == "header":
        chip = visible(report.task_status.replace("_", " "))
        if not line.text.startswith(f"[{chip}]"):  # an unknown status of several lines
            return [_Part(line.text)]
        headline = _Part(line.text[len(f"[{chip}]") :], ("bold",))
        return [_Part(f"[{chip}]", (_STATUS.get(report.task_status, "inverse"), "bold")), headline]
    if block is None or line.kind in ("details", "instruction"):
        return [_Part(line.text, ("cyan",) if line.kind == "instruction" else ("dim",))]
    if line.kind == "option":
        indent = len(line.text) - len(line.text.lstrip(" "))
        end = line.text.index(" ", indent + 1)
        recommended = block.options[option].id == block.recommendation
        mark = line.text[:indent][:-2] + ("★ " if recommended else "  ")
        look = ("bold", "green") if recommended else ("bold",)
        return [_Part(mark, ("green",)), _Part(line.text[indent:end], ("bold", "yellow")), _Part(line.text[end:], look)]
    head, colon, rest = line.text.partition(": ")
    if line.kind == "block":
        mark = head[:1]
        return [_Part(mark, (_GLYPH.get(mark, "dim"), "bold")), _Part(head[1:] + colon, ("bold",)), _Part(rest)]
    return [_Part(head + colon, ("dim",)), _Part(rest)]


def _wrap(text: str, width: int, indent: int) -> list[tuple[int, int]]:
    """Return where each row of a wrapped text begins and ends; rows but the first have `indent` columns less."""
    if not width or cell_width(text) <= width:
        return [(0, len(text))]
    rows = []
    start, room = 0, width
    while start < len(text):
        end, used, space = start, 0, -1
        while end < len(text) and used + cell_width(text[end]) <= room:
            # The indentation itself is no place to break.
            if text[end] == " " and text[start:end].strip(" "):
                space = end
            used += cell_width(text[end])
            end += 1
        if end < len(text) and space > start:
            end = space
        rows.append((start, max(end, start + 1)))
        start = max(end, start + 1)
        while start < len(text) and text[start] == " ":
            start += 1
        room = max(width - indent, _LEAST_WIDTH // 2)
    return rows
