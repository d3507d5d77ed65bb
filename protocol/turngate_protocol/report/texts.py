"""What the gate tells a model: the text of a rejection, of an exhausted turn, and of a reminder.

Source: `spec/report.md`, "The turn gate". Texts are derived from verdicts, never stored, so that a verdict that is
asked for again reads the same. Wording may change; the marker of a rejection does not.
"""

from collections.abc import Sequence
from typing import Final

from turngate_protocol.report.problems import PROPOSAL_HINT, Problem, format_problems
from turngate_protocol.report.session import MAX_REMINDERS, MAX_REPAIRS, AttemptVerdict, Outcome, PastAttempt

_STOP: Final = (
    "This was the last attempt of the turn: stop repairing the report. The turn ends as prose and is recorded as"
    " unreported."
)


def problems_of(verdict: AttemptVerdict | PastAttempt) -> tuple[Problem, ...]:
    """Return a verdict's problems; those of an earlier turn have lost their sentences."""
    if isinstance(verdict, AttemptVerdict):
        return verdict.problems
    return tuple(Problem(path, code, code) for path, code in verdict.problems)


def rejection_text(problems: Sequence[Problem], count: int, buried_proposal: bool) -> str:
    """Return what a model reads of a report with problems; `count` is how many there are in all."""
    lines = [format_problems(problems)]
    if count > len(problems):
        lines.append(f"In all the report has {count} problems; the first {len(problems)} are listed.")
    if buried_proposal:
        lines.append(PROPOSAL_HINT)
    return "\n".join(lines)


def verdict_text(verdict: AttemptVerdict | PastAttempt, attempts_left: int) -> str:
    """Return what a model reads of a verdict, or nothing when its report was accepted."""
    if verdict.outcome is Outcome.ACCEPTED:
        return ""
    text = rejection_text(problems_of(verdict), verdict.problem_count, verdict.buried_proposal)
    if verdict.outcome is Outcome.EXHAUSTED:
        return f"{text}\n{_STOP}"
    return f"{text}\nThe report may be repaired {attempts_left} more {'time' if attempts_left == 1 else 'times'}."


def reminder_text(reminders: int) -> str:
    """Return what an agent reads that ended a turn which owes a report, for the `reminders`-th time."""
    last = " This is the last reminder." if reminders >= MAX_REMINDERS else ""
    return (
        f"This turn owes a report: end it by calling the Report tool with what was done and how it was checked.{last}"
    )


def attempts_left(verdict: AttemptVerdict | PastAttempt, attempts: Sequence[AttemptVerdict | PastAttempt]) -> int:
    """Return how many repairs were left after a verdict among its turn's `attempts`, in the order they were judged."""
    rejections = 0
    for known in attempts:
        rejections += known.outcome is not Outcome.ACCEPTED
        if known.attempt == verdict.attempt:
            break
    return 0 if verdict.outcome is not Outcome.REJECTED else max(0, MAX_REPAIRS + 1 - rejections)
