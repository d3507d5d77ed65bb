"""Objectives as people see them: what is going on in words, a panel of one, a list of many, and a history.

Whatever models and people wrote goes through the terminal's escaping; line breaks in it are shown as such, or indented,
so that nothing of theirs can look like a line of ours.
"""

import time
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from turngate.cli.times import at
from turngate.terminal import Terminal, cell_width
from turngate_contracts.beats import HeldRole, RunnerPresence
from turngate_contracts.esm import ObjectiveEntry
from turngate_protocol.esm.activity import Activity, ActivityKind, doing
from turngate_protocol.esm.objective import BLOCKED_LIMIT, Objective, Phase
from turngate_protocol.esm.present import format_duration
from turngate_protocol.esm.state import Cause, EsmState
from turngate_protocol.spans import span
from turngate_protocol.text import visible

MAX_TEXT_LINES: Final = 6
"""Lines of an objective's text that a panel shows."""
MAX_REMAINING: Final = 8
"""Items of remaining work that a panel shows."""

_LOOKS: Final = {
    "active": "cyan",
    "paused": "yellow",
    "blocked": "red",
    "usage_limited": "red",
    "complete_candidate": "magenta",
    "complete": "green",
}
_ACTIVITY_LOOKS: Final = {
    ActivityKind.RUNNING: "cyan",
    ActivityKind.WAITING_FOR_RUNNER: "yellow",
    ActivityKind.WAITING_FOR_PERSON: "red",
    ActivityKind.PAUSED: "yellow",
    ActivityKind.COMPLETE: "green",
}
_BAD: Final = ("role_failed", "recovery_failed", "result_ignored", "role_released")
_STEPS: Final = (Phase.WORKER, Phase.CRITIC, Phase.AUDIT, Phase.COMPLETE)


class Part(NamedTuple):
    """A piece of a line that has one look."""

    text: str
    styles: tuple[str, ...] = ()


Line = tuple[Part, ...]


class Seen(NamedTuple):
    """What a panel shows: a session's state, what is going on, and what its runner says of it.

    `progress` is the last line that the agent said, `tool_calls` how many its runner has seen so far, `runners` how
    many could take the role, -1 where nobody asked.
    """

    state: EsmState
    activity: Activity
    runners: int = -1
    progress: str = ""
    tool_calls: int = 0


def now_ms() -> int:
    """Return the time in milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


def panel(seen: Seen, now: int) -> list[Line]:
    """Return the lines of a panel: status, phase, activity, text, progress, remaining work, streaks, what it cost."""
    state, objective = seen.state, seen.state.objective
    pool = f"  pool {state.pool}" if state.pool else ""
    head: Line = (Part(f"session {state.session_id}", ("bold",)), Part(f"{pool}  revision {state.revision}"))
    if objective is None:
        return [head, (Part("no objective"),)]
    look = _ACTIVITY_LOOKS.get(seen.activity.kind, "dim")
    lines = [
        (*head, Part("  "), _status(objective)),
        (*_pipeline(objective), Part("   "), Part(doing(seen.activity, now, seen.runners), (look,))),
    ]
    if seen.progress or seen.tool_calls:
        tools = f"  ({seen.tool_calls} tool calls)" if seen.tool_calls else ""
        lines.append((Part("  agent: ", ("dim",)), Part(seen.progress or "works"), Part(tools, ("dim",))))
    lines += _text(objective.text)
    if objective.progress_summary:
        lines.append(_labelled("progress", objective.progress_summary))
    lines += _remaining(objective.remaining_work)
    lines += _streaks(state, objective)
    lines += [_labelled("guidance", guidance.text) for guidance in state.guidance]
    counts = f"{state.runs} runs, {objective.tokens_used:,} tokens, {format_duration(objective.time_used_ms)} of agents"
    return [*lines, _labelled("used", counts)]


def draw(terminal: Terminal, lines: Iterable[Line]) -> None:
    """Write lines to a terminal, each in its look."""
    for line in lines:
        terminal.line(*(terminal.paint(part.text, *part.styles) for part in line))


def caused(cause: Cause) -> Line:
    """Return one line about what happened, without its time."""
    what = cause.type.value.replace("_", " ")
    if cause.type.value.startswith("role_") and cause.role:
        what = f"{cause.role} {what.removeprefix('role ')}"
    look = "red" if cause.type.value in _BAD else "bold"
    parts = [Part(f"{what:<20}", (look,))]
    if cause.verdict:
        good = cause.verdict in ("pass", "complete_candidate", "continue", "resume")
        parts.append(Part(f"  {cause.verdict}", ("green" if good else "red",)))
    if cause.reason and cause.type.value in _BAD:
        parts.append(Part(f"  {cause.reason}", ("red",)))
    who = cause.actor or cause.runner
    facts = [f"by {who}"] if who else []
    facts += [f"run {cause.run_id}"] if cause.type.value == "continuation_started" else []
    facts += [format_duration(cause.duration_ms)] if cause.duration_ms else []
    facts += [f"{cause.tokens:,} tokens"] if cause.tokens else []
    facts += [f"{cause.tool_calls} tool calls"] if cause.tool_calls else []
    if facts:
        parts.append(Part(f"  {', '.join(facts)}", ("dim",)))
    if cause.message:
        parts.append(Part(f"  {_joined(cause.message)}"))
    return tuple(parts)


def history_table(terminal: Terminal, causes: Sequence[Cause]) -> None:
    """Write a page of a history as a table."""
    rows = []
    for cause in causes:
        used = format_duration(cause.duration_ms) if cause.duration_ms else ""
        tokens = str(cause.tokens) if cause.tokens else ""
        bad = cause.type.value in _BAD
        what = terminal.paint(cause.type.value.replace("_", " "), "red" if bad else "bold")
        run = cause.role_run_id or cause.run_id
        who = cause.actor or cause.runner
        said = cause.verdict or (cause.reason if bad else "")
        rows.append([at(cause.at), what, cause.role, said, tokens, used, who, run, _joined(cause.message)])
    head = ["time", "what", "role", "verdict", "tokens", "took", "by", "run", "message"]
    terminal.table(head, rows, right={4, 5})


def list_table(terminal: Terminal, entries: Sequence[ObjectiveEntry]) -> None:
    """Write a page of objectives as a table."""
    now = now_ms()
    rows = []
    for entry in entries:
        status = terminal.paint(entry.status.value, _LOOKS.get(entry.status.value, "bold"), "bold")
        streaks = "/".join(map(str, (entry.blocked_count, entry.rejection_count, entry.recovery_count)))
        activity = doing(entry.activity, now, entry.runners)
        rows.append([entry.session, status, entry.phase, str(entry.runs), streaks, activity, _joined(entry.title)])
    head = ["session", "status", "phase", "runs", "blk/rej/rec", "doing", "objective"]
    terminal.table(head, rows, right={3})


def runners_table(terminal: Terminal, runners: Sequence[RunnerPresence]) -> None:
    """Write the runners that are alive, and under each what it does."""
    now = now_ms()
    rows = []
    for runner in runners:
        mark = terminal.paint("draining", "yellow") if runner.draining else ""
        since = span(now - runner.started_at) if runner.started_at else ""
        # A role run is held until its result is applied; its slot is free before.
        running = [held for held in runner.held if not held.ended]
        busy = f"{min(len(running), runner.slots)}/{runner.slots}"
        pools, roles = ",".join(runner.pools), ",".join(runner.roles)
        rows.append([runner.runner, pools, roles, busy, since, mark or _held(running, now)])
        rest = running if mark else running[1:]
        rows += [["", "", "", "", "", _work(held, now)] for held in rest]
    terminal.table(["runner", "pools", "roles", "busy", "up", "doing"], rows, right={3})


def _held(running: list[HeldRole], now: int) -> str:
    return _work(running[0], now) if running else "idle"


def _work(held: HeldRole, now: int) -> str:
    time = f" for {span(now - held.since)}" if held.since else ""
    tools = f", {held.tool_calls} tool calls" if held.tool_calls else ""
    said = f": {held.progress}" if held.progress else ""
    return f"{held.role} of {held.session}{time}{tools}{said}"


def _status(objective: Objective) -> Part:
    status = objective.status.value
    return Part(status.replace("_", " "), (_LOOKS.get(status, "bold"), "bold"))


def _pipeline(objective: Objective) -> Line:
    parts: list[Part] = []
    for step in _STEPS:
        here = step is objective.phase
        parts += [Part(" > ", ("dim",))] if parts else []
        parts.append(Part(f"[{step}]" if here else step.value, ("bold", "cyan") if here else ("dim",)))
    return tuple(parts)


def _text(text: str) -> list[Line]:
    given = text.split("\n")
    lines: list[Line] = [(Part(f"  {line}", ("bold",)),) for line in given[:MAX_TEXT_LINES]]
    left = len(given) - len(lines)
    return [*lines, (Part(f"  … {left} more lines", ("dim",)),)] if left > 0 else lines


def _remaining(items: Sequence[str]) -> list[Line]:
    if not items:
        return []
    lines: list[Line] = [(Part(f"  remaining work ({len(items)})", ("dim",)),)]
    lines += [(Part("    - ", ("dim",)), Part(item)) for item in items[:MAX_REMAINING]]
    left = len(items) - MAX_REMAINING
    return [*lines, (Part(f"    … {left} more", ("dim",)),)] if left > 0 else lines


def _streaks(state: EsmState, objective: Objective) -> list[Line]:
    lines = []
    if objective.blocked_count:
        count = f"{objective.blocked_count} of {BLOCKED_LIMIT} runs: {objective.blocked_reason}"
        lines.append(_labelled("blocker", count, "red"))
    if objective.rejection_count:
        lines.append(_labelled("rejections", f"{objective.rejection_count} in a row", "yellow"))
    if objective.recovery_count:
        lines.append(_labelled("recoveries", f"{objective.recovery_count}: {objective.recovery_reason}", "yellow"))
    if objective.completion_reason:
        lines.append(_labelled("candidate", objective.completion_reason))
    if objective.completion_review:
        lines.append(_labelled("review", objective.completion_review))
    if state.halt is not None:
        lines.append(_labelled("waits for you", state.halt.message, "red"))
    return lines


def _labelled(label: str, text: str, *styles: str) -> Line:
    return (Part(f"  {label}: ", ("dim",)), Part(_joined(text), styles))


def _joined(text: str) -> str:
    return " ⏎ ".join(text.split("\n"))


def cut(line: Line, width: int) -> Line:
    """Return as much of a line as fits into `width` columns once control characters are shown as escapes."""
    kept: list[Part] = []
    left = width
    for part in line:
        shown = visible(part.text)
        if cell_width(shown) <= left:
            kept.append(Part(shown, part.styles))
            left -= cell_width(shown)
            continue
        while shown and cell_width(shown) > left - 1:
            shown = shown[:-1]
        kept.append(Part(f"{shown}…" if left else "", part.styles))
        break
    return tuple(kept)
