"""Cleaning a report before it is checked, without changing what it means.

White space around every text goes, a code fence that wraps a whole `details` or `preview` goes, and two block types
that newer runners send get the names of the rule book that `model` names. Nothing is ever cut, escaped or judged here,
and a report that needs nothing comes back as the same object, so that its bytes can be kept as they were sent.
"""

from typing import Any, Final

from msgspec.structs import astuple, fields, replace

from turngate_protocol.report.model import TYPE_ALIASES, Block, Option, RecoveredReport, Report
from turngate_protocol.text import WHITE_SPACE, trim

_FENCE: Final = "```"
_TAG: Final = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_+-"
_BLOCK_TEXTS: Final = tuple(info.name for info in fields(Block) if info.type is str)
_OPTION_TEXTS: Final = tuple(info.name for info in fields(Option) if info.type is str)
_TEXT_COUNT: Final = len(_BLOCK_TEXTS)
_aliases: Final = dict(TYPE_ALIASES)


def normalise(report: Report) -> Report:
    """Return `report` with its texts trimmed, whole-value fences stripped and block types named as the rules name them.

    Doing it again changes nothing.

    Args:
        report: a decoded report, accepted or not.

    Returns:
        The same object where nothing had to change, so that its bytes can be kept, else a new report; the one given is
        never modified.
    """
    recovered = isinstance(report, RecoveredReport)
    if not recovered and _is_normal(report):
        return report
    blocks = [_block(block) for block in report.blocks]
    normal = (Report if recovered else type(report))(trim(report.task_status), trim(report.headline), blocks)
    return report if normal == report else normal


def unfence(text: str) -> str:
    """Return `text` without the code fence that wraps all of it, as often as one does, and without white space around.

    A fence opens with three backticks and an optional tag of letters, digits, `_`, `+` and `-` on a line of their own,
    and closes with the last three backticks; fence lines in between belong to the content. A text that is only partly
    fenced is only trimmed.
    """
    start, end = _span(text, 0, len(text))
    while text.startswith(_FENCE, start, end):
        line_end = text.find("\n", start, end)
        if line_end < 0 or line_end >= end - len(_FENCE) or not text.endswith(_FENCE, start, end):
            break
        if text[start + len(_FENCE) : line_end].strip(_TAG):
            break
        # Positions instead of slices: a text of nothing but nested fences must not cost its square.
        start, end = _span(text, line_end + 1, end - len(_FENCE))
    return text[start:end]


def _span(text: str, start: int, end: int) -> tuple[int, int]:
    """Where `text[start:end]` begins and ends without the white space around it."""
    while start < end and text[start] in WHITE_SPACE:
        start += 1
    while start < end and text[end - 1] in WHITE_SPACE:
        end -= 1
    return start, end


def _is_normal(report: Report) -> bool:
    """Say quickly, for the usual report, that nothing has to change; False means that someone has to look.

    Stripping nothing gives the same object, which is faster to see than equal characters. What Python strips and the
    rules do not is found to need nothing later.
    """
    if report.task_status.strip() is not report.task_status or report.headline.strip() is not report.headline:
        return False
    for block in report.blocks:
        if block.type in _aliases or (block.details and block.details.startswith(_FENCE)):
            return False
        for text in filter(None, astuple(block)[:_TEXT_COUNT]):
            if text.strip() is not text:
                return False
        for name in block.related_files:
            if name.strip() is not name:
                return False
        for option in block.options:
            if option.preview and option.preview.startswith(_FENCE):
                return False
            for text in filter(None, astuple(option)):
                if text.strip() is not text:
                    return False
    return True


def _block(block: Block) -> Block:
    changes: dict[str, Any] = _trimmed(_BLOCK_TEXTS, astuple(block)[:_TEXT_COUNT])
    changes["details"] = unfence(block.details)
    changes["type"] = _aliases.get(changes["type"], changes["type"])
    changes["related_files"] = [trim(name) for name in block.related_files]
    changes["options"] = [_option(option) for option in block.options]
    return replace(block, **changes)


def _option(option: Option) -> Option:
    return replace(option, **{**_trimmed(_OPTION_TEXTS, astuple(option)), "preview": unfence(option.preview)})


def _trimmed(names: tuple[str, ...], texts: tuple[str, ...]) -> dict[str, str]:
    return dict(zip(names, map(trim, texts), strict=True))
