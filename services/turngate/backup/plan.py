"""Which streams a backup has, and in which order they are read and put back.

The streams are read one after the other while everything goes on, so each is of its own moment. The order makes that
harmless, because whatever refers to something else is read before it:

1. The queues: a message that is decided meanwhile is in its queue's snapshot and in the state; it comes again and is
   known. The other way round, one could be in neither.
2. The events: what a bucket gets later is sourced from it again. The other way round, the events would be ahead of a
   restored bucket and pass over its next revisions.
3. The buckets; conclusions before turns, because a conclusion that was told is a prompt in a session's turns.
4. What reconcilers fill: offers and prompts, timers, dead letters. What a state wants and they lack is made again.

Consumers are not part of it but those of pools, whose positions say which prompts were taken: the others are made anew
by provisioning, so that reconcilers look at every newest state once. Presence is too short-lived to be kept, and the
inbox is made of the states again: an entry that is ahead of a restored state could not be taken back. What is noted of
deliveries that fail, and the watermarks, are about the streams as they were, and begin anew.
"""

from typing import Any, Final

from msgspec import Struct

from turngate_contracts.topology import Topology

QUEUES: Final = ("turns", "tasks", "esm")
BUCKETS: Final = ("conclusions", "questions", "objectives", "turns")
EFFECTS: Final = ("work", "timers", "dead")
NOT_KEPT: Final = ("presence", "advisories", "suspects", "marks")
NOT_KEPT_BUCKETS: Final = ("inbox",)


class Planned(Struct, frozen=True):
    """One stream of a backup.

    Attributes:
        name: its name.
        consumers: whether its consumers' positions are kept.
        moves: whether it changes by itself once it is there: by age, by a schedule, or by sourcing.
        from_states: whether it is a state bucket.
    """

    name: str
    consumers: bool = False
    moves: bool = False
    from_states: bool = False


def plan(topology: Topology) -> list[Planned]:
    """Return the streams in the order in which they are read."""
    s = topology.subjects
    configs = {config["name"]: config for config in topology.streams()}
    left_out = {s.stream(name) for name in NOT_KEPT} | {s.bucket_stream(name) for name in NOT_KEPT_BUCKETS}
    first = [s.stream(name) for name in QUEUES] + [s.stream("events")]
    buckets = [s.bucket_stream(name) for name in BUCKETS]
    effects = [s.stream(name) for name in EFFECTS]
    known = {*first, *buckets, *effects}
    others = [name for name in configs if name not in known and name not in left_out]
    return [
        Planned(name, name == s.stream("work"), _moves(configs[name]), name in buckets)
        for name in (*first, *buckets, *effects, *others)
    ]


def restore_order(topology: Topology) -> list[Planned]:
    """Return the streams in the order in which they are put back: the buckets before the events that source them."""
    planned = plan(topology)
    return [*(p for p in planned if p.from_states), *(p for p in planned if not p.from_states)]


def left_out(topology: Topology) -> list[str]:
    """Return the streams of the topology that a backup has not."""
    kept = {planned.name for planned in plan(topology)}
    return [config["name"] for config in topology.streams() if config["name"] not in kept]


def _moves(config: dict[str, Any]) -> bool:
    return any(config.get(field) for field in ("max_age", "sources", "allow_msg_schedules"))
