"""Turns a second on one core, and what a turn costs there: the service, its server and the load client share it.

Where two processes run at once, each is charged for waiting for the other: virtual cores often share one that is real,
and all share its caches. On the machine this was written on, the same work takes up to 1.7 times the CPU time beside
another busy core. Here nothing that is at work runs beside what is measured, so this is the figure that is compared
from version to version. The server sees one core, and has one thread at work.
"""

import contextlib
from collections.abc import Sequence
from typing import Final

from bench.machine import on_one_core
from bench.options import Options
from bench.pipeline import Round, alternate, cpu_rows
from bench.rig import rig
from bench.rows import Row, median_row, paired
from turngate.process import run as run_loop
from turngate_contracts.topology import Durability

NAME: Final = "core"
_MIXES: Final = {"new sessions": 1, "10 turns a session": 10}


def run(options: Options) -> list[Row]:
    """Measure each mix on fresh servers."""
    rows = []
    with on_one_core() as pinned:
        if not pinned:
            return [Row(NAME, "one core", None, note="left out: this system can't keep a process on one core")]
        for mix, turns_a_session in _MIXES.items():
            with contextlib.ExitStack() as stack:
                rigs = [stack.enter_context(rig(kind, Durability.RELAXED)) for kind in ("noop", "validation")]
                rows += _rows(mix, *run_loop(alternate(rigs, options, turns_a_session)))
    return rows


def _rows(mix: str, noops: Sequence[Round], reals: Sequence[Round]) -> list[Row]:
    slow, fast = [r.span.per_second for r in reals], [r.span.per_second for r in noops]
    ceiling = f"{mix}: no-op"
    return [
        median_row(NAME, ceiling, fast, "turns/s"),
        median_row(NAME, f"{mix}: validation", slow, "turns/s", ceiling=ceiling),
        median_row(NAME, f"{mix}: validation / no-op", paired(slow, fast)),
        *cpu_rows(NAME, mix, noops, reals, has_targets=True),
    ]
