"""A delegated task: what it claims, and what the gate found of each file and memory that it cites."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from turngate.console.views import tasks
from turngate.console.views.texts import Chip, Fact, facts, many_lines, one_line, size, words
from turngate.console.views.times import Time, optional, time
from turngate_contracts.tasks import ConclusionFound
from turngate_protocol.conclusion.model import Conclusion, GateResult
from turngate_protocol.conclusion.record import ConclusionPhase, TaskConclusion
from turngate_protocol.esm.present import format_duration

MAX_REFS: Final = 200
"""How many refs of a kind are shown; their number is always said."""


class Refs(Struct, frozen=True):
    """Refs of which the gate found the same; `means` says what that is."""

    chip: Chip
    means: str
    files: tuple[str, ...]
    memories: tuple[str, ...]
    count: int
    more: int


class ConflictShown(Struct, frozen=True):
    """The task was finished again with other content."""

    runner: str
    status: str
    size: str
    at: Time


class TaskPage(Struct, frozen=True):
    """Everything that the page of a task shows; `judged` is None while its evidence is looked for."""

    session: str
    task: str
    chip: Chip
    claimed: bool
    summary: str
    follow_up: str
    confidence: str
    warnings: tuple[str, ...]
    downgraded: bool
    synthesized: bool
    refs: tuple[Refs, ...]
    inspected: bool
    cites: int
    judged: Time | None
    received: Time
    facts: tuple[Fact, ...]
    error: str
    told: str
    untold: str
    message: str
    conflicts: tuple[ConflictShown, ...]


def page(found: ConclusionFound, now: int) -> TaskPage:
    """Return what the page of a task shows at `now`, in ms since the epoch."""
    state = found.state
    conclusion, gate = state.conclusion or Conclusion(), state.gate
    return TaskPage(
        state.session,
        state.task,
        tasks.status(state.phase, conclusion.status if state.gate else ""),
        state.conclusion is not None,
        many_lines(conclusion.summary),
        many_lines(conclusion.follow_up),
        f"{conclusion.confidence:.0%}" if conclusion.confidence > 0 else "",
        tuple(many_lines(warning) for warning in conclusion.warnings),
        gate.downgraded if gate else False,
        conclusion.synthesized,
        _refs(conclusion, gate),
        gate.inspected if gate else False,
        len(conclusion.artifacts) + len(conclusion.memory_refs),
        optional(state.judged_at, now),
        time(state.received_at, now),
        _facts(state),
        many_lines(state.record.error),
        f"session {state.session} was told" if state.phase is ConclusionPhase.SETTLED and not state.refusal else "",
        one_line(state.refusal.message) if state.refusal else "",
        many_lines(state.message),
        tuple(
            ConflictShown(one_line(each.runner), words(each.status), size(each.output_bytes), time(each.at, now))
            for each in state.conflicts
        ),
    )


def _refs(conclusion: Conclusion, gate: GateResult | None) -> tuple[Refs, ...]:
    if gate is None or not gate.inspected:
        return tuple(_group("cited", "idle", "not looked for", conclusion.artifacts, conclusion.memory_refs))
    return (
        *_group("missing", "bad", "does not exist", gate.missing_artifacts, gate.missing_memory_refs),
        *_group("unproven", "bad", "did not change while the task ran", gate.unproven_artifacts, ()),
        *_group("uncheckable", "warn", "nobody could say", gate.uncheckable_artifacts, gate.uncheckable_memory_refs),
        *_group("verified", "good", "is there", gate.verified_artifacts, gate.verified_memory_refs),
    )


def _group(name: str, tone: str, means: str, files: Sequence[str], memories: Sequence[str]) -> tuple[Refs, ...]:
    total = len(files) + len(memories)
    if not total:
        return ()
    shown, remembered = files[:MAX_REFS], memories[:MAX_REFS]
    return (
        Refs(
            Chip(name, tone),
            means,
            tuple(one_line(ref) for ref in shown),
            tuple(one_line(ref) for ref in remembered),
            total,
            total - len(shown) - len(remembered),
        ),
    )


def _facts(state: TaskConclusion) -> tuple[Fact, ...]:
    record = state.record
    took = record.finished_at_ms - record.started_at_ms
    errors = f", {record.tool_errors} failed" if record.tool_errors else ""
    return facts(
        ("Task ended", words(record.status)),
        ("Exit code", "" if record.exit_code is None else str(record.exit_code)),
        ("Took", format_duration(took) if record.started_at_ms and took >= 0 else ""),
        ("Tool calls", "" if record.tool_calls is None else f"{record.tool_calls}{errors}"),
        ("Runner", one_line(state.runner)),
        ("Pool", one_line(state.pool)),
        ("Engine", one_line(" ".join(filter(None, (record.engine, record.model))))),
        ("Project", one_line(record.project_name)),
        ("Work directory", one_line(record.work_dir)),
        ("Output", size(state.output_bytes)),
    )
