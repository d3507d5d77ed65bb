"""What is stored of one task that has ended, and how it changes: enriched, judged by its evidence, told to the parent.

The shape is this system's own. One `TaskConclusion` is one value of the bucket `conclusions`, a full snapshot. The
files that a conclusion cites are on another machine, and looking there takes time and may fail, so a task is saved
first and judged later: whoever is killed on the way finds in the state what is still to be done.

======== ========================================= =============================================
phase    what is known                             what it wants done outside of the state
======== ========================================= =============================================
received the record and the conclusion, enriched   look where the evidence is, then `judge`
judged   the conclusion that stands, and the gate  one prompt for the parent's session, then `told`
settled  what became of the prompt                 nothing
======== ========================================= =============================================

Each step is taken once: a task that is finished again changes nothing, and with other content is recorded as a
conflict. Looking twice, or telling twice, has no second effect: the first verdict that is saved stands, and a prompt's
id is its task's for ever. Nothing here reads a file or a clock.
"""

import hashlib
from collections.abc import Mapping
from enum import StrEnum
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from turngate_protocol.cause import SYSTEM, Cause
from turngate_protocol.conclusion.enrich import enrich
from turngate_protocol.conclusion.model import (
    Conclusion,
    GateResult,
    Project,
    RefState,
    StartRecord,
    StatAnswer,
    Task,
)
from turngate_protocol.conclusion.parent import message_for_parent
from turngate_protocol.conclusion.refs import clean
from turngate_protocol.conclusion.verify import GateOptions, RefsToCheck, refs_to_check, verify
from turngate_protocol.text import byte_length

MAX_CONFLICTS: Final = 8
"""How many conflicting endings a task records; later ones change nothing."""
PROMPT_KIND: Final = "conclusion"
"""The kind of the prompts that tell parents."""
CLOCK_GRAIN_MS: Final = 10
"""A file system stamps files with a clock that may be this much behind the one that programs read."""

_encode = msgspec.json.Encoder().encode


class ConclusionPhase(StrEnum):
    """How far a task's conclusion has come."""

    RECEIVED = "received"
    JUDGED = "judged"
    SETTLED = "settled"


class Finished(Struct, frozen=True):
    """A task that ended, as its runner tells it.

    Attributes:
        session: the session that delegated the task; `record.parent_session` is the same one or empty.
        pool: the pool of that session.
        runner: the runner that ran the task, and that its files are asked of.
        record: the task's record, with its output.
        start: what the runner noted before the task began, if it did.
    """

    session: str
    pool: str
    runner: str
    record: Task
    start: StartRecord | None = None


class Conflict(Struct, frozen=True, omit_defaults=True):
    """The task was finished again with other content, which changes nothing. `at` in ms since the epoch."""

    digest: str
    runner: str
    at: int
    status: str
    output_bytes: int = 0


class PromptRefusal(Struct, frozen=True, omit_defaults=True):
    """Why the parent could not be told: the code and the sentence of whoever keeps the parent's session."""

    code: str
    message: str


class TaskConclusion(Struct, frozen=True, omit_defaults=True):
    """Everything that is known of one task that ended; each revision is a full snapshot.

    Attributes:
        session: the session that delegated the task.
        pool: the pool of that session.
        runner: the runner that ran it.
        task: its id.
        record: what the software knows of it, without prompt and output, which the conclusion stands for.
        digest: tells a repeat from other content.
        phase: how far it has come.
        received_at: when it was received, in ms since the epoch.
        cause: why this revision exists.
        op: the operation that made this revision.
        output_bytes: how long the output was, in UTF-8 bytes.
        conclusion: what the task ended with; judged once `phase` says so. None: nothing was captured.
        start: what the runner noted before the task began; kept until it is judged.
        judged_at: when it was judged, in ms since the epoch.
        gate: what the gate found; None until it is judged.
        message: what the parent is told; empty until it is judged.
        refusal: why the parent could not be told, if it could not.
        conflicts: other endings of the same task, the first eight.
    """

    session: str
    pool: str
    task: str
    runner: str
    record: Task
    digest: str
    phase: ConclusionPhase
    received_at: int
    cause: Cause
    op: str = ""
    output_bytes: int = 0
    conclusion: Conclusion | None = None
    start: StartRecord | None = None
    judged_at: int = 0
    gate: GateResult | None = None
    message: str = ""
    refusal: PromptRefusal | None = None
    conflicts: tuple[Conflict, ...] = ()


class Taken(Struct, frozen=True):
    """What became of a finished task: the state to save, None when nothing changes; whether another ending stands."""

    state: TaskConclusion | None
    conflict: bool = False


class Findings(Struct, frozen=True):
    """What was found where the evidence is.

    Attributes:
        answers: what the runner's host says, by path; paths that it said nothing about are missing here.
        memory: what the validator says, by memory ref; None when there is no validator.
        project: what the registry says about the task's project.
    """

    answers: Mapping[str, StatAnswer]
    memory: Mapping[str, RefState] | None = None
    project: Project | None = None


class ParentPrompt(Struct, frozen=True):
    """The one prompt that tells a parent how its task ended."""

    id: str
    session: str
    pool: str
    text: str


class Wants(Struct, frozen=True):
    """What a state needs done: refs to look for (also when there are none, it is to be judged), or a prompt to send."""

    look: RefsToCheck | None = None
    prompt: ParentPrompt | None = None


def key_of(session: str, task: str) -> str:
    """Return the key of a task's conclusion; both are ids and hold no dot."""
    return f"{session}.{task}"


def prompt_id(session: str, task: str) -> str:
    """Return the id of the prompt that tells a parent about a task: the same for ever, and always a legal id."""
    return "c-" + hashlib.sha256(f"{session}\0{task}".encode()).hexdigest()[:32]


def content_digest(task: Task) -> str:
    """Return what tells a repeat of a finished task from other content: how it ended and what it said, not when."""
    said = (task.status, task.exit_code, task.output, task.output_tail, task.error)
    return hashlib.blake2b(_encode(said), digest_size=16).hexdigest()


def receive(
    state: TaskConclusion | None,
    finished: Finished,
    now: int,
    *,
    options: GateOptions | None = None,
    synthesize_fallback: bool = True,
) -> Taken:
    """Take a task that has ended; the first ending stands.

    Args:
        state: what is known of the task, None when nothing is.
        finished: the ending; the task is in a terminal state and within the limits.
        now: ms since the epoch.
        options: the operator's choices about the gate.
        synthesize_fallback: make a conclusion of error, exit code and output when the agent left no block.
    """
    digest = content_digest(finished.record)
    if state is not None:
        return _again(state, finished, digest, now)
    task = replace(finished.record, parent_session=finished.session)
    task, conclusion = enrich(task, now_ms=now, synthesize_fallback=synthesize_fallback)
    bare = replace(task, prompt="", output="", output_tail="")
    made = TaskConclusion(
        finished.session,
        finished.pool,
        task.id,
        finished.runner,
        bare,
        digest,
        ConclusionPhase.RECEIVED,
        now,
        Cause("conclusion.received", finished.runner, now, message=task.id),
        output_bytes=byte_length(task.output),
        conclusion=conclusion,
    )
    return Taken(replace(made, start=_start(made, finished.start, options or GateOptions())))


def judge(
    state: TaskConclusion, findings: Findings, now: int, *, options: GateOptions | None = None
) -> TaskConclusion | None:
    """Return the state with the conclusion that may be believed, or None when it was judged before.

    Args:
        state: the newest state.
        findings: what was found.
        now: ms since the epoch.
        options: the operator's choices about the gate.
    """
    if state.phase is not ConclusionPhase.RECEIVED:
        return None
    task = _of_project(state.record, findings.project)
    conclusion, gate = state.conclusion, GateResult(tool_calls=task.tool_calls)
    given = gate_options(state, options or GateOptions())
    if conclusion is not None:
        conclusion, gate = verify(
            conclusion,
            findings.answers,
            findings.memory,
            options=given,
            tool_calls=task.tool_calls,
            start=state.start if given.strict else None,
        )
    kind = "conclusion.downgraded" if gate.downgraded else "conclusion.judged"
    return replace(
        state,
        record=task,
        phase=ConclusionPhase.JUDGED,
        cause=Cause(kind, SYSTEM, now, message=task.id),
        conclusion=conclusion,
        start=None,
        judged_at=now,
        gate=gate,
        message=message_for_parent(
            task, conclusion, findings.answers, findings.memory, base_dir=given.base_dir, locations=given.locations
        ),
    )


def told(state: TaskConclusion, refusal: PromptRefusal | None, now: int) -> TaskConclusion | None:
    """Return the state once its parent was told, or could not be; None when that is recorded already."""
    if state.phase is not ConclusionPhase.JUDGED:
        return None
    kind = "conclusion.prompt_sent" if refusal is None else "conclusion.prompt_refused"
    cause = Cause(kind, SYSTEM, now, message=prompt_id(state.session, state.task))
    return replace(state, phase=ConclusionPhase.SETTLED, cause=cause, refusal=refusal)


def wants_something(state: TaskConclusion) -> bool:
    """Say whether there is anything to do for this state."""
    return state.phase is not ConclusionPhase.SETTLED


def wants(state: TaskConclusion, options: GateOptions | None = None) -> Wants:
    """Return what must be done outside of the state; each part may be done more than once with the same result."""
    if state.phase is ConclusionPhase.RECEIVED:
        if state.conclusion is None:
            return Wants(look=RefsToCheck())
        return Wants(look=refs_to_check(state.conclusion, gate_options(state, options or GateOptions())))
    if state.phase is ConclusionPhase.JUDGED:
        sent = ParentPrompt(prompt_id(state.session, state.task), state.session, state.pool, state.message)
        return Wants(prompt=sent)
    return Wants()


def gate_options(state: TaskConclusion, options: GateOptions) -> GateOptions:
    """Return the operator's choices for one task: relative artifacts start where it worked."""
    return replace(options, base_dir=state.record.work_dir or state.record.project_path)


def _again(state: TaskConclusion, finished: Finished, digest: str, now: int) -> Taken:
    if digest == state.digest:
        return Taken(None)
    known = any(conflict.digest == digest for conflict in state.conflicts)
    if known or len(state.conflicts) >= MAX_CONFLICTS:
        return Taken(None, conflict=True)
    task = finished.record
    conflict = Conflict(digest, finished.runner, now, task.status, byte_length(task.output))
    cause = Cause("conclusion.conflict", finished.runner, now, message=task.id)
    return Taken(replace(state, cause=cause, conflicts=(*state.conflicts, conflict)), conflict=True)


def _start(state: TaskConclusion, given: StartRecord | None, options: GateOptions) -> StartRecord | None:
    """Return what judging needs of the start: nothing of files that are not cited; the record's time without one."""
    if given is None:
        began = state.record.started_at_ms
        return StartRecord(began - CLOCK_GRAIN_MS) if began > 0 else None
    cited = wants(state, options).look or RefsToCheck()
    return replace(given, files={path: given.files[path] for path in cited.paths if path in given.files})


def _of_project(task: Task, known: Project | None) -> Task:
    if known is None:
        return task
    return replace(task, project_id=known.id or task.project_id, project_name=known.name or task.project_name)


def project_key(task: Task) -> str:
    """Return the canonical path by which the registry knows a task's project; empty when it has none."""
    return clean(task.project_path) if task.project_path else ""
