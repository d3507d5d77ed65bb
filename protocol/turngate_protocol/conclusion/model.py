"""What a delegated task is, what it ends with, and what the gate found: the types of the conclusion rule book.

The rules come from the conclusion page of the specification: a delegated agent closes its run with one block, the
software adds what only it knows, and a gate checks the cited evidence. All types here are immutable and travel as JSON.
Nothing in this package reads a file, a clock or the network: what the machine knows comes in as an answer
(`StatAnswer`, `RefState`), time as integer milliseconds since 1970 UTC.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from msgspec import Struct

from turngate_protocol.text import byte_length

SUCCESS: Final = "success"
PARTIAL: Final = "partial"
FAILED: Final = "failed"
BLOCKED: Final = "blocked"
STATUSES: Final = frozenset({SUCCESS, PARTIAL, FAILED, BLOCKED})
"""The statuses that a conclusion may claim; the empty text stands for none."""

TASK_COMPLETED: Final = "completed"
TASK_FAILED: Final = "failed"
TASK_CANCELLED: Final = "cancelled"
TERMINAL_STATES: Final = frozenset({TASK_COMPLETED, TASK_FAILED, TASK_CANCELLED})
"""The task states in which a conclusion is captured."""

MAX_OUTPUT_BYTES: Final = 512 * 1024
MAX_TAIL_BYTES: Final = 64 * 1024
MAX_CHECKED_REFS: Final = 5_000
"""How many paths, and how many memory refs, the gate asks about; the rest counts as unanswered and is said to be."""

BYTE_LIMITS: Final[Mapping[str, int]] = MappingProxyType(
    {
        "prompt": 128 * 1024,
        "output": MAX_OUTPUT_BYTES,
        "output_tail": MAX_TAIL_BYTES,
        "error": 16 * 1024,
        "work_dir": 4096,
        "project_path": 4096,
        "project_id": 256,
        "project_name": 256,
        "engine": 256,
        "model": 256,
        "parent_session": 128,
        "id": 128,
    }
)
"""The most UTF-8 bytes that each text of a task may have; the edge refuses more, see `over_limits`."""


_CONTINUATION_BYTES: Final = bytes(range(0x80, 0xC0))


class Task(Struct, frozen=True, omit_defaults=True):
    """What the software knows about a delegated task when it ends. No field comes from the model but the output.

    `output_tail` is the end of the output where a runner keeps it apart. `exit_code` is None for an engine that has
    none; `tool_calls` and `tool_errors` are None when the runner did not watch.
    """

    id: str
    status: str = ""
    engine: str = ""
    model: str = ""
    prompt: str = ""
    work_dir: str = ""
    project_path: str = ""
    project_id: str = ""
    project_name: str = ""
    parent_session: str = ""
    output: str = ""
    output_tail: str = ""
    error: str = ""
    exit_code: int | None = None
    started_at_ms: int = 0
    finished_at_ms: int = 0
    tool_calls: int | None = None
    tool_errors: int | None = None


class Project(Struct, frozen=True, omit_defaults=True):
    """An entry of the project registry, found by canonical path."""

    id: str = ""
    name: str = ""


class Conclusion(Struct, frozen=True, omit_defaults=True):
    """What a task ended with: the model's own words up to `confidence`, then what the software noted about them.

    `confidence` is 0 to 1, 0 when none was stated; only `parse` can return NaN. `captured_at_ms` is 0 until `enrich`.
    """

    status: str = ""
    summary: str = ""
    artifacts: tuple[str, ...] = ()
    memory_refs: tuple[str, ...] = ()
    follow_up: str = ""
    confidence: float = 0.0
    warnings: tuple[str, ...] = ()
    synthesized: bool = False
    captured_at_ms: int = 0


class RefState(StrEnum):
    """What the host of a reference says about it. Only "does not exist" is missing; any other error is uncheckable."""

    PRESENT = "present"
    MISSING = "missing"
    UNCHECKABLE = "uncheckable"


class StatAnswer(Struct, frozen=True, omit_defaults=True):
    """What a host says about one path: size in bytes, modification time in ms since 1970, a hash of the content."""

    state: RefState
    size: int | None = None
    mtime_ms: int | None = None
    hash: str | None = None


class StartRecord(Struct, frozen=True, omit_defaults=True):
    """What the runner noted before the task began: when that was, and how the files that it looked at were then."""

    started_at_ms: int
    files: dict[str, StatAnswer] = {}


class GateResult(Struct, frozen=True, omit_defaults=True):
    """What the gate found. Refs are recorded trimmed, in the order in which they were cited, repeats included.

    `inspected` is false when the gate had nothing to do: it was disabled, or success was not claimed. `unanswered`
    counts those uncheckable refs that could have been checked had their host answered.
    """

    inspected: bool = False
    downgraded: bool = False
    strict: bool = False
    verified_artifacts: tuple[str, ...] = ()
    missing_artifacts: tuple[str, ...] = ()
    uncheckable_artifacts: tuple[str, ...] = ()
    unproven_artifacts: tuple[str, ...] = ()
    verified_memory_refs: tuple[str, ...] = ()
    missing_memory_refs: tuple[str, ...] = ()
    uncheckable_memory_refs: tuple[str, ...] = ()
    unanswered: int = 0
    tool_calls: int | None = None


class Excess(Struct, frozen=True):
    """A text of a task that is over its limit: the field, its size and its limit in UTF-8 bytes."""

    field: str
    size: int
    limit: int


def is_terminal(task: Task) -> bool:
    """Say whether `task` has ended, so that its conclusion may be captured."""
    return task.status in TERMINAL_STATES


def over_limits(task: Task) -> tuple[Excess, ...]:
    """Return every text of `task` that is over its limit in `BYTE_LIMITS`; empty when the task may pass."""
    return tuple(
        Excess(field, size, limit)
        for field, limit in BYTE_LIMITS.items()
        if (size := byte_length(getattr(task, field))) > limit
    )


def keep_end(output: str, limit: int = MAX_OUTPUT_BYTES) -> str:
    """Return the longest end of `output` of at most `limit` UTF-8 bytes that does not cut a character in two.

    A runner bounds a task's output with it: the block comes last, so the end is what must survive.
    """
    # A character has at least one byte: the last `limit` characters hold the last `limit` bytes.
    output = output[-limit:]
    if output.isascii():
        return output
    data = output.encode("utf-8", "surrogatepass")
    if len(data) <= limit:
        return output
    return data[-limit:].lstrip(_CONTINUATION_BYTES).decode("utf-8", "surrogatepass")
