"""The gate: a task may not claim success while it cites evidence that does not exist.

The rules come from the verify section of the specification's conclusion page. The files are on the host of the runner
that ran the task: `refs_to_check` says what has to be asked there, the caller asks, and `verify` judges by the answers.
The gate is open for what can't be checked and closed only for what is disproved; it never discards anything, and never
asks anybody itself.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct, structs

from turngate_protocol.conclusion.model import (
    MAX_CHECKED_REFS,
    PARTIAL,
    SUCCESS,
    Conclusion,
    GateResult,
    RefState,
    StartRecord,
    StatAnswer,
)
from turngate_protocol.conclusion.parse import quoted
from turngate_protocol.conclusion.refs import Target, target
from turngate_protocol.text import trim

MAX_NAMED_REFS: Final = 10
_MAX_NAMED_CHARS: Final = 200


class GateOptions(Struct, frozen=True, omit_defaults=True):
    """How the gate works.

    Attributes:
        disabled: Nothing is inspected.
        base_dir: Where relative artifacts start, normally the task's work directory; without it they are uncheckable.
        locations: `path:12` and `path#L10-L20` are checked as the file when the literal path does not exist.
        strict: A cited artifact that did not change during the task is unproven.
    """

    disabled: bool = False
    base_dir: str = ""
    locations: bool = True
    strict: bool = False


class RefsToCheck(Struct, frozen=True, omit_defaults=True):
    """What has to be asked: paths on the runner's host, and memory refs; each once, at most `MAX_CHECKED_REFS`."""

    paths: tuple[str, ...] = ()
    memory_refs: tuple[str, ...] = ()


DEFAULT_OPTIONS: Final = GateOptions()


def refs_to_check(conclusion: Conclusion, options: GateOptions = DEFAULT_OPTIONS) -> RefsToCheck:
    """Return what has to be asked before `verify` can judge `conclusion`; nothing when the gate has nothing to do."""
    if options.disabled or conclusion.status != SUCCESS:
        return RefsToCheck()
    paths: dict[str, None] = {}
    for ref in conclusion.artifacts:
        where = target(ref, options.base_dir, locations=options.locations)
        if where is not None:
            paths |= dict.fromkeys(path for path in where if path)
        if len(paths) >= MAX_CHECKED_REFS:
            break
    memory_refs = dict.fromkeys(filter(None, map(trim, conclusion.memory_refs)))
    return RefsToCheck(tuple(paths)[:MAX_CHECKED_REFS], tuple(memory_refs)[:MAX_CHECKED_REFS])


def verify(
    conclusion: Conclusion,
    answers: Mapping[str, StatAnswer],
    memory_answers: Mapping[str, RefState] | None = None,
    *,
    options: GateOptions = DEFAULT_OPTIONS,
    tool_calls: int | None = None,
    start: StartRecord | None = None,
) -> tuple[Conclusion, GateResult]:
    """Return `conclusion` as it may be believed, and what was found about its refs.

    Only a claim of success is inspected. With anything missing (in strict mode also: unproven) the status becomes
    partial and a warning names the refs. What is uncheckable counts as present and is recorded.

    Args:
        conclusion: What `enrich` returned.
        answers: What the runner's host says, by path of `refs_to_check`; empty when it did not answer.
        memory_answers: What the validator says, by memory ref; empty when it did not answer, None without a validator.
        options: The options that `refs_to_check` had.
        tool_calls: How many tool calls the runner saw, None when it did not watch.
        start: What the runner noted before the task began; strict mode judges changes by it.
    """
    if options.disabled or conclusion.status != SUCCESS:
        return conclusion, GateResult(tool_calls=tool_calls)
    artifacts = _check_artifacts(conclusion.artifacts, answers, options, start)
    memory = _check_memory_refs(conclusion.memory_refs, memory_answers)
    result = GateResult(
        inspected=True,
        downgraded=bool(artifacts.missing or memory.missing or artifacts.unproven),
        strict=options.strict,
        verified_artifacts=tuple(artifacts.verified),
        missing_artifacts=tuple(artifacts.missing),
        uncheckable_artifacts=tuple(artifacts.uncheckable),
        unproven_artifacts=tuple(artifacts.unproven),
        verified_memory_refs=tuple(memory.verified),
        missing_memory_refs=tuple(memory.missing),
        uncheckable_memory_refs=tuple(memory.uncheckable),
        unanswered=artifacts.unanswered + memory.unanswered,
        tool_calls=tool_calls,
    )
    return _judged(conclusion, result, _warnings(result, start)), result


def changed(path: str, now: StatAnswer, start: StartRecord) -> bool | None:
    """Say whether the file at `path` changed since the task began; None when nothing tells.

    What the start record says about the file itself decides: absent then, else content hash, size, modification time. A
    file that the record does not hold changed when its modification time is not before the start.
    """
    before = start.files.get(path)
    if before is not None and before.state == RefState.MISSING:
        return True
    if before is not None and before.state == RefState.PRESENT:
        if before.hash is not None and now.hash is not None:
            return before.hash != now.hash
        if before.size is not None and now.size is not None and before.size != now.size:
            return True
        if before.mtime_ms is not None and now.mtime_ms is not None:
            return before.mtime_ms != now.mtime_ms
    return None if now.mtime_ms is None else now.mtime_ms >= start.started_at_ms


def _answer(where: Target, answers: Mapping[str, StatAnswer]) -> tuple[str, StatAnswer | None]:
    """Return the path that counts and its answer: the file of a line number where the literal path does not exist."""
    literal = answers.get(where.path)
    if literal is None or literal.state != RefState.MISSING or not where.file:
        return where.path, literal
    return where.file, answers.get(where.file)


class _Findings:
    """The refs of one kind, sorted by what was found; no answer is uncheckable and counted."""

    __slots__ = ("missing", "unanswered", "uncheckable", "unproven", "verified")

    def __init__(self) -> None:
        self.verified: list[str] = []
        self.missing: list[str] = []
        self.uncheckable: list[str] = []
        self.unproven: list[str] = []
        self.unanswered = 0

    def record(self, ref: str, state: RefState | None, *, unproven: bool = False) -> None:
        if unproven:
            self.unproven.append(ref)
        elif state == RefState.PRESENT:
            self.verified.append(ref)
        elif state == RefState.MISSING:
            self.missing.append(ref)
        else:
            self.uncheckable.append(ref)
            self.unanswered += state is None


def _check_artifacts(
    refs: Sequence[str], answers: Mapping[str, StatAnswer], options: GateOptions, start: StartRecord | None
) -> _Findings:
    findings = _Findings()
    for ref in filter(None, map(trim, refs)):
        where = target(ref, options.base_dir, locations=options.locations)
        if where is None:
            findings.record(ref, RefState.UNCHECKABLE)
            continue
        path, answer = _answer(where, answers)
        if answer is None:
            findings.record(ref, None)
            continue
        judged = options.strict and answer.state == RefState.PRESENT
        unproven = judged and start is not None and changed(path, answer, start) is False
        findings.record(ref, answer.state, unproven=unproven)
    return findings


def _check_memory_refs(refs: Sequence[str], answers: Mapping[str, RefState] | None) -> _Findings:
    findings = _Findings()
    for ref in filter(None, map(trim, refs)):
        findings.record(ref, RefState.UNCHECKABLE if answers is None else answers.get(ref))
    return findings


def _judged(conclusion: Conclusion, result: GateResult, warnings: Sequence[str]) -> Conclusion:
    if not warnings:
        return conclusion
    return structs.replace(
        conclusion,
        status=PARTIAL if result.downgraded else conclusion.status,
        warnings=(*conclusion.warnings, *warnings),
    )


def _warnings(result: GateResult, start: StartRecord | None) -> Sequence[str]:
    missing = [
        f"{what} not found: {_named(refs)}"
        for what, refs in (("artifacts", result.missing_artifacts), ("memory refs", result.missing_memory_refs))
        if refs
    ]
    warnings = [f"success was claimed with evidence that does not exist; {'; '.join(missing)}"] if missing else []
    if result.unproven_artifacts:
        warnings.append(f"unproven, did not change during the task: {_named(result.unproven_artifacts)}")
    if result.strict and start is None and result.verified_artifacts:
        warnings.append("strict checking had no record of the start: whether artifacts changed was not judged")
    if result.unanswered:
        warnings.append(f"no answer about {result.unanswered} of the cited refs: they were not checked")
    if result.tool_calls == 0:
        warnings.append("success was claimed, but the runner saw no tool call")
    return warnings


def _named(refs: Sequence[str]) -> str:
    names = ", ".join(quoted(ref, _MAX_NAMED_CHARS) for ref in refs[:MAX_NAMED_REFS])
    more = len(refs) - MAX_NAMED_REFS
    return f"{names} and {more} more" if more > 0 else names
