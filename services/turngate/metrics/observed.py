"""What a service shows of itself to the monitor: its moving parts, and what it counted."""

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from msgspec import Struct

from turngate.jetstream.api import Api
from turngate.jetstream.consume import ConsumeLoop
from turngate.jetstream.keyed import Lanes
from turngate.jetstream.reconcile import Reconciler
from turngate.metrics.histogram import Histogram

Labels = str | tuple[str, ...]
"""The values of a metric's labels, in the order of `turngate.metrics.names`."""


class Observed(Struct, frozen=True):
    """The parts of one service in this process.

    Attributes:
        loops: its consume loops; those of its reconcilers are added.
        lanes: the works of its buckets.
        reconcilers: its reconcilers.
        apis: its requests.
        counts: what it counted, by metric and labels.
        histograms: what it measured, likewise.
    """

    loops: tuple[ConsumeLoop, ...] = ()
    lanes: tuple[Lanes[Any], ...] = ()
    reconcilers: tuple[Reconciler, ...] = ()
    apis: tuple[Api, ...] = ()
    counts: Mapping[str, Mapping[Any, int] | int] = {}
    histograms: Mapping[str, Mapping[str, Histogram]] = {}

    @property
    def all_loops(self) -> tuple[ConsumeLoop, ...]:
        """Every consume loop, the reconcilers' included."""
        return (*self.loops, *(reconciler.loop for reconciler in self.reconcilers))


@runtime_checkable
class Observable(Protocol):
    """A service that shows what it does."""

    def observed(self) -> Observed:
        """Return its parts; called after it was started."""
