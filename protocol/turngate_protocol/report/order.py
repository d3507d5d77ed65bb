"""In which order a report is shown, and which digit picks which option.

What a person has to act on comes first, whatever order the model chose; blocks that tie keep the order in which they
were sent, so that a report looks the same every time. The rule book is the one that `model` names. Nothing here changes
a report, and none of it needs the report to be valid.
"""

from typing import Final

from msgspec import Struct

from turngate_protocol.report.model import CHOICES_MAX, Block, BlockType, Level, Option, Report

_PLACES: Final = {
    kind.value: place
    for place, kind in enumerate(
        (
            BlockType.DECISION,
            BlockType.QUESTION,
            BlockType.BLOCKED,
            BlockType.NEXT_STEP,
            BlockType.WARNING,
            BlockType.CHANGE,
            BlockType.FINDING,
            BlockType.VERIFICATION,
            BlockType.UNCLASSIFIED,
        )
    )
}
_LAST_PLACE: Final = _PLACES[BlockType.UNCLASSIFIED.value]
_URGENCY: Final = {level.value: place for place, level in enumerate(reversed(Level))}
_LAST_URGENCY: Final = len(_URGENCY)


class Choice(Struct, frozen=True, gc=False):
    """One option that a report offers.

    Attributes:
        block: the index of its block in the report.
        option: its index among the options of that block.
        number: the digit that picks it, 1 to 9, or 0 from the tenth option on, which is shown but has no key.
    """

    block: int
    option: int
    number: int


def order(report: Report | None) -> list[int]:
    """Return the indexes of the blocks in display order; without a report, none."""
    if report is None:
        return []
    blocks = report.blocks
    return sorted(range(len(blocks)), key=lambda at: _rank(blocks[at]))


def choices(report: Report | None) -> list[Choice]:
    """Return every option of every block that asks, in display order, numbered across the blocks."""
    # Most reports ask nothing, and this is on the path of every turn: they are not put in order for it.
    if report is None or not _offers(report.blocks):
        return []
    found: list[Choice] = []
    for at in order(report):
        block = report.blocks[at]
        if block.interactive:
            for option in range(len(block.options)):
                number = len(found) + 1
                found.append(Choice(at, option, number if number <= CHOICES_MAX else 0))
    return found


def _offers(blocks: list[Block]) -> bool:
    for block in blocks:  # a generator in any() costs twice as much  # noqa: SIM110
        if block.options:
            return True
    return False


def block(report: Report | None, block_id: str) -> Block | None:
    """Return the first block with this id, or None."""
    return next((block for block in report.blocks if block.id == block_id), None) if report is not None else None


def choice(report: Report | None, number: int) -> Choice | None:
    """Return the choice that the digit `number` picks, or None; 0 picks nothing."""
    return next((found for found in choices(report) if found.number == number), None) if number > 0 else None


def chosen(report: Report, picked: Choice) -> Option:
    """Return the option that `picked`, a choice of this report, stands for."""
    return report.blocks[picked.block].options[picked.option]


def first_interactive(report: Report | None) -> int:
    """Return the index of the first block, in display order, that asks for something, or -1."""
    return next((at for at in order(report) if report is not None and report.blocks[at].interactive), -1)


def has_interactive(report: Report | None) -> bool:
    """Say whether any block asks for something."""
    return report is not None and any(block.interactive for block in report.blocks)


def _rank(block: Block) -> tuple[int, int]:
    place = _PLACES.get(block.type, _LAST_PLACE)
    if block.type == BlockType.WARNING:
        return place, _URGENCY.get(block.severity, _LAST_URGENCY)
    if block.type == BlockType.FINDING:
        return place, _URGENCY.get(block.importance, _LAST_URGENCY)
    return place, 0
