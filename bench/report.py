"""What the report protocol itself costs, without any NATS: decode, normalise, validate, encode beside `json.loads`.

`json.loads` of the same bytes is the yardstick because every reader of a report pays at least that in plain Python.
Each round is short and counted in CPU time, so that other processes on the machine disturb few of them, and those
little.
"""

import json
import time
from collections.abc import Callable
from typing import Final

import msgspec

from bench.load import FIXTURES
from bench.options import Options
from bench.rig import BenchmarkFailed
from bench.rows import Row, Target, median_row, paired
from turngate_protocol.report import Report, decode, normalise, validate

NAME: Final = "report"

_SIZES: Final = {"11k": Target(1.6), "4k": None}
_SAMPLE_US: Final = 2_000
_encode: Final = msgspec.json.Encoder().encode


def run(options: Options) -> list[Row]:
    """Measure both sizes."""
    return [row for size, target in _SIZES.items() for row in _size(size, target, options.report_rounds)]


def _size(size: str, target: Target | None, rounds: int) -> list[Row]:
    data = (FIXTURES / f"report_{size}.json").read_bytes()
    report = _checked(data)
    steps: dict[str, Callable[[], object]] = {
        "json.loads": lambda: json.loads(data),
        "decode": lambda: decode(data),
        "normalise": lambda: normalise(report),
        "validate": lambda: validate(report),
        "encode": lambda: _encode(report),
        "all four": lambda: _encode(_checked(data)),
    }
    times: dict[str, list[float]] = {name: [] for name in steps}
    loops = {name: loops_of(step) for name, step in steps.items()}
    for _ in range(rounds):
        for name, step in steps.items():
            times[name].append(time_us(step, loops[name]))
    ceiling = f"{size}: json.loads"
    rows = [median_row(NAME, f"{size}: {name}", times[name], "µs", ceiling=ceiling) for name in steps]
    ratio = paired(times["all four"], times["json.loads"])
    return [*rows, median_row(NAME, f"{size}: all four / json.loads", ratio, "", target)]


def _checked(data: bytes) -> Report:
    decoded = decode(data)
    problems = decoded if isinstance(decoded, list) else validate(report := normalise(decoded))
    if problems:
        raise BenchmarkFailed(f"the fixture is not an accepted report: {problems[0].message}")
    return report


def loops_of(step: Callable[[], object]) -> int:
    """Return how often a step is repeated in one round."""
    return max(1, int(_SAMPLE_US / time_us(step, 20)))


def time_us(step: Callable[[], object], loops: int) -> float:
    """Return the CPU time of one call in µs, over `loops` of them."""
    began = time.thread_time_ns()
    for _ in range(loops):
        step()
    return (time.thread_time_ns() - began) / 1e3 / loops
