"""How long each benchmark measures: the full run, and the quick one that shows whether everything works."""

from typing import Final

from msgspec import Struct


class Options(Struct, frozen=True):
    """The lengths of a run.

    Attributes:
        rounds: how often the no-op and the real service take turns in the pipeline; short and many, so that a busy
            second, or a processor that slows down meanwhile, spoils few.
        warm_up_s: how long each round of the pipeline runs before it counts, in seconds.
        seconds: how long it counts.
        latency_rounds: how often they take turns for latency, likewise.
        latency_turns: turns of each of those.
        report_rounds: rounds of the report and conclusion benchmarks, each some 12 ms long.
        memory_turns: turns of the memory benchmark.
        filled: old sessions, among which turns must be as fast as among none.
        resting: objectives at rest, among which a step must cost as much as among few.
        rest_steps: steps that are compared there.
        start_ups: how often each command is started.
    """

    rounds: int = 12
    warm_up_s: float = 0.5
    seconds: float = 1.5
    latency_rounds: int = 20
    latency_turns: int = 100
    report_rounds: int = 200
    memory_turns: int = 100_000
    filled: int = 100_000
    resting: int = 20_000
    rest_steps: int = 1_000
    start_ups: int = 15


FULL_SIZE_TURNS: Final = 1_000_000
"""The turns of the memory benchmark when somebody has the time."""

FULL: Final = Options()
QUICK: Final = Options(
    rounds=3,
    warm_up_s=0.5,
    seconds=1.5,
    latency_rounds=8,
    latency_turns=50,
    report_rounds=30,
    memory_turns=10_000,
    filled=10_000,
    resting=2_000,
    rest_steps=300,
    start_ups=5,
)
