"""What runs: runners and what each does, the services and how far behind they are, and messages nobody could handle."""

from collections import Counter
from typing import Final

from msgspec import Struct

from turngate.console.facts import Fleet, SeenQueue, SeenService
from turngate.console.views.texts import Chip, count, one_line, size, words
from turngate.console.views.times import Time, optional, time
from turngate_contracts.beats import HeldRole, RunnerPresence
from turngate_contracts.dead import DeadEntry, FoundBy

_BEHIND: Final = 100
"""Waiting messages from which a queue stands out."""
_FOUND: Final = {
    FoundBy.HANDLER: "its handler",
    FoundBy.LOOP: "the loop that saw it kill processes",
    FoundBy.ADVISORY: "an advisory of the server",
    FoundBy.REAPER: "the reaper",
}


class Work(Struct, frozen=True):
    """What a runner does in one of its slots."""

    role: str
    session: str
    since: Time | None
    tool_calls: int
    progress: str


class RunnerRow(Struct, frozen=True):
    """A runner; `seen` is when it was last heard of."""

    runner: str
    chip: Chip
    pools: tuple[str, ...]
    roles: tuple[str, ...]
    busy: int
    slots: int
    up: Time | None
    seen: Time
    work: tuple[Work, ...]


class PoolRow(Struct, frozen=True):
    """A pool: its live runners and how many of their slots are busy."""

    pool: str
    runners: int
    busy: int
    slots: int


class ServiceRow(Struct, frozen=True):
    """A process that answers requests."""

    name: str
    id: str
    version: str
    up: Time | None
    requests: str
    errors: int


class QueueRow(Struct, frozen=True):
    """A durable consumer; `lag` is in a tone."""

    stream: str
    consumer: str
    lag: Chip
    handling: int
    redelivered: int


class DeadRow(Struct, frozen=True):
    """A message that nothing can be done with, and that waits for a decision."""

    letter: str
    stream: str
    subject: str
    code: str
    reason: str
    at: Time
    facts: str
    session: str
    again: bool


class FleetView(Struct, frozen=True):
    """Everything that the fleet page shows; `unknown` are the parts that could not be read, each with its reason."""

    runners: tuple[RunnerRow, ...]
    pools: tuple[PoolRow, ...]
    services: tuple[ServiceRow, ...]
    queues: tuple[QueueRow, ...]
    dead: tuple[DeadRow, ...]
    more_dead: bool
    unknown: dict[str, str]


def page(fleet: Fleet, now: int) -> FleetView:
    """Return what the fleet page shows at `now`, in ms since the epoch."""
    return FleetView(
        tuple(_runner(runner, now) for runner in fleet.runners),
        _pools(fleet.runners),
        tuple(_service(service, now) for service in fleet.services),
        tuple(_queue(queue) for queue in fleet.queues),
        tuple(_dead(dead, now) for dead in fleet.dead),
        fleet.more_dead,
        {part: one_line(error.message) for part, error in fleet.unknown.items()},
    )


def _runner(runner: RunnerPresence, now: int) -> RunnerRow:
    running = _running(runner)
    word, tone = ("draining", "warn") if runner.draining else ("works", "info") if running else ("idle", "idle")
    return RunnerRow(
        one_line(runner.runner),
        Chip(word, tone),
        tuple(one_line(pool) for pool in runner.pools),
        tuple(role.value for role in runner.roles),
        min(len(running), runner.slots),
        runner.slots,
        optional(runner.started_at, now),
        time(runner.at, now),
        tuple(
            Work(held.role.value, held.session, optional(held.since, now), held.tool_calls, one_line(held.progress))
            for held in running
        ),
    )


def _running(runner: RunnerPresence) -> list[HeldRole]:
    # A role run is held until its result is applied; its slot is free before.
    return [held for held in runner.held if not held.ended]


def _pools(runners: tuple[RunnerPresence, ...]) -> tuple[PoolRow, ...]:
    alive, busy, slots = Counter[str](), Counter[str](), Counter[str]()
    for runner in runners:
        for pool in runner.pools:
            alive[pool] += 1
            slots[pool] += runner.slots
            busy[pool] += min(len(_running(runner)), runner.slots)
    return tuple(PoolRow(one_line(pool), alive[pool], busy[pool], slots[pool]) for pool in sorted(alive))


def _service(service: SeenService, now: int) -> ServiceRow:
    return ServiceRow(
        one_line(service.name),
        one_line(service.id),
        one_line(service.version),
        optional(service.started_at, now),
        f"{service.requests:,}",
        service.errors,
    )


def _queue(queue: SeenQueue) -> QueueRow:
    lag = Chip(f"{queue.waiting:,} waiting", "warn" if queue.waiting >= _BEHIND else "info")
    return QueueRow(
        queue.stream,
        queue.consumer,
        lag if queue.waiting else Chip("up to date", "good"),
        queue.handling,
        queue.redelivered,
    )


def _dead(dead: DeadEntry, now: int) -> DeadRow:
    told = (count(dead.deliveries, "delivery", "deliveries"), size(dead.size), f"found by {_FOUND[dead.found_by]}")
    return DeadRow(
        dead.letter,
        dead.stream,
        one_line(dead.subject),
        words(dead.reason),
        one_line(dead.message),
        time(dead.at, now),
        ", ".join(told),
        dead.session,
        bool(dead.first),
    )
