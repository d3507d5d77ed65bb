"""When a report is accepted: every rule, every broken one named, in a fixed order.

This is the validator of the rule book that `model` names. Two of its rules depend on the turn rather than on the
report, so the same report can be right for one turn and wrong for another: see `Rules`. Nothing is trimmed here (that
is `normalise`, which a caller runs first), nothing raises, and the report is only read.
"""

from typing import Final

from msgspec import Struct

from turngate_protocol.report.checks import check_block
from turngate_protocol.report.model import (
    BLOCKS_MAX,
    HEADLINE_MAX,
    INTERACTIVE,
    JUDGED_BLOCKS,
    BlockType,
    Report,
    Status,
)
from turngate_protocol.report.problems import PROBLEMS_COUNTED, Problem, listed, quote

_STATUSES: Final = tuple(status.value for status in Status)
_DONE: Final = frozenset((Status.COMPLETED.value, Status.COMPLETED_WITH_NOTES.value))
_BLOCKED: Final = Status.BLOCKED.value
_FAILED: Final = Status.FAILED.value
_NEEDS_ACTION: Final = Status.NEEDS_ACTION.value
_VERIFICATION: Final = BlockType.VERIFICATION.value
_WAITING: Final = frozenset((Status.NEEDS_ACTION.value, Status.BLOCKED.value))
# A blocked block asks too, but what it says belongs to the status blocked.
_ASKING: Final = frozenset((BlockType.DECISION.value, BlockType.QUESTION.value, BlockType.NEXT_STEP.value))
_EXPLAINING: Final = frozenset((BlockType.FINDING.value, BlockType.WARNING.value, BlockType.BLOCKED.value))

_PROPOSALS: Final = (
    "say the word",
    "say so and i",
    "just say",
    "just tell me",
    "pick one",
    "how to fix",
    "want me to",
    "shall i",
    "i did not edit",
    "i have not edited",
)


class Rules(Struct, frozen=True, gc=False):
    """The rules that depend on the turn.

    Attributes:
        max_blocks: the most blocks a report may have; 0 or less selects 20.
        mutated: whether the turn changed anything: then "completed" has to show how that was checked.
    """

    max_blocks: int = BLOCKS_MAX
    mutated: bool = False


_DEFAULT: Final = Rules()


def validate(report: Report | None, rules: Rules = _DEFAULT) -> list[Problem]:
    """Return every problem of a report; none means that it is accepted.

    Args:
        report: a decoded and normalised report, or None where the turn gave none.
        rules: what the turn demands.

    Returns:
        The problems in order: status, headline, number of blocks, each block in turn, then the rules between the status
        and the blocks. Once there are `PROBLEMS_COUNTED`, the blocks that follow add none.
    """
    if report is None:
        return [missing_report()]
    problems: list[Problem] = []
    _check_head(report, problems)
    blocks = report.blocks
    limit = rules.max_blocks if rules.max_blocks > 0 else BLOCKS_MAX
    if len(blocks) > limit:
        more = " or more" if len(blocks) >= JUDGED_BLOCKS else ""
        message = f"There are {len(blocks)}{more} blocks; at most {limit} are allowed, merge or drop some."
        problems.append(Problem("/blocks", "blocks_too_many", message))
    seen: set[str] = set()
    types: set[str] = set()
    for at, block in enumerate(blocks):
        types.add(block.type)
        if len(problems) < PROBLEMS_COUNTED:
            check_block(block, at, seen, problems)
    _check_status(report, types, rules.mutated, problems)
    return problems


def missing_report() -> Problem:
    """Return the problem of a turn that gave no report at all."""
    return Problem("/", "report_missing", "There is no report; send an object with task_status, headline and blocks.")


def buried_proposal_hint(report: Report | None) -> bool:
    """Say whether a report proposes a follow-up in the prose of a summary or of details, and asks nothing.

    A rejection of such a report should add the hint that each proposal belongs into a next_step block of its own.
    """
    if report is None or any(block.type in INTERACTIVE for block in report.blocks):
        return False
    return any(_proposes(block.summary) or _proposes(block.details) for block in report.blocks)


def _proposes(text: str) -> bool:
    # The phrases are matched against simple lower-casing, in which İ gives i; Python's gives i and a combining dot.
    lower = text.replace("İ", "i").lower()
    return any(phrase in lower for phrase in _PROPOSALS)


def _check_head(report: Report, problems: list[Problem]) -> None:
    if report.task_status not in _STATUSES:
        message = f"task_status is {quote(report.task_status)}; use {listed(_STATUSES)}."
        problems.append(Problem("/task_status", "status_unknown", message))
    headline = report.headline
    if not headline:
        message = (
            f"The headline is empty; say in one line, of at most {HEADLINE_MAX} characters, what the turn came to."
        )
        problems.append(Problem("/headline", "headline_empty", message))
        return
    if len(headline) > HEADLINE_MAX:
        message = (
            f"The headline has {len(headline)} characters, {quote(headline)}; at most {HEADLINE_MAX} are allowed, put"
            " the rest into blocks."
        )
        problems.append(Problem("/headline", "headline_too_long", message))
    if "\n" in headline or "\r" in headline:
        message = f"The headline {quote(headline)} has a line break; keep it to one line."
        problems.append(Problem("/headline", "headline_multiline", message))


def _check_status(report: Report, types: set[str], mutated: bool, problems: list[Problem]) -> None:
    """The rules between the status and the blocks; an unknown status demands no block."""
    status = report.task_status
    if status in _DONE:
        if mutated:
            if _VERIFICATION not in types:
                message = (
                    f"The turn changed something and is {status}, but no block says how that was checked; add a"
                    " verification block, with not_run where nothing was."
                )
                problems.append(Problem("/blocks", "status_needs_verification", message))
        elif not report.blocks:
            message = f"The status is {status} but there is no block; add one that says what was done or learned."
            problems.append(Problem("/blocks", "status_needs_block", message))
    elif status == _NEEDS_ACTION:
        if types.isdisjoint(_ASKING):
            message = "The status is needs_action but nothing is asked; add a decision, question or next_step block."
            problems.append(Problem("/blocks", "status_needs_interaction", message))
    elif status == _BLOCKED:
        if BlockType.BLOCKED.value not in types:
            message = "The status is blocked but no block says by what; add a blocked block."
            problems.append(Problem("/blocks", "status_needs_blocked", message))
    elif status == _FAILED and types.isdisjoint(_EXPLAINING):
        message = "The status is failed but no block explains it; add a finding, warning or blocked block."
        problems.append(Problem("/blocks", "status_needs_explanation", message))
    if status not in _WAITING and not types.isdisjoint(INTERACTIVE):
        asking = listed(sorted(types & INTERACTIVE))
        message = f"task_status is {quote(status)} but a block ({asking}) asks something; use needs_action or blocked."
        problems.append(Problem("/task_status", "interaction_needs_status", message))
