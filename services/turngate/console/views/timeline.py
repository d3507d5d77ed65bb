"""The history of an objective as a drawing: a lane for each role, a bar for each role run, time from left to right.

Long rests between runs would make everything else too small to see, so a rest longer than `REST_MS` is drawn as a
break of fixed width that says how long it was. Positions are percents of the width, so that a drawing can be stretched;
`width` is what it needs to be read. What is drawn stands in the table of the history too.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from turngate.console.views.texts import count, one_line, short, words
from turngate_protocol.esm.objective import Role
from turngate_protocol.esm.present import format_duration
from turngate_protocol.esm.state import Cause, CauseType
from turngate_protocol.spans import span

LANES: Final = tuple(role.value for role in Role)
REST_MS: Final = 60_000
"""A rest longer than this, and longer than a tenth of what is drawn, is cut short."""
_LANE_HEIGHT: Final = 36
_TOP: Final = 8
_BAR: Final = 24
_AXIS: Final = 22
_NEEDS: Final = 84
"""Pixels that a bar needs for its words."""
_BREAK_NEEDS: Final = 20
_LEAST: Final = 640
_MOST: Final = 6_000
_BREAK: Final = 0.04
_NARROWEST: Final = 0.6

_STARTS: Final = frozenset({CauseType.ROLE_STARTED, CauseType.RECOVERY_STARTED})
_ENDS: Final = frozenset(
    {
        CauseType.ROLE_FINISHED,
        CauseType.ROLE_FAILED,
        CauseType.ROLE_RELEASED,
        CauseType.RECOVERY_FINISHED,
        CauseType.RECOVERY_FAILED,
    }
)
_STOPS: Final = frozenset({CauseType.PAUSED, CauseType.EDITED, CauseType.CLEARED})
_MARKS: Final = frozenset(
    {CauseType.CREATED, CauseType.EDITED, CauseType.PAUSED, CauseType.RESUMED, CauseType.GUIDED, CauseType.CLEARED}
)
_GOOD: Final = frozenset({"pass", "complete_candidate", "continue", "resume"})


class Bar(Struct, frozen=True):
    """A role run: where it is drawn, and what it was. `running` has no end yet; `words` is empty in a narrow one."""

    lane: int
    y: int
    x: float
    width: float
    tone: str
    words: str
    title: str
    running: bool = False


class Mark(Struct, frozen=True):
    """Something that a person or the machine did at one moment, as a line through all lanes."""

    x: float
    title: str


class Break(Struct, frozen=True):
    """A rest that was cut short; `label` says how long it was, where there is room."""

    x: float
    width: float
    middle: float
    label: str


class Timeline(Struct, frozen=True):
    """The drawing; `summary` says in a sentence what it shows."""

    width: int
    height: int
    bar: int
    lanes: tuple[str, ...]
    lane_height: int
    bars: tuple[Bar, ...]
    marks: tuple[Mark, ...]
    breaks: tuple[Break, ...]
    began: int
    ended: int
    summary: str


class _Run(Struct, frozen=True):
    """A role run with its two ends; `cause` is how it ended, None while it runs."""

    role: str
    start: int
    end: int
    cause: Cause | None
    runner: str = ""


def timeline(causes: Sequence[Cause], now: int, *, open_ended: bool) -> Timeline | None:
    """Return the drawing of what happened, or None where no role ran.

    Args:
        causes: what happened, oldest first.
        now: ms since the epoch, where a run that has not ended ends.
        open_ended: whether these are the newest, so that a run without an end still runs.
    """
    runs = _runs(causes, now if open_ended else (causes[-1].at if causes else now))
    if not runs:
        return None
    moments = [cause for cause in causes if cause.type in _MARKS]
    scale = _Scale(runs, [mark.at for mark in moments])
    width = min(max(_LEAST, len(runs) * _NEEDS), _MOST)
    marks = tuple(Mark(scale.at(mark.at), f"{words(mark.type)} by {one_line(mark.actor)}") for mark in moments)
    bars = tuple(_bar(run, scale, width) for run in runs)
    height = _TOP + len(LANES) * _LANE_HEIGHT + _AXIS
    return Timeline(
        width,
        height,
        _BAR,
        LANES,
        _LANE_HEIGHT,
        bars,
        marks,
        scale.breaks(width),
        scale.first,
        scale.last,
        _summary(runs),
    )


def verdict_tone(cause: Cause) -> str:
    """Return the tone of how a role run ended: by its verdict, or by its failure."""
    if cause.type in (CauseType.ROLE_FAILED, CauseType.RECOVERY_FAILED):
        return "bad"
    if cause.type in (CauseType.ROLE_RELEASED, CauseType.RESULT_IGNORED):
        return "idle"
    if cause.reason:
        return "warn"
    return "good" if cause.verdict in _GOOD else "warn"


def _runs(causes: Iterable[Cause], end: int) -> list[_Run]:
    runs: list[_Run] = []
    running: dict[tuple[str, str], _Run] = {}
    for cause in causes:
        key = (cause.role_run_id, cause.claim_id)
        if cause.type in _STARTS:
            running[key] = _Run(cause.role, cause.at, cause.at, None, cause.runner)
        elif cause.type in _ENDS:
            begun = running.pop(key, None) or _Run(cause.role, cause.at - cause.duration_ms, 0, None, cause.runner)
            runs.append(replace(begun, end=max(cause.at, begun.start), cause=cause))
        elif cause.type in _STOPS:
            runs += [replace(run, end=cause.at, cause=cause) for run in running.values()]
            running.clear()
    runs += [replace(run, end=max(end, run.start)) for run in running.values()]
    return sorted((run for run in runs if run.role in LANES), key=lambda run: run.start)


class _Scale:
    """From moments to percents: straight while something runs, short over long rests."""

    def __init__(self, runs: Sequence[_Run], moments: Sequence[int]) -> None:
        busy = _busy([(run.start, run.end) for run in runs] + [(at, at) for at in moments])
        self.first, self.last = busy[0][0], max(busy[-1][1], busy[0][0] + 1)
        worked = sum(end - start for start, end in busy) or 1
        rests = [(a[1], b[0]) for a, b in pairwise(busy)]
        self._cut = [(start, end) for start, end in rests if end - start > max(REST_MS, worked // 10)]
        rested = sum(end - start for start, end in self._cut)
        self._share = min(_BREAK, 0.5 / max(1, len(self._cut)))
        self._scale = (1 - self._share * len(self._cut)) / max(1, self.last - self.first - rested)

    def at(self, moment: int) -> float:
        """Return where a moment is, 0 to 100."""
        moment = min(max(moment, self.first), self.last)
        place, drawn = 0.0, moment - self.first
        for start, end in self._cut:
            if moment >= end:
                drawn -= end - start
                place += self._share
            elif moment > start:
                drawn -= moment - start
                place += self._share * (moment - start) / (end - start)
        return round(100 * (place + drawn * self._scale), 2)

    def breaks(self, width: int) -> tuple[Break, ...]:
        """Return the rests that are cut short, with words where they have room in so many pixels."""
        wide = round(100 * self._share, 2)
        fits = self._share * width >= _BREAK_NEEDS
        return tuple(
            Break(self.at(start), wide, round(self.at(start) + wide / 2, 2), span(end - start) if fits else "")
            for start, end in self._cut
        )


def _busy(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the stretches of time in which anything was going on, in order and apart from each other."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


def _bar(run: _Run, scale: _Scale, width: int) -> Bar:
    lane = LANES.index(run.role)
    x = min(scale.at(run.start), 100 - _NARROWEST)
    wide = max(scale.at(run.end) - x, _NARROWEST)
    cause = run.cause
    said = _said(cause)
    used = f" {short(cause.tokens)}" if cause and cause.tokens else ""
    took = format_duration(run.end - run.start)
    told = [said, took]
    told += [f"{cause.tokens:,} tokens", count(cause.tool_calls, "tool call")] if cause and cause.tokens else []
    fits = wide / 100 * width >= _NEEDS * 0.8
    return Bar(
        lane,
        _TOP + lane * _LANE_HEIGHT + (_LANE_HEIGHT - _BAR) // 2,
        x,
        round(wide, 2),
        verdict_tone(cause) if cause and cause.type not in _STOPS else "idle" if cause else "info",
        f"{said}{used}" if fits else "",
        one_line(f"{run.role} on {run.runner}: {', '.join(told)}"),
        running=cause is None,
    )


def _said(cause: Cause | None) -> str:
    if cause is None:
        return "running"
    if cause.type in (CauseType.ROLE_FAILED, CauseType.RECOVERY_FAILED):
        return words(cause.reason or "failed")
    if cause.type in _ENDS and cause.verdict:
        return words(cause.verdict)
    return words(cause.type.value.removeprefix("role_"))


def _summary(runs: Sequence[_Run]) -> str:
    told = []
    for role in LANES:
        number = sum(run.role == role for run in runs)
        told += [f"{count(number, f'{role} run')}"] if number else []
    return f"{', '.join(told)}. The table below says the same in words."
