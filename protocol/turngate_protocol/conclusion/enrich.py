"""Make the durable conclusion of a task that has ended: what its output says, completed by what the software knows.

The rules come from the enrich section of the specification's conclusion page. The model's text can set no
software-owned field: they are read from the task record and the project registry alone. Time comes in as an argument;
nothing is looked up.
"""

from collections.abc import Mapping
from math import isnan
from typing import Final

from msgspec import structs

from turngate_protocol.conclusion.model import (
    BLOCKED,
    FAILED,
    PARTIAL,
    SUCCESS,
    TASK_CANCELLED,
    TASK_COMPLETED,
    TASK_FAILED,
    Conclusion,
    Project,
    Task,
)
from turngate_protocol.conclusion.parse import carriable, parse
from turngate_protocol.conclusion.refs import last_element
from turngate_protocol.text import is_blank, trim

MAX_FALLBACK_BYTES: Final = 1000
_STATUS_OF_TASK: Final = {TASK_FAILED: FAILED, TASK_CANCELLED: BLOCKED}


def enrich(
    task: Task,
    *,
    now_ms: int,
    synthesize_fallback: bool = True,
    projects: Mapping[str, Project] | None = None,
) -> tuple[Task, Conclusion | None]:
    """Return `task` with its project filled in, and its conclusion; the task as it was and None when it has none.

    The block of the output counts, else that of the output's tail. An empty status takes the task's. A task in a state
    that is not terminal is treated like a completed one without an exit code; a service refuses it before.

    Args:
        task: The record of the task that ended.
        now_ms: The time of capture, milliseconds since 1970 UTC.
        synthesize_fallback: Make a conclusion from error, exit code and output when the agent left no block.
        projects: The registry, by canonical project path.
    """
    found = parse(task.output) or (parse(task.output_tail) if task.output_tail else None)
    if found is None:
        if not synthesize_fallback:
            return task, None
        found = _synthesized(task)
    conclusion = structs.replace(
        found,
        status=found.status or _STATUS_OF_TASK.get(task.status, SUCCESS),
        # JSON has no NaN: it would become null, and the saved record one that no reader can decode.
        confidence=0.0 if isnan(found.confidence) else found.confidence,
        captured_at_ms=now_ms,
    )
    return _with_project(task, projects or {}), conclusion


def _synthesized(task: Task) -> Conclusion:
    status = _STATUS_OF_TASK.get(task.status)
    if status is not None:
        return Conclusion(status, _failure(task) or _end_of_output(task), synthesized=True)
    clean_exit = task.status != TASK_COMPLETED or not task.exit_code
    return Conclusion(SUCCESS if clean_exit else PARTIAL, _end_of_output(task), synthesized=True)


def _failure(task: Task) -> str:
    parts = [trim(task.error)] if not is_blank(task.error) else []
    if task.exit_code is not None:
        parts.append(f"(exit code {task.exit_code})")
    return carriable(" ".join(parts))


def _end_of_output(task: Task) -> str:
    text = trim(task.output if is_blank(task.output_tail) else task.output_tail)
    # A character has at least one byte: these characters hold the last bytes.
    data = text[-MAX_FALLBACK_BYTES:].encode("utf-8", "surrogatepass")[-MAX_FALLBACK_BYTES:]
    return trim(data.decode("utf-8", "replace"))


def _with_project(task: Task, projects: Mapping[str, Project]) -> Task:
    if not task.project_path:
        return task
    known = projects.get(task.project_path, Project())
    name = known.name or task.project_name or last_element(task.project_path)
    return structs.replace(task, project_id=known.id or task.project_id, project_name=name)
