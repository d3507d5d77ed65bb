"""The messages of tasks: what a runner says of one that ended, what it is asked about its files, what is known of it.

As those of `messages`: frozen, growing only by fields with defaults, times in ms since the epoch. A task belongs to the
session that delegated it, which its subject names; files are asked of the runner that ran it, and nobody else.
"""

from typing import Final

from msgspec import Struct

from turngate_contracts.errors import ErrorCode, IdentityMismatch, InvalidMessage, PayloadTooLarge, TurngateError, shown
from turngate_contracts.ids import check_id
from turngate_protocol.conclusion.model import (
    MAX_CHECKED_REFS,
    TERMINAL_STATES,
    StartRecord,
    StatAnswer,
    Task,
    is_terminal,
    over_limits,
)
from turngate_protocol.conclusion.record import ConclusionPhase, TaskConclusion

MAX_STAT_PATHS: Final = 1_000
"""Most paths that one StatPaths may ask about."""
MAX_STAT_BYTES: Final = 256 * 1024
"""Most UTF-8 bytes that the paths of one StatPaths have together."""
MAX_PATH_BYTES: Final = 4_096
"""Longest path that is asked about; no system opens a longer one."""
MAX_MEMORY_REFS: Final = 1_000
"""Most refs that one CheckMemoryRefs may ask about."""
MAX_START_FILES: Final = MAX_CHECKED_REFS
"""Most files that a start record may hold."""

_MAX_NUMBER: Final = 2**53
_MAX_EXIT_CODE: Final = 2**32


class TaskFinished(Struct, frozen=True, omit_defaults=True):
    """A delegated task ended.

    `session` is the session that delegated it and `pool` that session's pool. `record` is what the software knows of
    the task, with the output that ends in its agent's closing block; `start` is what the runner noted before the task
    began: strict checking judges by it whether a file changed.
    """

    session: str
    runner: str
    pool: str
    record: Task
    start: StartRecord | None = None


class StatPaths(Struct, frozen=True, omit_defaults=True):
    """Ask the runner that ran a task about files on its host; `hash` asks for hashes of the contents too."""

    session: str
    task: str
    paths: tuple[str, ...]
    hash: bool = False


class PathsStated(Struct, frozen=True):
    """What the runner's host says: one answer for each path, in the order in which they were asked."""

    session: str
    task: str
    answers: tuple[StatAnswer, ...]


class CheckMemoryRefs(Struct, frozen=True):
    """Ask whoever keeps memories which of these refs exist."""

    session: str
    task: str
    refs: tuple[str, ...]


class MemoryRefsChecked(Struct, frozen=True, omit_defaults=True):
    """Which refs exist and which do not; one that is in neither can't be checked."""

    known: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


class GetConclusion(Struct, frozen=True):
    """Ask what is known of a task that ended."""

    session: str
    task: str


class ConclusionFound(Struct, frozen=True):
    """What is known of the task, at `revision`; its `phase` says whether it was judged."""

    state: TaskConclusion
    revision: int


class ListConclusions(Struct, frozen=True, omit_defaults=True):
    """Ask for conclusions, the longest unchanged first; `cursor` is the last page's, `session` one session only.

    `newest`: the last changed first, instead.
    """

    cursor: int = 0
    limit: int = 100
    session: str = ""
    newest: bool = False


class ConclusionEntry(Struct, frozen=True, omit_defaults=True):
    """What a list shows of a conclusion. `at` is when it last changed, `title` the start of its summary."""

    session: str
    task: str
    phase: ConclusionPhase
    at: int
    revision: int
    status: str = ""
    title: str = ""
    runner: str = ""
    pool: str = ""
    engine: str = ""
    project: str = ""
    synthesized: bool = False
    downgraded: bool = False
    missing: int = 0
    uncheckable: int = 0
    unproven: int = 0
    conflicts: int = 0
    refusal: str = ""


class ConclusionsPage(Struct, frozen=True, omit_defaults=True):
    """A page of conclusions. Ask again with `cursor` while `more`."""

    entries: tuple[ConclusionEntry, ...]
    cursor: int = 0
    more: bool = False


class TaskNotTerminal(TurngateError, ValueError):
    """A task that has not ended: its conclusion can't be captured yet."""

    code = ErrorCode.TASK_NOT_TERMINAL

    def __init__(self, task: str, status: str) -> None:
        states = ", ".join(sorted(TERMINAL_STATES))
        super().__init__(
            f"task {task} is {shown(status)}; send it when it has ended: {states}", task=task, status=shown(status)
        )


def check_finished(message: TaskFinished) -> None:
    """Check what a runner says of a task that ended, before it is sent and when it is received.

    Raises:
        InvalidId: a session, task, runner or pool is no id.
        IdentityMismatch: the record names another parent session than the message.
        TaskNotTerminal: the task has not ended.
        PayloadTooLarge: a text is over its limit.
        InvalidMessage: a number is out of range, or the start record holds too many files.
    """
    task = message.record
    check_id("session", message.session)
    check_id("runner", message.runner)
    check_id("pool", message.pool)
    check_id("task", task.id)
    if task.parent_session not in ("", message.session):
        raise IdentityMismatch("parent_session", task.parent_session, message.session)
    if not is_terminal(task):
        raise TaskNotTerminal(task.id, task.status)
    for excess in over_limits(task):
        raise PayloadTooLarge(f"{excess.field} of task {task.id}", excess.size, excess.limit)
    _check_numbers(message)


def _check_numbers(message: TaskFinished) -> None:
    task = message.record
    if task.exit_code is not None and not -_MAX_EXIT_CODE <= task.exit_code <= _MAX_EXIT_CODE:
        raise InvalidMessage(f"exit_code must be from -{_MAX_EXIT_CODE} to {_MAX_EXIT_CODE}", field="exit_code")
    for field in ("started_at_ms", "finished_at_ms", "tool_calls", "tool_errors"):
        if not 0 <= (getattr(task, field) or 0) <= _MAX_NUMBER:
            raise InvalidMessage(f"{field} must be from 0 to {_MAX_NUMBER}", field=field)
    start = message.start
    if start is None:
        return
    if not 0 <= start.started_at_ms <= _MAX_NUMBER:
        raise InvalidMessage(f"started_at_ms of the start must be from 0 to {_MAX_NUMBER}", field="start")
    if len(start.files) > MAX_START_FILES:
        raise InvalidMessage(
            f"the start record holds {len(start.files)} files; at most {MAX_START_FILES}", field="start"
        )


TASK_SCHEMAS: Final[dict[type[Struct], str]] = {
    TaskFinished: "task_finished.v1",
    StatPaths: "stat_paths.v1",
    PathsStated: "paths_stated.v1",
    CheckMemoryRefs: "check_memory_refs.v1",
    MemoryRefsChecked: "memory_refs_checked.v1",
    GetConclusion: "get_conclusion.v1",
    ConclusionFound: "conclusion_found.v1",
    ListConclusions: "list_conclusions.v1",
    ConclusionsPage: "conclusions_page.v1",
    TaskConclusion: "task_conclusion.v1",
}
"""The name and version of every message of tasks; `messages.SCHEMAS` holds them too."""
