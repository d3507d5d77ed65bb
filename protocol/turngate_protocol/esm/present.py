"""Plain text for people, tools and prompts: an objective in a few lines, reports joined into one text.

Labels and their order are formats that other programs read (`summary: …`, `evidence: a; b`, `remaining_work (2): …`);
the sentences are ours. Parts that have nothing to say are left out. Texts of models are passed on as they are: whoever
shows them on a terminal makes them harmless there.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from turngate_protocol.esm.objective import BLOCKED_LIMIT, Objective
from turngate_protocol.esm.role_reports import AuditReport, WorkerReport
from turngate_protocol.text import is_blank, trim

_SECOND_MS: Final = 1000
_MINUTE_MS: Final = 60 * _SECOND_MS
_HOUR_MS: Final = 60 * _MINUTE_MS

CONTINUATION_PROMPT: Final = (
    "This session has an objective and nothing is running for it. Read it with get_esm, look at what is already there, "
    "and go on with the remaining work. Report honestly: claim completion only with evidence at hand."
)
"""Starts an idle session again."""


def continuation_prompt(_objective: Objective | None = None) -> str:
    """Return the message that starts an idle session again; it points to the objective instead of repeating it."""
    return CONTINUATION_PROMPT


def format_objective(objective: Objective | None) -> str:
    """Return `objective` as a compact plain text, one line a part."""
    if objective is None:
        return "No objective."
    lines = [
        f"Status: {objective.status}",
        f"Phase: {objective.phase}",
        f"Objective: {objective.text}",
        f"Tokens: {objective.tokens_used}",
        f"Time: {format_duration(objective.time_used_ms)}",
    ]
    if objective.blocked_count:
        lines.append(f"Blocker {objective.blocked_count}/{BLOCKED_LIMIT}: {objective.blocked_reason}")
    if objective.progress_summary:
        lines.append(f"Progress: {objective.progress_summary}")
    if objective.remaining_work:
        lines.append(format_item_detail("Remaining work", objective.remaining_work))
    if objective.rejection_count:
        lines.append(f"Rejections: {objective.rejection_count}")
    if objective.recovery_count:
        lines.append(f"Recoveries: {objective.recovery_count} ({objective.recovery_reason})")
    if objective.completion_reason:
        lines.append(f"Candidate: {objective.completion_reason}")
    if objective.completion_review:
        lines.append(f"Review: {objective.completion_review}")
    return "\n".join(lines)


def format_duration(milliseconds: int) -> str:
    """Return a duration as `850ms`, `12s`, `7m` or `3h 5m`."""
    if milliseconds < _SECOND_MS:
        return f"{milliseconds}ms"
    if milliseconds < _MINUTE_MS:
        return f"{milliseconds // _SECOND_MS}s"
    if milliseconds < _HOUR_MS:
        return f"{milliseconds // _MINUTE_MS}m"
    return f"{milliseconds // _HOUR_MS}h {milliseconds % _HOUR_MS // _MINUTE_MS}m"


def format_item_detail(label: str, items: Sequence[str]) -> str:
    """Return `label (N): a; b`, or nothing when there are no items."""
    return f"{label} ({len(items)}): {'; '.join(items)}" if items else ""


def format_report_parts(
    primary: tuple[str, str], first: tuple[str, Sequence[str]], second: tuple[str, Sequence[str]], raw: str = ""
) -> str:
    """Return the parts of a report on lines of their own; `raw`, trimmed, when it has none.

    Args:
        primary: a label and its text.
        first: a label and a list that is short by nature.
        second: a label and a list that is shown with its count.
        raw: what the role answered.
    """
    lines = [
        f"{primary[0]}: {primary[1]}" if primary[1] else "",
        f"{first[0]}: {'; '.join(first[1])}" if first[1] else "",
        format_item_detail(*second),
    ]
    return "\n".join(filter(None, lines)) or trim(raw)


def format_worker_completion(report: WorkerReport, raw: str = "") -> str:
    """Return why a worker holds the objective complete."""
    return format_report_parts(
        ("summary", report.summary), ("evidence", report.evidence), ("remaining_work", report.remaining_work), raw
    )


def format_worker_blocker(report: WorkerReport) -> str:
    """Return what blocks a worker."""
    return "; ".join(report.blockers)


def format_observer_blocker(blockers: Sequence[str]) -> str:
    """Return what blocks an interrupted role, according to the observer."""
    return format_item_detail("recovery observer blockers", blockers)


def format_audit_review(report: AuditReport, raw: str = "") -> str:
    """Return what a critic or an audit found."""
    return format_report_parts(
        ("review", report.review), ("evidence", report.evidence), ("missing_work", report.missing_work), raw
    )


def worker_outstanding_work(report: WorkerReport) -> tuple[str, ...]:
    """Return what a worker leaves to do: its remaining work, and each blocker behind `blocker: `."""
    return (*report.remaining_work, *(f"blocker: {blocker}" for blocker in report.blockers))


def worker_continue_message(report: WorkerReport) -> str:
    """Return one line about a run that goes on."""
    left = format_item_detail("remaining work", worker_outstanding_work(report))
    return ". ".join(filter(None, [report.summary, left])) or "The worker goes on."


def final_assistant_response(messages: Iterable[Mapping[str, Any]]) -> str:
    """Return the last text of the assistant in `messages`, empty when there is none.

    A message is `{role, content, blocks}`: `content` is a text or a list of blocks, plain text is preferred, and the
    text blocks `{type: "text", text}` are joined otherwise. Anything of another shape is skipped.
    """
    last = ""
    for message in messages:
        if message.get("role") == "assistant":
            last = _message_text(message) or last
    return last


def _message_text(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, str) and not is_blank(content):
        return trim(content)
    blocks = content if isinstance(content, list) else message.get("blocks")
    texts = [
        block["text"]
        for block in (blocks if isinstance(blocks, list) else [])
        if isinstance(block, Mapping) and block.get("type") == "text" and isinstance(block.get("text"), str)
    ]
    return trim("".join(texts))
