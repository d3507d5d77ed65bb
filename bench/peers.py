"""The same pipeline as a user would build it with FastStream or taskiq, beside ours without and with its guarantees.

All read the same 4 KiB report with the protocol's own functions and tell the same verdict to the same load; none but
the validation service keeps a state. Each has a server of its own, and they take turns round by round. The peers run
in a virtual environment that `make bench-peers` makes; without it they are left out.
"""

import contextlib
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from bench.load import Envelope
from bench.options import Options
from bench.pipeline import Round, measure
from bench.rig import PYTHON as OURS
from bench.rig import Rig, rig
from bench.rows import Row, Target, median_row, paired
from turngate.process import run as run_loop
from turngate_contracts.topology import Durability

NAME: Final = "peers"
PYTHON: Final = Path(__file__).parent.parent / "build" / "peers" / "bin" / "python"
TASKIQ_SUBJECT: Final = "taskiq_tasks"
TASKIQ_TASK: Final = "judge"

_CEILING: Final = "no-op"
_CHECKED: Final = "Turngate's client, guarantees left out"
_FULL: Final = "Turngate, with its guarantees"
_FASTSTREAM: Final = "FastStream on JetStream"
_TASKIQ: Final = "taskiq with its NATS broker"
_OURS: Final = {"noop": _CEILING, "checked": _CHECKED, "validation": _FULL}
_THEIRS: Final = {"faststream": _FASTSTREAM, "taskiq": _TASKIQ}
_TARGET: Final = Target(3.0, at_least=True)


def run(options: Options) -> list[Row]:
    """Measure ours, and theirs where they are installed."""
    kinds = _OURS | (_THEIRS if PYTHON.exists() else {})
    with contextlib.ExitStack() as stack:
        rigs = {
            kind: stack.enter_context(rig(kind, Durability.RELAXED, PYTHON if kind in _THEIRS else OURS))
            for kind in kinds
        }
        rounds = run_loop(_rounds(rigs, options))
    return rows(rounds)


def rows(rounds: Mapping[str, Sequence[Round]]) -> list[Row]:
    """Return the figures of rounds by the kind of their worker; peers that have none are said to be left out."""
    kinds = _OURS | _THEIRS
    rates = {kinds[kind]: [one.span.per_second for one in found] for kind, found in rounds.items()}
    cpus = {kinds[kind]: [one.cpu.worker for one in found] for kind, found in rounds.items()}
    made = [
        median_row(NAME, name, found, "turns/s", ceiling="" if name == _CEILING else _CEILING)
        for name, found in rates.items()
    ]
    made += [
        median_row(NAME, f"{name}: CPU, worker", found, "µs/turn", ceiling=f"{_CEILING}: CPU, worker")
        for name, found in cpus.items()
    ]
    for peer in _THEIRS.values():
        made += _compared(peer, rates)
    return made


def _compared(peer: str, rates: dict[str, list[float]]) -> list[Row]:
    target = _TARGET if peer == _FASTSTREAM else None
    names = (f"{_CHECKED} / {peer}", f"{_FULL} / {peer}")
    if peer not in rates:
        return [Row(NAME, name, None, note="left out: `make bench-peers` installs it") for name in names]
    return [
        median_row(NAME, names[0], paired(rates[_CHECKED], rates[peer]), "", target),
        median_row(NAME, names[1], paired(rates[_FULL], rates[peer])),
    ]


async def _rounds(rigs: Mapping[str, Rig], options: Options) -> dict[str, list[Round]]:
    found: dict[str, list[Round]] = {kind: [] for kind in rigs}
    for _ in range(options.rounds):
        for kind, on in rigs.items():
            found[kind].append(await measure(on, options, 1, envelope=_TASK if kind == "taskiq" else None))
    return found


def _as_task(body: bytes) -> bytes:
    """Return a taskiq message whose one argument is the submitted report as text."""
    argument = msgspec.json.encode(body.decode())
    head = f'{{"task_id":"{secrets.token_hex(8)}","task_name":"{TASKIQ_TASK}","labels":{{}},"kwargs":{{}},"args":['
    return head.encode() + argument + b"]}"


_TASK: Final = Envelope(TASKIQ_SUBJECT, _as_task)
