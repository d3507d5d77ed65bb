"""A report as a card: the lines that `turngate_protocol.report.render` makes of it, put together as a page needs them.

Nothing of a card comes from anywhere else, so a page, a terminal and a log show the same: the order of the blocks, the
glyphs, the digits, which option is recommended, instructions in full. A line says by its kind what it is, never by its
text, so a model can't write a line of ours.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

from msgspec import Raw, Struct

from turngate.console.views.texts import Chip, count, one_line, size, words
from turngate_protocol.report import RenderOptions, Report, decode, render
from turngate_protocol.report.model import Block, Level, Status
from turngate_protocol.report.render import Line, LineKind, glyph
from turngate_protocol.text import byte_length

_STATUS: Final = {
    Status.COMPLETED.value: "good",
    Status.COMPLETED_WITH_NOTES.value: "good",
    Status.NEEDS_ACTION.value: "ask",
    Status.BLOCKED.value: "bad",
    Status.FAILED.value: "bad",
}
_GLYPH: Final = {"?": "ask", "⛔": "bad", "⚠": "warn", "✓": "good", "✗": "bad", "◐": "warn", "Δ": "info", "•": "info"}
_URGENT: Final = frozenset({Level.HIGH.value, Level.CRITICAL.value})
_INDENT: Final = 4
_EVERYTHING: Final = RenderOptions(expand_all=True)


class Field(Struct, frozen=True):
    """A labelled text of a card; `long` when it has several lines."""

    label: str
    text: str
    long: bool = False


class CardOption(Struct, frozen=True):
    """A way forward. `number` is its digit, 0 for none; `value` names it in an answer, `name` by block and option.

    `words` is the label as it is, to begin a text with.
    """

    number: int
    value: str
    name: str
    label: str
    words: str
    effect: str
    recommended: bool
    fields: tuple[Field, ...]
    instruction: Field | None


class Details(Struct, frozen=True):
    """What a block has behind its fold, and how much that is."""

    text: str
    size: str


class CardBlock(Struct, frozen=True):
    """One block: its glyph in a tone, what it is, and what stands under it."""

    glyph: str
    tone: str
    label: str
    id: str
    summary: str
    fields: tuple[Field, ...]
    options: tuple[CardOption, ...]
    details: Details | None
    not_run: bool


class Card(Struct, frozen=True):
    """A report to look at. `not_run` are the checks that ran nothing, which stay folded away."""

    status: Chip
    headline: str
    blocks: tuple[CardBlock, ...]
    not_run: tuple[CardBlock, ...]
    not_run_label: str
    keys: int


def card(raw: Raw) -> Card | None:
    """Return the card of a report as it is stored, or None where there is none."""
    report = decode(bytes(raw))
    if not isinstance(report, Report):
        return None
    lines = render(report, _EVERYTHING)
    blocks = [
        _block(report.blocks[at], list(group)) for at, group in groupby(lines[1:], lambda line: line.block) if at >= 0
    ]
    not_run = tuple(block for block in blocks if block.not_run)
    were = "check was not run" if len(not_run) == 1 else "checks were not run"
    return Card(
        Chip(words(report.task_status), _STATUS.get(report.task_status, "idle")),
        one_line(report.headline),
        tuple(block for block in blocks if not block.not_run),
        not_run,
        f"{len(not_run)} {were}",
        sum(option.number > 0 for block in blocks for option in block.options),
    )


def _block(block: Block, lines: Sequence[Line]) -> CardBlock:
    head, _, summary = lines[0].text.partition(": ")
    label, _, block_id = head[len(glyph(block)) + 1 :].rpartition(" ")
    own: list[str] = []
    details: list[str] = []
    options: list[list[Line]] = []
    for line in lines[1:]:
        if line.kind is LineKind.DETAILS:
            details.append(line.text)
        elif line.kind is LineKind.OPTION:
            options.append([line])
        elif options:
            options[-1].append(line)
        else:
            own.append(line.text)
    return CardBlock(
        glyph(block),
        _tone(block),
        label,
        block_id,
        summary,
        tuple(_fields(own, _INDENT)),
        tuple(_option(block, at, given) for at, given in enumerate(options)),
        _details(block, details),
        block.ran_nothing,
    )


def _option(block: Block, at: int, lines: Sequence[Line]) -> CardOption:
    option, number = block.options[at], lines[0].option
    recommended = option.id == block.recommendation
    # The line is `KEY LABEL[ (recommended)] [EFFECT]`: what is around the label is known, so no label can pass for it.
    label = lines[0].text[_INDENT:].lstrip(" ").partition(" ")[2].removesuffix(f" [{one_line(option.effect)}]")
    runs = [line.text for line in lines if line.kind is LineKind.INSTRUCTION]
    told = [line.text for line in lines if line.kind is LineKind.FIELD]
    name = one_line(f"{block.id}/{option.id}")
    return CardOption(
        number,
        str(number) if number else name,
        name,
        label.removesuffix(" (recommended)") if recommended else label,
        option.label,
        one_line(option.effect),
        recommended,
        tuple(_fields(told, 2 * _INDENT)),
        next(_fields(runs, 2 * _INDENT), None),
    )


def _fields(texts: Sequence[str], indent: int) -> Iterator[Field]:
    """Put lines together again: a label stands at the indentation, the lines of a longer value deeper."""
    label, value = "", list[str]()
    deeper = " " * (indent + 2)
    for text in texts:
        if value and text.startswith(deeper):
            value.append(text[len(deeper) :])
            continue
        if value:
            yield _field(label, value)
        label, colon, first = text[indent:].partition(": ")
        label, value = (label, [first]) if colon else (label.removesuffix(":"), [""])
    if value:
        yield _field(label, value)


def _field(label: str, value: Sequence[str]) -> Field:
    # A value of several lines stands below its label, which has nothing beside it then.
    long = len(value) > 1
    return Field(label, "\n".join(value[1:] if long else value), long)


def _details(block: Block, texts: Sequence[str]) -> Details | None:
    if not texts:
        return None
    text = next(_fields(texts, _INDENT)).text
    return Details(text, f"{size(byte_length(block.details))} in {count(text.count(chr(10)) + 1, 'line')}")


def _tone(block: Block) -> str:
    if _URGENT & {block.severity, block.importance}:
        return "bad"
    return _GLYPH.get(glyph(block), "idle")
