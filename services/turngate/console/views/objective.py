"""An objective: where it stands and what goes on, what is left, what went wrong in a row, and its whole history."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from turngate.console.views.objectives import STATUS, doing
from turngate.console.views.said import SILENCE, News, Said, of_run
from turngate.console.views.texts import Chip, Fact, facts, many_lines, one_line, short, words
from turngate.console.views.timeline import Timeline, timeline, verdict_tone
from turngate.console.views.times import Time, time
from turngate_contracts.esm import HistoryPage, ObjectiveFound
from turngate_protocol.esm.objective import BLOCKED_LIMIT, Objective, Phase, Status
from turngate_protocol.esm.present import format_duration
from turngate_protocol.esm.state import Cause, CauseType, EsmState, causes

_STEPS: Final = (Phase.WORKER, Phase.CRITIC, Phase.AUDIT, Phase.COMPLETE)
_RESUMES: Final = frozenset({Status.PAUSED, Status.BLOCKED, Status.USAGE_LIMITED})
_AUTO: Final = frozenset({Status.ACTIVE, Status.COMPLETE_CANDIDATE})
_MINOR: Final = frozenset({CauseType.CONTINUATION_STARTED, CauseType.ROLE_STARTED, CauseType.RECOVERY_STARTED})
_BAD: Final = frozenset({CauseType.ROLE_FAILED, CauseType.RECOVERY_FAILED, CauseType.RESULT_IGNORED})


class PhaseStep(Struct, frozen=True):
    """A step of the pipeline; `state` is done, here or ahead."""

    name: str
    state: str


class GuidanceShown(Struct, frozen=True):
    """What a person said to whoever works next."""

    text: str
    at: Time


class Happened(Struct, frozen=True):
    """A row of the history; `minor` when it only leads to another row."""

    key: str
    at: Time
    what: str
    role: str
    said: Chip | None
    tokens: str
    took: str
    who: str
    message: str
    minor: bool


class May(Struct, frozen=True):
    """Which commands the objective takes now."""

    pause: bool
    resume: bool
    run: bool
    edit: bool
    create: bool


class ObjectivePage(Struct, frozen=True):
    """Everything that the page of an objective shows; `text` is None where there is no objective.

    `older` leads to what happened before its history, empty when nothing did; `newest` says that nothing came after it.
    """

    session: str
    pool: str
    text: str | None
    raw: str
    chip: Chip
    steps: tuple[PhaseStep, ...]
    doing: Chip
    said: Said | None
    halt: str
    progress: str
    remaining: tuple[str, ...]
    streaks: tuple[Fact, ...]
    review: tuple[Fact, ...]
    guidance: tuple[GuidanceShown, ...]
    facts: tuple[Fact, ...]
    may: May
    timeline: Timeline | None
    began: Time | None
    ended: Time | None
    history: tuple[Happened, ...]
    older: str
    newest: bool


def page(
    found: ObjectiveFound, history: HistoryPage, now: int, news: News = SILENCE, *, newest: bool = True
) -> ObjectivePage:
    """Return what the page of an objective shows.

    Args:
        found: the objective as it stands.
        history: a page of what happened, oldest first.
        now: ms since the epoch.
        news: what its agent said last.
        newest: whether that page is the newest one.
    """
    state, objective = found.state, found.state.objective
    told = _with_newest(history, state) if newest else history.entries
    drawn = timeline(told, now, open_ended=newest)
    return ObjectivePage(
        state.session_id,
        one_line(state.pool),
        many_lines(objective.text) if objective else None,
        objective.text if objective else "",
        Chip(words(objective.status), STATUS[objective.status]) if objective else Chip("no objective"),
        _steps(objective) if objective else (),
        doing(found.activity, now, found.runners),
        of_run(state.session_id, found.activity, news),
        many_lines(state.halt.message) if state.halt else "",
        many_lines(objective.progress_summary) if objective else "",
        tuple(many_lines(item) for item in objective.remaining_work) if objective else (),
        _streaks(objective) if objective else (),
        _reviews(objective) if objective else (),
        tuple(GuidanceShown(many_lines(each.text), time(each.added_at, now)) for each in state.guidance),
        _facts(state, objective) if objective else (),
        _may(objective),
        drawn,
        time(drawn.began, now) if drawn else None,
        time(drawn.ended, now) if drawn else None,
        tuple(_happened(cause, now) for cause in reversed(told)),
        f"/objectives/{state.session_id}?before={history.entries[0].revision}" if history.more else "",
        newest,
    )


def _with_newest(history: HistoryPage, state: EsmState) -> Sequence[Cause]:
    """Return the newest page with what the state knows beyond it: the state may be newer."""
    newest = max((cause.revision for cause in history.entries), default=0)
    newer = {cause.revision: cause for cause in (*causes(state), *state.ignored) if cause.revision > newest}
    newer = {at: cause for at, cause in newer.items() if cause.type is not CauseType.WATCHED}
    return (*history.entries, *(newer[at] for at in sorted(newer)))


def _steps(objective: Objective) -> tuple[PhaseStep, ...]:
    here = _STEPS.index(objective.phase)
    done = objective.status is Status.COMPLETE
    return tuple(
        PhaseStep(step.value, "done" if at < here or done else "here" if at == here else "ahead")
        for at, step in enumerate(_STEPS)
    )


def _streaks(objective: Objective) -> tuple[Fact, ...]:
    blocked = f"{objective.blocked_count} of {BLOCKED_LIMIT} runs in a row: {objective.blocked_reason}"
    recovered = f"{objective.recovery_count} since the last report of a worker: {objective.recovery_reason}"
    return facts(
        ("Blocker", many_lines(blocked) if objective.blocked_count else ""),
        ("Rejections", f"{objective.rejection_count} in a row" if objective.rejection_count else ""),
        ("Recoveries", many_lines(recovered) if objective.recovery_count else ""),
    )


def _reviews(objective: Objective) -> tuple[Fact, ...]:
    return facts(
        ("Why the worker holds it complete", many_lines(objective.completion_reason)),
        ("Last review", many_lines(objective.completion_review)),
    )


def _facts(state: EsmState, objective: Objective) -> tuple[Fact, ...]:
    return facts(
        ("Runs", str(state.runs)),
        ("Tokens", f"{objective.tokens_used:,}"),
        ("Agents' time", format_duration(objective.time_used_ms)),
        ("Pool", one_line(state.pool)),
        ("Work directory", one_line(state.work_dir)),
        ("Mode", one_line(state.mode)),
        ("Version", str(objective.version)),
    )


def _may(objective: Objective | None) -> May:
    if objective is None:
        return May(pause=False, resume=False, run=False, edit=False, create=True)
    status = objective.status
    return May(
        pause=status in _AUTO or status in (Status.BLOCKED, Status.USAGE_LIMITED),
        resume=status in _RESUMES,
        run=status in _AUTO,
        edit=status is not Status.COMPLETE,
        create=status is Status.COMPLETE,
    )


def _happened(cause: Cause, now: int) -> Happened:
    return Happened(
        f"h{cause.revision}",
        time(cause.at, now),
        words(cause.type),
        one_line(cause.role),
        _said(cause),
        short(cause.tokens) if cause.tokens else "",
        format_duration(cause.duration_ms) if cause.duration_ms else "",
        one_line(cause.actor or cause.runner),
        many_lines(cause.message),
        cause.type in _MINOR,
    )


def _said(cause: Cause) -> Chip | None:
    if cause.verdict:
        return Chip(words(cause.verdict), verdict_tone(cause))
    if cause.type in _BAD:
        return Chip(words(cause.reason or cause.type.value), "bad")
    return None
