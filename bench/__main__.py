"""`python -m bench`: run the benchmarks, print a Markdown table, write a JSON file.

Examples:
    python -m bench                                  everything; some minutes
    python -m bench --quick                          everything, short: shows that it works, the figures are rough
    python -m bench --only report --only latency     some
    python -m bench --check                          exit 1 when a required target is missed
"""

import argparse
import signal
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from bench import conclusion, console, filled, latency, mcp, memory, pipeline, report, rest, startup, strict, supervisor
from bench.machine import facts
from bench.options import FULL, QUICK, Options
from bench.rig import BenchmarkFailed
from bench.rows import Row, as_data, markdown

OUT: Final = Path(__file__).parent / "out"

BENCHMARKS: Final[dict[str, Callable[[Options], list[Row]]]] = {
    module.NAME: module.run
    for module in (
        report,
        conclusion,
        startup,
        latency,
        pipeline,
        strict,
        supervisor,
        rest,
        filled,
        console,
        mcp,
        memory,
    )
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what was asked for and return the exit code."""
    chosen = _parse(arguments)
    # An end by signal must unwind the `with` blocks, which end the servers and workers.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    machine = facts()
    print(" · ".join(f"{name} {value}" for name, value in machine.items()), end="\n\n", flush=True)
    rows: list[Row] = []
    broken: list[str] = []
    for name in chosen.only or BENCHMARKS:
        print(f"{name} …", file=sys.stderr, flush=True)
        try:
            rows += BENCHMARKS[name](_options(chosen))
        except BenchmarkFailed as error:
            broken.append(name)
            rows.append(Row(name, name, None, note=f"failed: {error}"))
    print(markdown(rows))
    path = chosen.json or OUT / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    result = {"machine": machine, "quick": chosen.quick, "rows": as_data(rows)}
    path.write_bytes(msgspec.json.format(msgspec.json.encode(result)) + b"\n")
    missed = [row.name for row in rows if row.missed]
    print(f"\nfailed benchmarks: {', '.join(broken) or 'none'}")
    print(f"missed targets: {'; '.join(missed) or 'none'}")
    print(f"written: {path}")
    return 1 if broken or (chosen.check and missed) else 0


def _options(chosen: Any) -> Options:
    options = QUICK if chosen.quick else FULL
    turns = chosen.memory_turns or options.memory_turns
    return msgspec.structs.replace(options, memory_turns=turns)


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    summary, _, examples = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description=summary,
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--quick", action="store_true", help="short rounds")
    parser.add_argument("--only", action="append", choices=BENCHMARKS, help="run this one; may be repeated")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where the figures go instead of bench/out/")
    parser.add_argument("--memory-turns", type=int, metavar="N", help="turns of the memory benchmark")
    parser.add_argument("--check", action="store_true", help="exit 1 when a required target is missed")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
