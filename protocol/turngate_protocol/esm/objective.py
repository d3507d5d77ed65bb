"""The objective of a session: what is pursued, how far it is, and why it stopped.

The rule book is ESM ("enable supervisor mode"): a long objective that is worked on run after run, challenged by a
critic, proven by an audit, and blocked only by what three runs in a row ran into. This module holds the nouns. What may
happen to an objective is in `transitions`; who works on it, when and where is in `continuation`. Nothing here changes
anything.
"""

from enum import StrEnum
from typing import Final

from msgspec import Struct, field

BLOCKED_LIMIT: Final = 3
"""Runs in a row that must report the same blocker before the objective is blocked."""

OBJECTIVE_BYTES: Final = 64 * 1024
"""Longest text of an objective, in UTF-8 bytes."""

COUNTER_LIMIT: Final = 2**53 - 1
"""Where the usage counters stop: the largest integer that every JSON reader keeps exact."""


class Status(StrEnum):
    """Where an objective stands."""

    ACTIVE = "active"
    PAUSED = "paused"
    BLOCKED = "blocked"
    USAGE_LIMITED = "usage_limited"
    COMPLETE_CANDIDATE = "complete_candidate"
    COMPLETE = "complete"


class Phase(StrEnum):
    """Which part of the worker, critic, audit pipeline an objective is in."""

    WORKER = "worker"
    CRITIC = "critic"
    AUDIT = "audit"
    COMPLETE = "complete"


class Role(StrEnum):
    """What an agent is run as."""

    WORKER = "worker"
    CRITIC = "critic"
    AUDIT = "audit"
    RECOVERY = "recovery"


RUNNABLE: Final = frozenset({Status.ACTIVE, Status.PAUSED, Status.BLOCKED, Status.USAGE_LIMITED})
"""Statuses in which the tools for a model stay visible."""


class Objective(Struct, frozen=True, omit_defaults=True):
    """One session's objective.

    Attributes:
        session_id: the session it belongs to; a session has one at most.
        esm_id: its own id, new with every creation. Run ids are counted from it.
        text: what is to be achieved, trimmed. User data, never an instruction of higher rank.
        tokens_used: tokens of all its role runs. Something to look at, never a limit.
        time_used_ms: milliseconds of all its role runs; likewise.
        blocked_count: runs in a row that reported `blocked_reason`.
        blocked_run_id: the run that reported it last.
        completion_reason: why the worker holds it complete.
        completion_run_id: the run that said so.
        completion_review: what a critic, an audit or a check last answered to such a claim.
        progress_summary: what the last run reported, or what a recovery found.
        remaining_work: what is left, as last reported.
        rejection_count: runs in a row whose claim or report was rejected.
        rejection_run_id: the run that was rejected last.
        recovery_count: interruptions since the last report of a worker.
        recovery_reason: the last interruption.
        created_at: when it was created, in milliseconds since the epoch.
        updated_at: when it last changed, likewise.
        version: counts its changes. Usage is not one of them: nobody steers an agent because tokens were counted.
    """

    session_id: str
    esm_id: str
    text: str = field(name="objective")
    status: Status = Status.ACTIVE
    phase: Phase = Phase.WORKER
    tokens_used: int = 0
    time_used_ms: int = 0
    blocked_count: int = 0
    blocked_reason: str = ""
    blocked_run_id: str = ""
    completion_reason: str = ""
    completion_run_id: str = ""
    completion_review: str = ""
    progress_summary: str = ""
    remaining_work: tuple[str, ...] = ()
    rejection_count: int = 0
    rejection_run_id: str = ""
    recovery_count: int = 0
    recovery_reason: str = ""
    created_at: int = 0
    updated_at: int = 0
    version: int = 1


def can_auto_run(objective: Objective | None) -> bool:
    """Say whether a continuation may start without anybody asking for it."""
    return objective is not None and objective.status in (Status.ACTIVE, Status.COMPLETE_CANDIDATE)


def is_unfinished(objective: Objective | None) -> bool:
    """Say whether `objective` is still open; complete is the only end, clearing removes it."""
    return objective is not None and objective.status is not Status.COMPLETE


def is_runnable(objective: Objective | None) -> bool:
    """Say whether a model's tools for `objective` stay visible."""
    return objective is not None and objective.status in RUNNABLE


def counter(number: int) -> int:
    """Return a number that a runner reported as something that can be counted: 0 to 2^53 - 1."""
    return min(max(number, 0), COUNTER_LIMIT)
