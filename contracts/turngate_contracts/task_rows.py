"""The catalogue's rows for tasks and their conclusions; `catalogue` puts them beside the others."""

from typing import Final

from turngate_contracts.errors import ErrorCode
from turngate_contracts.rows import EVERYBODY, Ask, Intake, Request, State
from turngate_contracts.subjects import Subjects
from turngate_contracts.tasks import (
    CheckMemoryRefs,
    ConclusionFound,
    ConclusionsPage,
    GetConclusion,
    ListConclusions,
    MemoryRefsChecked,
    PathsStated,
    StatPaths,
    TaskFinished,
)
from turngate_contracts.topology import CONCLUSION
from turngate_protocol.conclusion.model import MAX_OUTPUT_BYTES
from turngate_protocol.conclusion.record import TaskConclusion

TASK_INTAKE: Final = (
    Intake(
        "task.finished",
        TaskFinished,
        Subjects.task_finished,
        ("pool", "runner", "session"),
        "tasks",
        CONCLUSION,
        "Tell that a delegated task ended. It gets one conclusion, and its parent session one prompt, however often it"
        f" is published; the first ending stands. The output may have {MAX_OUTPUT_BYTES // 1024} KiB: keep its end.",
    ),
)
"""What runners publish of tasks."""

TASK_REQUESTS: Final = (
    Request(
        "conclusion.get",
        GetConclusion,
        ConclusionFound,
        CONCLUSION,
        EVERYBODY,
        "Get what is known of a task that ended: its conclusion, and what the gate found.",
        (ErrorCode.NOT_FOUND,),
    ),
    Request(
        "conclusion.list",
        ListConclusions,
        ConclusionsPage,
        CONCLUSION,
        EVERYBODY,
        "List conclusions, the longest unchanged first, a page at a time.",
    ),
)
"""What can be asked about conclusions."""

TASK_ASKS: Final = (
    Ask(
        "runner.stat",
        StatPaths,
        PathsStated,
        Subjects.runner_stat,
        ("runner",),
        CONCLUSION,
        "Ask the runner that ran a task which of the cited files exist on its host. It answers for paths under its own"
        " roots and calls others uncheckable; without an answer in time all of them are.",
    ),
    Ask(
        "memory.check",
        CheckMemoryRefs,
        MemoryRefsChecked,
        Subjects.memory_check,
        (),
        CONCLUSION,
        "Ask whoever keeps memories which of the cited ones exist, where the operator named this subject or another.",
    ),
)
"""What the conclusion service asks."""

TASK_STATE: Final = State(
    "conclusions",
    TaskConclusion,
    ("session", "task"),
    "Everything that is known of a delegated task that ended, whole in each revision.",
    (
        "conclusion.received",
        "conclusion.judged",
        "conclusion.downgraded",
        "conclusion.conflict",
        "conclusion.prompt_sent",
        "conclusion.prompt_refused",
    ),
)
"""What the bucket of conclusions holds."""
