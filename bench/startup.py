"""How long commands take to start: `--help` beside an interpreter that imports as much, and `up` and each service.

`--help` is compared with what every command imports. `up` and the services count as started when they say that they are
ready; each service starts against a server that runs and whose streams exist, `up` makes all of it.
"""

import contextlib
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from bench.options import Options
from bench.rig import BenchmarkFailed
from bench.rows import Row, Target, median_row, paired
from turngate.jetstream.embedded import EmbeddedServer
from turngate.registry import CONSOLE, EVERY

NAME: Final = "startup"

_TARGET: Final = Target(1.6)
_IMPORTED: Final = 'python -c "import asyncio, msgspec"'
_UP: Final = Target(2_000)
_READY_S: Final = 30.0
_STOP_S: Final = 15.0
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
        median_row(NAME, _IMPORTED, imports, "ms"),
        median_row(NAME, "turngate --help", helps, "ms", ceiling=_IMPORTED),
        median_row(NAME, _RATIO, paired(helps, imports), "", _TARGET),
        *_until_ready(command, max(3, options.start_ups // 3)),
    ]


def _until_ready(command: Path, times: int) -> list[Row]:
    rows = []
    with tempfile.TemporaryDirectory(prefix="turngate-bench-") as directory, contextlib.ExitStack() as stack:
        ups = []
        for number in range(times):
            state = Path(directory) / f"up-{number}"
            ups.append(_ready_ms((str(command), "up", "--port", "0", "--console-port", "0", "--state-dir", str(state))))
        rows.append(median_row(NAME, "turngate up, until ready", ups, "ms", _UP, ceiling=_IMPORTED))
        server = stack.enter_context(EmbeddedServer(Path(directory) / "state"))
        for name in EVERY:
            port = ("--console-port", "0") if name == CONSOLE else ()
            serve = (str(command), "serve", name, "--nats-url", server.url, *port)
            took = [_ready_ms(serve) for _ in range(times)]
            rows.append(median_row(NAME, f"turngate serve {name}, until ready", took, "ms", ceiling=_IMPORTED))
    return rows


def _ready_ms(command: Sequence[str]) -> float:
    """Return how long a command took until it said that it is ready; it is ended then.

    Raises:
        BenchmarkFailed: it did not say so.
    """
    began = time.perf_counter()
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL
    ) as started:
        assert started.stderr is not None, "started with a pipe"
        said = b""
        with selectors.DefaultSelector() as selector:
            selector.register(started.stderr, selectors.EVENT_READ)
            while b"ready: " not in said and selector.select(_READY_S):
                read = os.read(started.stderr.fileno(), 65_536)
                if not read:
                    break
                said += read
        took = (time.perf_counter() - began) * 1000
        started.send_signal(signal.SIGTERM)
        # What it writes to the end has to go somewhere.
        said += started.communicate(timeout=_STOP_S)[1] if b"ready: " in said else b""
    if b"ready: " not in said:
        raise BenchmarkFailed(f"`{' '.join(command[:3])}` did not become ready: {said[-300:].decode(errors='replace')}")
    return took


def _start_ms(command: Sequence[str]) -> tuple[float, str]:
    """Return how long a command took, and the last line that it complained with when it failed."""
    began = time.perf_counter()
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    took = (time.perf_counter() - began) * 1000
    complaint = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
    return took, complaint[-1] if done.returncode else ""
