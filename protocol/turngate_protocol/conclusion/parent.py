"""The prompt that tells a parent how its task ended: the parent's form of a conclusion, within a prompt's limit.

A conclusion may be as long as its agent's output, a prompt may not. What does not fit is cut field by field, so that
the header, and the warnings that say what not to believe, are always there. The rule is this system's own; the form is
that of the present section of the specification's conclusion page.
"""

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from turngate_protocol.conclusion.model import Conclusion, RefState, StatAnswer, Task
from turngate_protocol.conclusion.present import Resolvers, artifact_resolver, format_for_parent, memory_resolver
from turngate_protocol.report.session import PROMPT_BYTES
from turngate_protocol.text import byte_length, cut_bytes

MAX_SUMMARY_BYTES: Final = 5_000
MAX_FOLLOW_UP_BYTES: Final = 1_500
MAX_ARTIFACTS_BYTES: Final = 3_000
MAX_MEMORY_REFS_BYTES: Final = 1_500
MAX_WARNINGS_BYTES: Final = 2_500
MAX_ENTRY_BYTES: Final = 1_000
_PER_ENTRY: Final = 24
"""Bytes that an entry takes beside its text: the dash before it and the size behind it."""
_CUT: Final = "…"


def message_for_parent(
    task: Task,
    conclusion: Conclusion | None,
    answers: Mapping[str, StatAnswer],
    memory: Mapping[str, RefState] | None,
    *,
    base_dir: str = "",
    locations: bool = True,
) -> str:
    """Return what the parent is told of `task`, in at most `PROMPT_BYTES` bytes.

    Args:
        task: the task that ended, with its project filled in.
        conclusion: what it ended with, as judged; None when nothing was captured.
        answers: what the runner's host says, by path: sizes and what is missing are shown behind artifacts.
        memory: what the validator says, by memory ref; None without one.
        base_dir: where relative artifacts start.
        locations: whether `path:12` is shown with what is known about the file.
    """
    resolvers = Resolvers(artifact_resolver(answers, base_dir, locations=locations), memory_resolver(memory or {}))
    text = format_for_parent(task, conclusion, resolvers)
    if conclusion is None or byte_length(text) <= PROMPT_BYTES:
        return cut_bytes(text, PROMPT_BYTES)
    said = f"this message was cut; the whole conclusion is that of task {task.id} in session {task.parent_session}"
    shorter = replace(
        conclusion,
        summary=_cut(conclusion.summary, MAX_SUMMARY_BYTES),
        follow_up=_cut(conclusion.follow_up, MAX_FOLLOW_UP_BYTES),
        artifacts=_fewer(conclusion.artifacts, MAX_ARTIFACTS_BYTES),
        memory_refs=_fewer(conclusion.memory_refs, MAX_MEMORY_REFS_BYTES),
        # The gate's own warnings come last and matter most.
        warnings=(said, *reversed(_fewer(conclusion.warnings[::-1], MAX_WARNINGS_BYTES))),
    )
    return cut_bytes(format_for_parent(task, shorter, resolvers), PROMPT_BYTES)


def _cut(text: str, limit: int) -> str:
    return text if byte_length(text) <= limit else cut_bytes(text, limit) + _CUT


def _fewer(entries: tuple[str, ...], limit: int) -> tuple[str, ...]:
    """Return the first entries that fit, and how many did not."""
    kept: list[str] = []
    for entry in entries:
        shown = _cut(entry, MAX_ENTRY_BYTES)
        limit -= byte_length(shown) + _PER_ENTRY
        if limit < 0:
            return (*kept, f"{_CUT} and {len(entries) - len(kept)} more")
        kept.append(shown)
    return tuple(kept)
