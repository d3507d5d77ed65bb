"""What is wrong with a report, as data and as the text that the model reads.

A problem points at its place by JSON Pointer and carries a code that stays stable; its sentence may change. The rule
book is the one that `model` names. What a model wrote is quoted cut and with control characters shown, because these
sentences end up in terminals, pages and prompts. Nothing here decides whether a report is wrong.
"""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from turngate_protocol.text import visible

MARKER: Final = "REPORT_REJECTED: "
"""How the text of a rejection begins, so that it stands out in a wall of tool output."""
PROBLEMS_SHOWN: Final = 200
"""How many problems the text of a rejection lists; it always states how many there are."""
PROBLEMS_COUNTED: Final = 1_000
"""After how many problems a report is read no further: 768 KiB can hold 400,000, and naming them takes seconds."""
PROPOSAL_HINT: Final = (
    "The text proposes a follow-up that nobody can pick: give each proposal a next_step block of its own, with a"
    " dispatch option that does it and another one that leaves it."
)
"""What to tell a model whose rejected report has a proposal buried in its prose."""

_QUOTED_MAX: Final = 60


class Problem(Struct, frozen=True, gc=False):
    """One thing that is wrong with a report.

    Attributes:
        path: a JSON Pointer into the report; `/` is the report as a whole.
        code: a stable name, for counting and for programs.
        message: one sentence that names the value and what would be right; its wording may change.
    """

    path: str
    code: str
    message: str


def quote(value: str) -> str:
    """Return `value` in quotes, cut to 60 characters and with control characters shown."""
    return f'"{visible(value)}"' if len(value) <= _QUOTED_MAX else f'"{visible(value[:_QUOTED_MAX])}…"'


def listed(values: Sequence[str]) -> str:
    """Return `values` as a list in a sentence: `a, b or c`."""
    return values[0] if len(values) == 1 else f"{', '.join(values[:-1])} or {values[-1]}"


def format_problems(problems: Sequence[Problem], shown: int = PROBLEMS_SHOWN) -> str:
    """Write the rejection that the model reads.

    Args:
        problems: every problem of the report, in order.
        shown: how many of them to list; the others are only counted.

    Returns:
        The marker with the count, a line for each listed problem, and what to do; empty where there is no problem.
    """
    if not problems:
        return ""
    count = len(problems)
    lines = [f"{MARKER}{count} {'problem' if count == 1 else 'problems'}"]
    lines += [f"- {problem.path}: {problem.message}" for problem in problems[:shown]]
    if count > shown:
        lines.append(f"- and {count - shown} more that are not listed")
    lines.append("Correct each of these and send the whole report again; the paths are JSON Pointers into it.")
    return "\n".join(lines)
