"""`python -m bench`: run the benchmarks, print a Markdown table, write JSON, the table and charts.

Examples:
    python -m bench                                  everything; half an hour
    python -m bench --quick                          everything, short: shows that it works, the figures are rough
    python -m bench --only report --only latency     some; the others' results stay as they are
    python -m bench --only memory --full-size        a million turns; the default is a tenth of that
    python -m bench --check                          exit 1 when a required target is missed
    python -m bench.scale                            what docs/scale.md is made from, out of the results
"""

import argparse
import signal
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import msgspec

from bench.machine import facts
from bench.noise import Noise, calibrate
from bench.options import FULL, FULL_SIZE_TURNS, QUICK, Options
from bench.results import JSON, TABLE, Results, Run, document, write
from bench.results import facts as in_one_line
from bench.rig import BenchmarkFailed
from bench.rows import Row

OUT: Final = Path(__file__).parent / "out"

BENCHMARKS: Final = (
    "report",
    "conclusion",
    "startup",
    "latency",
    "pipeline",
    "core",
    "peers",
    "strict",
    "questions",
    "tasks",
    "supervisor",
    "rest",
    "filled",
    "events",
    "console",
    "mcp",
    "bytes",
    "cluster",
    "memory",
)
"""The names of the benchmarks, in the order in which they run; each is `run` in the module of its name."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what was asked for and return the exit code."""
    chosen = _parse(arguments)
    if chosen.list:
        print("\n".join(f"{name:<12}{_summary(name)}" for name in BENCHMARKS))
        return 0
    # An end by signal must unwind the `with` blocks, which end the servers and workers.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    machine = facts()
    print(in_one_line(machine), end="\n\n", flush=True)
    runs: list[Run] = []
    broken: list[str] = []
    for name in chosen.only or BENCHMARKS:
        print(f"{name} …", file=sys.stderr, flush=True)
        before = calibrate()
        try:
            rows = _benchmark(name)(_options(chosen))
        except BenchmarkFailed as error:
            broken.append(name)
            rows = [Row(name, name, None, note=f"failed: {error}")]
        at = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
        length = "quick" if chosen.quick else "full"
        run = Run(name, at, length, Noise(before, calibrate()), tuple(rows))
        runs.append(run)
        # At once: half an hour's work is not to be lost with its last minute.
        write(chosen.out, Results(machine, (run,)))
    measured = Results(machine, tuple(runs))
    print(document(measured))
    missed = [row.name for row in measured.rows if row.missed]
    print(f"\nfailed benchmarks: {', '.join(broken) or 'none'}")
    print(f"missed targets: {'; '.join(missed) or 'none'}")
    print(f"written: {chosen.out}/{JSON}, {TABLE} and charts")
    return 1 if broken or (chosen.check and missed) else 0


def _benchmark(name: str) -> Callable[[Options], list[Row]]:
    found: Callable[[Options], list[Row]] = import_module(f"bench.{name}").run
    return found


def _summary(name: str) -> str:
    return (import_module(f"bench.{name}").__doc__ or "").partition("\n")[0]


def _options(chosen: Any) -> Options:
    options = QUICK if chosen.quick else FULL
    turns = chosen.memory_turns or (FULL_SIZE_TURNS if chosen.full_size else options.memory_turns)
    return msgspec.structs.replace(options, memory_turns=turns)


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    summary, _, examples = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description=summary,
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--list", action="store_true", help="say what each benchmark measures, and run none")
    parser.add_argument("--quick", action="store_true", help="short rounds")
    parser.add_argument(
        "--only", action="append", choices=BENCHMARKS, metavar="NAME", help="run this one; may be repeated"
    )
    parser.add_argument("--out", type=Path, metavar="DIR", default=OUT, help="where results go instead of bench/out")
    parser.add_argument("--full-size", action="store_true", help="the memory benchmark over a million turns")
    parser.add_argument("--memory-turns", type=int, metavar="N", help="turns of the memory benchmark")
    parser.add_argument("--check", action="store_true", help="exit 1 when a required target is missed")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
