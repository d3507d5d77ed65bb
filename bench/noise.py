"""How busy the machine was beside a benchmark: the same fixed work timed before and after it, and the load average.

A figure from a machine that others share is only as good as the minutes in which it was taken. The work is a loop in
plain Python that takes some 50 ms on its own: its CPU time says how fast the core was, and its time by the clock how
long it waited for one.
"""

import os
import time
from typing import Final

from msgspec import Struct

_TURNS: Final = 400_000
_TIMES: Final = 3
QUIET: Final = 1.15
"""Up to which ratio of clock to CPU time, and of one calibration to another, a machine counts as quiet."""


class Calibration(Struct, frozen=True):
    """The fixed work once: its CPU time and its time by the clock in ms, and the load average of the last minute."""

    cpu_ms: float
    wall_ms: float
    load: float


class Noise(Struct, frozen=True):
    """The calibrations before and after a benchmark."""

    before: Calibration
    after: Calibration

    @property
    def waited(self) -> float:
        """Time by the clock in CPU times: 1 where the work never waited for a core."""
        return max(one.wall_ms / one.cpu_ms for one in (self.before, self.after))

    @property
    def drift(self) -> float:
        """The slower calibration's CPU time in the faster one's."""
        low, high = sorted((self.before.cpu_ms, self.after.cpu_ms))
        return high / low

    @property
    def quiet(self) -> bool:
        """Whether the figures between these calibrations can be believed as they are."""
        return self.waited <= QUIET and self.drift <= QUIET


def calibrate() -> Calibration:
    """Do the fixed work a few times and return the median by CPU time."""
    return sorted((_once() for _ in range(_TIMES)), key=lambda one: one.cpu_ms)[_TIMES // 2]


def _once() -> Calibration:
    cpu, wall = time.thread_time_ns(), time.perf_counter_ns()
    value = 0
    for number in range(_TURNS):
        value = (value * 31 + number) & 0xFFFF
    took = time.thread_time_ns() - cpu
    return Calibration(took / 1e6, (time.perf_counter_ns() - wall) / 1e6, os.getloadavg()[0])
