"""How long `turngate --help` takes beside an interpreter that imports what every command needs."""

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from bench.options import Options
from bench.rows import Row, Target, median_row, paired

NAME: Final = "startup"

_TARGET: Final = Target(1.6, required=False)
_RATIO: Final = "turngate --help / import"
_IMPORTS: Final = (sys.executable, "-c", "import asyncio, msgspec")


def run(options: Options) -> list[Row]:
    """Start both commands in turn; a command line that is not there or fails is said in its row."""
    command = Path(sys.executable).parent / "turngate"
    if not command.exists():
        return [Row(NAME, _RATIO, None, target=_TARGET, note=f"{command.name} is not installed beside this Python")]
    _, failure = _start_ms((str(command), "--help"))
    if failure:
        return [Row(NAME, _RATIO, None, target=_TARGET, note=f"turngate --help failed: {failure}")]
    imports, helps = [], []
    for _ in range(options.start_ups):
        imports.append(_start_ms(_IMPORTS)[0])
        helps.append(_start_ms((str(command), "--help"))[0])
    return [
        median_row(NAME, 'python -c "import asyncio, msgspec"', imports, "ms"),
        median_row(NAME, "turngate --help", helps, "ms"),
        median_row(NAME, _RATIO, paired(helps, imports), "", _TARGET),
    ]


def _start_ms(command: Sequence[str]) -> tuple[float, str]:
    """Return how long a command took, and the last line that it complained with when it failed."""
    began = time.perf_counter()
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    took = (time.perf_counter() - began) * 1000
    complaint = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
    return took, complaint[-1] if done.returncode else ""
