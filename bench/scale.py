"""`python -m bench.scale`: the table of docs/scale.md, from what `python -m bench` measured.

Examples:
    python -m bench --only bytes --only cluster      measure what the table needs
    python -m bench.scale                            print the table
    python -m bench.scale --write docs/scale.md      put it into the document
"""

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from bench.__main__ import OUT
from bench.bytes import MEMORY, TURNS_A_SESSION
from bench.results import Results, read
from bench.rows import aligned, shown
from bench.supervisor import STEPS
from turngate_contracts.topology import OBJECTIVES_HISTORY, RETENTION_DAYS, Topology

BEGIN: Final = "<!-- made by python -m bench.scale -->"
END: Final = "<!-- end of what it made -->"

SERVERS: Final = 3
CORES: Final = 8
MEMORY_GIB: Final = 32
DISK_TB: Final = 2
BUSY: Final = 0.6
"""How much of cores, memory and disk is planned with."""
PEAK: Final = 4
"""The busiest hour in mean hours of the day."""
CARDS: Final = 0.25
"""How many turns leave a card, with a report of 11 KiB; the others report 4 KiB."""
ROLE_RUN_S: Final = 300
"""How long one role run of an objective takes."""
DAY_S: Final = 86_400

_BYTES: Final = "python -m bench --only bytes"
_CLUSTER: Final = "python -m bench --only cluster"
_SMALL: Final = f"turn, {TURNS_A_SESSION} a session"
_CARD: Final = "turn with a card, new sessions"
_STEP: Final = "objective's step"


class _Measured(Struct, frozen=True):
    """A figure of a benchmark: the symbol that formulas call it by, and where it comes from."""

    symbol: str
    name: str
    benchmark: str
    row: str
    unit: str


class _Derived(Struct, frozen=True):
    """A figure that follows from others; `how` is the formula as the table shows it."""

    symbol: str
    name: str
    how: str
    unit: str
    value: Callable[[dict[str, float]], float]


MEASURED: Final = (
    _Measured("a", "stored in a bucket by a turn, 4 KiB report", "bytes", f"{_SMALL}: revisions in the bucket", "B"),
    _Measured("b", "the same, 11 KiB report with a card", "bytes", f"{_CARD}: revisions in the bucket", "B"),
    _Measured("c", "stored as events by a turn, 4 KiB", "bytes", f"{_SMALL}: events", "B"),
    _Measured("d", "the same, 11 KiB with a card", "bytes", f"{_CARD}: events", "B"),
    _Measured("e", "in the inbox, while a card waits", "bytes", f"{_CARD}: inbox", "B"),
    _Measured("f", "in the intake, until the verdict", "bytes", "turn: intake, until it is acked", "B"),
    _Measured("g", "memory of a server by session", "bytes", MEMORY, "B"),
    _Measured("h", "stored in a bucket by an objective's step", "bytes", f"{_STEP}: revisions in the bucket", "B"),
    _Measured("i", "stored as events by a step", "bytes", f"{_STEP}: events", "B"),
    _Measured("k", "CPU of all servers by turn", "cluster", "strict: CPU, all servers", "µs"),
    _Measured("l", "CPU of validation by turn", "cluster", "strict: CPU, validation", "µs"),
    _Measured("m", "turns a second of one namespace", "cluster", "strict: validation", "/s"),
    _Measured("n", "CPU of all servers by step", "cluster", "strict: step CPU, all servers", "µs"),
    _Measured("o", "CPU of the supervisor by step", "cluster", "strict: step CPU, supervisor", "µs"),
    _Measured("p", "steps a second of one namespace", "cluster", "strict: steps", "/s"),
)
"""What is measured, with one letter each."""


def _limit(stream: str) -> int:
    """Return the most bytes that a stream takes."""
    topology = Topology()
    name = topology.subjects.stream(stream)
    return int(next(config["max_bytes"] for config in topology.streams() if config["name"] == name))


DERIVED: Final = (
    _Derived("A", "bytes kept by a turn", f"a x {1 - CARDS:g} + b x {CARDS:g}", "B", lambda v: _mix(v["a"], v["b"])),
    _Derived("B", "events by a turn", f"c x {1 - CARDS:g} + d x {CARDS:g}", "B", lambda v: _mix(v["c"], v["d"])),
    _Derived(
        "C",
        "turns a day by disk",
        f"{DISK_TB} TB x {BUSY:g} / (A x {RETENTION_DAYS} days)",
        "/day",
        lambda v: DISK_TB * 1e12 * BUSY / (v["A"] * RETENTION_DAYS),
    ),
    _Derived(
        "D",
        "turns a day by memory",
        f"{MEMORY_GIB} GiB x {BUSY:g} x {TURNS_A_SESSION} turns a session / (g x {RETENTION_DAYS} days)",
        "/day",
        lambda v: MEMORY_GIB * 2**30 * BUSY * TURNS_A_SESSION / (v["g"] * RETENTION_DAYS),
    ),
    _Derived(
        "E",
        "turns a day by CPU",
        f"{SERVERS} x {CORES} cores x {BUSY:g} / (k + l) / {PEAK} x a day",
        "/day",
        lambda v: SERVERS * CORES * BUSY * 1e6 / (v["k"] + v["l"]) / PEAK * DAY_S,
    ),
    _Derived("F", "turns a day by rate", f"m / {PEAK} x a day", "/day", lambda v: v["m"] / PEAK * DAY_S),
    _Derived("G", "**turns a day**", "the least of C, D, E, F", "/day", lambda v: min(v[symbol] for symbol in "CDEF")),
    _Derived(
        "H",
        "days that events then reach back, 7 at most",
        f"{_limit('events') // 2**20:,} MiB / (B x G)",
        "days",
        lambda v: min(7.0, _limit("events") / (v["B"] * v["G"])),
    ),
    _Derived(
        "I",
        "turns a day up to which they reach back 7 days",
        f"{_limit('events') // 2**20:,} MiB / (B x 7)",
        "/day",
        lambda v: _limit("events") / (v["B"] * 7),
    ),
    _Derived(
        "K",
        "minutes without services until the intake is full, at the peak",
        f"{_limit('turns') // 2**20:,} MiB / (f x G x {PEAK}) in minutes",
        "min",
        lambda v: _limit("turns") / (v["f"] * v["G"] * PEAK / DAY_S) / 60,
    ),
    _Derived(
        "L",
        "most bytes kept by an objective",
        f"h x {OBJECTIVES_HISTORY} revisions",
        "B",
        lambda v: v["h"] * OBJECTIVES_HISTORY,
    ),
    _Derived(
        "M", "objectives kept by disk", f"{DISK_TB} TB x {BUSY:g} / L", "", lambda v: DISK_TB * 1e12 * BUSY / v["L"]
    ),
    _Derived(
        "N",
        "objectives under way by CPU",
        f"{SERVERS} x {CORES} cores x {BUSY:g} / (n + o) x {ROLE_RUN_S} s / {STEPS} steps",
        "",
        lambda v: SERVERS * CORES * BUSY * 1e6 / (v["n"] + v["o"]) * ROLE_RUN_S / STEPS,
    ),
    _Derived(
        "O",
        "objectives under way by rate",
        f"p x {BUSY:g} x {ROLE_RUN_S} s / {STEPS} steps",
        "",
        lambda v: v["p"] * BUSY * ROLE_RUN_S / STEPS,
    ),
    _Derived("P", "**objectives under way**", "the least of M, N, O", "", lambda v: min(v[symbol] for symbol in "MNO")),
)
"""What follows, in an order in which each uses earlier ones."""


def table(results: Results) -> str:
    """Return the table: what was measured, and what follows from it for a cluster of the stated size."""
    values: dict[str, float] = {}
    rows: list[tuple[str, str, str, str]] = [("", "figure", "value", "from")]
    for one in MEASURED:
        command = _BYTES if one.benchmark == "bytes" else _CLUSTER
        found = results.find(one.benchmark, one.row)
        if found is not None:
            values[one.symbol] = found
        rows.append((one.symbol, one.name, _value(found, one.unit), f"`{command}`"))
    for each in DERIVED:
        try:
            values[each.symbol] = each.value(values)
        except (KeyError, ZeroDivisionError):
            values.pop(each.symbol, None)
        found = values.get(each.symbol)
        # What follows from assumptions deserves no more digits.
        rounded = None if found is None else float(f"{found:.2g}")
        rows.append((each.symbol, each.name, _value(rounded, each.unit), each.how))
    return aligned(rows)


def block(results: Results) -> str:
    """Return the part of the document that is made anew: the table, and when and on what it was measured."""
    used = {one.benchmark for one in MEASURED}
    conditions = [
        f"`{run.benchmark}`: {run.at}, {run.options} rounds, {'quiet' if run.noise.quiet else 'busy'} machine "
        f"(waited {run.noise.waited:.2f}, drift {run.noise.drift:.2f}, load {run.noise.before.load:.1f})"
        for run in results.runs
        if run.benchmark in used
    ]
    machine = " · ".join(f"{name} {value}" for name, value in results.machine.items())
    return "\n".join((BEGIN, "", table(results), "", f"Measured on: {machine}.", *_lines(conditions), "", END))


def _lines(conditions: Iterable[str]) -> list[str]:
    return [f"{condition}." for condition in conditions]


def _mix(small: float, with_card: float) -> float:
    return small * (1 - CARDS) + with_card * CARDS


def _value(value: float | None, unit: str) -> str:
    return "not measured" if value is None else f"{shown(value)} {unit}".rstrip()


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table, or put it into a document; 1 when nothing was measured."""
    summary, _, examples = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(
        prog="python -m bench.scale",
        description=summary,
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--out", type=Path, metavar="DIR", default=OUT, help="where the results are")
    parser.add_argument("--write", type=Path, metavar="FILE", help="the document whose table is replaced")
    chosen = parser.parse_args(arguments)
    results = read(chosen.out)
    if results is None:
        print(f"there are no results in {chosen.out}; run `{_BYTES} --only cluster` first", file=sys.stderr)
        return 1
    if chosen.write is None:
        print(block(results))
        return 0
    text = chosen.write.read_text(encoding="utf-8")
    head, begin, rest = text.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not (begin and end):
        print(f"{chosen.write} has no place for the table: a line {BEGIN} and a line {END}", file=sys.stderr)
        return 1
    chosen.write.write_text(head + block(results) + tail, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
