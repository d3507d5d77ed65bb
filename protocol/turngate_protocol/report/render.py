"""A report as lines that a terminal, a page or a log can show.

The display rules of the rule book that `model` names: what comes first (`order`), which marker a block gets, what stays
folded away. A line carries what it is and what it belongs to, so nobody has to parse its text. What the model wrote is
hostile: each line of it is shown without control and bidirectional characters. Colours, widths and keys belong to the
caller, and nothing here changes or judges a report.
"""

from collections.abc import Iterator, Set
from enum import StrEnum
from typing import Final

from msgspec import Struct

from turngate_protocol.report.model import Block, BlockType, Effect, Option, Report, VerifyStatus
from turngate_protocol.report.order import choices, order
from turngate_protocol.text import byte_length, visible

_LABELS: Final = {kind.value: kind.value.replace("_", " ").capitalize() for kind in BlockType}
_GLYPHS: Final = {
    BlockType.DECISION.value: "?",
    BlockType.QUESTION.value: "?",
    BlockType.NEXT_STEP.value: "?",
    BlockType.BLOCKED.value: "⛔",
    BlockType.WARNING.value: "⚠",
    BlockType.FINDING.value: "•",
    BlockType.CHANGE.value: "Δ",
}
_VERIFY_GLYPHS: Final = {
    VerifyStatus.PASSED.value: "✓",
    VerifyStatus.FAILED.value: "✗",
    VerifyStatus.PARTIAL.value: "◐",
}
# In the order in which they are shown; fields of another type than the block's are shown too, a reader should see them.
_FIELDS: Final = (
    ("status", "Status"),
    ("severity", "Severity"),
    ("importance", "Importance"),
    ("question", "Question"),
    ("blocker", "Blocker"),
    ("required_action", "Required action"),
    ("impact", "Impact"),
    ("evidence", "Evidence"),
    ("limitation", "Limitation"),
    ("required_to_verify", "Required to verify"),
    ("reason_unclassified", "Why unclassified"),
    ("suggested_type", "Suggested type"),
)
_INDENT: Final = "    "
_TAB: Final = 4


class LineKind(StrEnum):
    """What a line is, so that it can be styled without reading it."""

    HEADER = "header"
    BLOCK = "block"
    FIELD = "field"
    OPTION = "option"
    INSTRUCTION = "instruction"
    DETAILS = "details"


class Line(Struct, frozen=True, gc=False):
    """One line of a rendered report.

    Attributes:
        kind: what the line is.
        text: what to show, without control characters.
        block: the index of its block in the report, or -1 for the header and the footnote.
        block_id: the id of that block as the model sent it (not for showing), or empty.
        option: the digit that picks the option that this line belongs to, or 0.
    """

    kind: LineKind
    text: str
    block: int = -1
    block_id: str = ""
    option: int = 0


class RenderOptions(Struct, frozen=True):
    """How much of a report is shown.

    Attributes:
        expanded: the ids of the blocks whose details are shown.
        expand_all: show the details of every block.
        hide_not_run: fold verification blocks that ran nothing into one footnote, unless they are expanded.
    """

    expanded: Set[str] = frozenset()
    expand_all: bool = False
    hide_not_run: bool = False


_DEFAULT: Final = RenderOptions()
_EVERYTHING: Final = RenderOptions(expand_all=True)


def render(report: Report, options: RenderOptions = _DEFAULT) -> list[Line]:
    """Return the lines of a report: the header, each block in display order, and a footnote for what was folded away.

    Args:
        report: a decoded report; it need not be valid.
        options: how much of it to show.
    """
    status = _one_line(report.task_status.replace("_", " "))
    lines = [Line(LineKind.HEADER, f"[{status}] {_one_line(report.headline)}")]
    numbers = {(choice.block, choice.option): choice.number for choice in choices(report)}
    hidden = 0
    for at in order(report):
        block = report.blocks[at]
        if _is_hidden(block, options):
            hidden += 1
        else:
            lines.extend(_block(block, at, numbers, _is_expanded(block, options)))
    if hidden:
        what = "1 check that was not run is" if hidden == 1 else f"{hidden} checks that were not run are"
        lines.append(Line(LineKind.DETAILS, f"{what} not shown"))
    return lines


def plain_text(report: Report) -> str:
    """Return a report as text with everything expanded."""
    return "\n".join(line.text for line in render(report, _EVERYTHING))


def hidden_not_run_count(report: Report | None, options: RenderOptions = _DEFAULT) -> int:
    """Return how many verification blocks `options` folds away because they ran nothing."""
    return 0 if report is None else sum(_is_hidden(block, options) for block in report.blocks)


def glyph(block: Block) -> str:
    """Return the one character that marks a block; that of a verification says how it went."""
    if block.type == BlockType.VERIFICATION:
        return _VERIFY_GLYPHS.get(block.status, "○")
    return _GLYPHS.get(block.type, "~")


def _is_expanded(block: Block, options: RenderOptions) -> bool:
    return options.expand_all or block.id in options.expanded


def _is_hidden(block: Block, options: RenderOptions) -> bool:
    return options.hide_not_run and block.ran_nothing and not _is_expanded(block, options)


def _block(block: Block, at: int, numbers: dict[tuple[int, int], int], expanded: bool) -> Iterator[Line]:
    label = _LABELS.get(block.type) or _one_line(block.type)
    text = f"{glyph(block)} {label} {_one_line(block.id)}: {_one_line(block.summary)}"
    yield Line(LineKind.BLOCK, text, at, block.id)
    for field in _fields(block):
        for text in field:
            yield Line(LineKind.FIELD, text, at, block.id)
    if block.interactive:
        for index, option in enumerate(block.options):
            number = numbers[at, index]
            for kind, text in _option(option, number, recommended=option.id == block.recommendation):
                yield Line(kind, text, at, block.id, number)
    if block.details:
        if expanded:
            texts = _labelled("Details", block.details, _INDENT)
        else:
            count = len(_lines(block.details))
            size = f"{byte_length(block.details)} bytes in {count} {'line' if count == 1 else 'lines'}"
            texts = iter((f"{_INDENT}Details: {size}, not shown",))
        for text in texts:
            yield Line(LineKind.DETAILS, text, at, block.id)


def _fields(block: Block) -> Iterator[Iterator[str]]:
    for name, label in _FIELDS:
        value = getattr(block, name)
        if value:
            yield _labelled(label, value, _INDENT)
    if block.blocks_current_task is not None:
        yield _labelled("Blocks this task", "yes" if block.blocks_current_task else "no", _INDENT)
    files = [name for name in block.related_files if name]
    if files:
        yield _labelled("Files", ", ".join(map(_one_line, files)), _INDENT)
    if block.recommendation:
        yield _labelled("Recommendation", block.recommendation, _INDENT)
    if block.recommendation_reason:
        yield _labelled("Because", block.recommendation_reason, _INDENT)


def _option(option: Option, number: int, *, recommended: bool) -> Iterator[tuple[LineKind, str]]:
    key = f"{number}." if number else " ·"
    mark = " (recommended)" if recommended else ""
    yield LineKind.OPTION, f"{_INDENT}{key} {_one_line(option.label)}{mark} [{_one_line(option.effect)}]"
    indent = _INDENT * 2
    for label, value in (
        ("Description", option.description),
        ("Consequence", option.consequence),
        ("Preview", option.preview),
    ):
        if value:
            for text in _labelled(label, value, indent):
                yield LineKind.FIELD, text
    if option.instruction:
        # In full, whatever its effect: a person must see what picking the option would run.
        label = "Runs" if option.effect == Effect.DISPATCH else "Instruction"
        for text in _labelled(label, option.instruction, indent):
            yield LineKind.INSTRUCTION, text


def _labelled(label: str, value: str, indent: str) -> Iterator[str]:
    """The lines of a value under its label: beside it where there is one, indented below it where there are more."""
    lines = _lines(value)
    if len(lines) == 1:
        yield f"{indent}{label}: {lines[0]}"
        return
    yield f"{indent}{label}:"
    for line in lines:
        yield f"{indent}  {line}"


def _lines(value: str) -> list[str]:
    # Tabs are spread here because `visible` would show each as an escape, and most of them indent code.
    lines = value.replace("\r\n", "\n").split("\n")
    return [visible(line.expandtabs(_TAB)) for line in lines]


def _one_line(value: str) -> str:
    return visible(value) if "\n" not in value else " ".join(_lines(value))
