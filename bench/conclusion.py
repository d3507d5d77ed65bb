"""What reading a delegated agent's closing block costs, without any NATS: parse and enrich beside YAML's C loader.

PyYAML's C loader on the block's body alone is the yardstick, because every reader of a block pays at least that. The
prose that an agent writes before the block should cost next to nothing: it is searched from its end.
"""

from collections.abc import Callable
from typing import Final

import yaml

from bench.options import Options
from bench.report import loops_of, time_us
from bench.rig import BenchmarkFailed
from bench.rows import Row, Target, median_row, paired
from turngate_protocol.conclusion import CLOSING_TAG, OPENING_TAG, Conclusion, Task, enrich, parse

NAME: Final = "conclusion"

PROSE_BYTES: Final = 64 * 1024
_RATIO: Final = Target(2)
_PROSE_US: Final = Target(20)
_BODY: Final = """
status: success
summary: The retry policy and its tests are in place
artifacts:
  - src/retry.py
  - tests/test_retry.py
  - docs/retry.md
memory_refs:
  - kb/retry-policy
  - kb/decisions/12
follow_up: Run the soak test before the release
confidence: 0.85
"""
_BLOCK: Final = f"{OPENING_TAG}{_BODY}{CLOSING_TAG}\n"
_PROSE: Final = "I looked at the call sites first, then wrote the policy and its tests. "


def run(options: Options) -> list[Row]:
    """Measure a typical block of twelve lines, alone and behind prose."""
    loader = getattr(yaml, "CSafeLoader", None)
    if loader is None:
        raise BenchmarkFailed("PyYAML was built without libyaml, so there is nothing to compare with")
    plain = Task("t1", "completed", output=_BLOCK)
    wordy = Task("t1", "completed", output=(_PROSE * (PROSE_BYTES // len(_PROSE) + 1))[:PROSE_BYTES] + _BLOCK)
    steps: dict[str, Callable[[], object]] = {
        "C loader alone": lambda: yaml.load(_BODY, Loader=loader),
        "parse": lambda: parse(_BLOCK),
        "parse and enrich": lambda: _enriched(plain),
        "parse and enrich behind 64 KB of prose": lambda: _enriched(wordy),
    }
    times: dict[str, list[float]] = {name: [] for name in steps}
    counts = {name: loops_of(step) for name, step in steps.items()}
    for _ in range(options.report_rounds):
        for name, step in steps.items():
            times[name].append(time_us(step, counts[name]))
    rows = [median_row(NAME, name, times[name], "µs", ceiling="C loader alone") for name in steps]
    ratio = paired(times["parse and enrich"], times["C loader alone"])
    behind, alone = times["parse and enrich behind 64 KB of prose"], times["parse and enrich"]
    prose = [this - that for this, that in zip(behind, alone, strict=True)]
    return [
        *rows,
        median_row(NAME, "parse and enrich / C loader", ratio, "", _RATIO),
        median_row(NAME, "64 KB of prose before the block", prose, "µs", _PROSE_US),
    ]


def _enriched(task: Task) -> Conclusion:
    conclusion = enrich(task, now_ms=1)[1]
    if conclusion is None or conclusion.confidence != 0.85:
        raise BenchmarkFailed("the block was not read")
    return conclusion
