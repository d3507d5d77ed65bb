"""The examples of tasks: an agent claims to have indexed the archive, and one of the files that it cites is not there.

As in `examples`, the states are what the protocol itself makes of the task and of what was found.
"""

from typing import Final

from msgspec import Struct

from turngate_contracts.question_examples import Story
from turngate_contracts.tasks import (
    CheckMemoryRefs,
    ConclusionEntry,
    ConclusionFound,
    ConclusionsPage,
    GetConclusion,
    ListConclusions,
    MemoryRefsChecked,
    PathsStated,
    StatPaths,
    TaskFinished,
)
from turngate_protocol.conclusion.model import RefState, StatAnswer, Task
from turngate_protocol.conclusion.record import (
    Findings,
    Finished,
    TaskConclusion,
    judge,
    receive,
    wants,
)

_TASK: Final = "311"
_MINUTE: Final = 60_000
_OUTPUT: Final = """\
The archive is indexed; both scripts are in tools/.

<pando:conclusion>
status: success
summary: |
  All 2,114 files of the archive are in the index. Queries by year take 3 ms.
artifacts:
  - tools/index_archive.py
  - tools/check_index.py:12
memory_refs:
  - archive/layout
follow_up: Run the check once a week
confidence: 0.9
</pando:conclusion>
"""


def of_tasks(story: Story) -> tuple[Struct, ...]:
    """Return an example of every message of tasks."""
    record = Task(
        _TASK,
        "completed",
        engine="claude-code",
        model="opus",
        work_dir="/srv/orders",
        project_path="/srv/orders",
        parent_session=story.session,
        output=_OUTPUT,
        exit_code=0,
        started_at_ms=story.began - 9 * _MINUTE,
        finished_at_ms=story.began,
        tool_calls=31,
        tool_errors=1,
    )
    received = _received(Finished(story.session, story.pool, story.runner, record), story.began)
    looked_for = wants(received).look
    if looked_for is None:
        raise TypeError("the story goes another way: nothing is looked for")
    answers = tuple(_answer(path, story.began) for path in looked_for.paths)
    memory = dict.fromkeys(looked_for.memory_refs, RefState.PRESENT)
    state = judge(received, Findings(dict(zip(looked_for.paths, answers, strict=True)), memory), story.began + 40)
    if state is None:
        raise TypeError("the story goes another way: the task is not judged")
    return (
        TaskFinished(story.session, story.runner, story.pool, record),
        StatPaths(story.session, _TASK, looked_for.paths),
        PathsStated(story.session, _TASK, answers),
        CheckMemoryRefs(story.session, _TASK, looked_for.memory_refs),
        MemoryRefsChecked(known=looked_for.memory_refs),
        GetConclusion(story.session, _TASK),
        ConclusionFound(state, story.revision),
        ListConclusions(limit=50, session=story.session),
        ConclusionsPage((_entry(state, story.revision),), cursor=story.revision),
        state,
    )


def _received(finished: Finished, at: int) -> TaskConclusion:
    state = receive(None, finished, at).state
    if state is None:
        raise TypeError("the story goes another way: the task is not new")
    return state


def _entry(state: TaskConclusion, revision: int) -> ConclusionEntry:
    if state.conclusion is None or state.gate is None:
        raise TypeError("the story goes another way: the task is not judged")
    return ConclusionEntry(
        state.session,
        state.task,
        state.phase,
        state.cause.at,
        revision,
        state.conclusion.status,
        state.conclusion.summary,
        state.runner,
        state.pool,
        state.record.engine,
        state.record.project_name,
        downgraded=state.gate.downgraded,
        missing=len(state.gate.missing_artifacts),
    )


def _answer(path: str, at: int) -> StatAnswer:
    if "check_index" in path:
        return StatAnswer(RefState.MISSING)
    return StatAnswer(RefState.PRESENT, 4_812, at - 2 * _MINUTE)
