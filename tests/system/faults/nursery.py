"""A process that has the services imported and forks one for each line of its standard input, in some milliseconds.

    {"arguments": ["serve", "validation"], "environment": {…}, "log": "path"}

It says `{"pid": …}` for each, and `{"pid": …, "exit": …}` once it has ended; `exit` is negative for a signal. What it
forks is a process like any other: nothing in it has run yet but imports. It ends when its standard input does.
"""

import contextlib
import importlib
import json
import os
import random
import selectors
import signal
import sys
from typing import Any

_IMPORTED = (
    "uvloop",
    "turngate.cli.main",
    "turngate.cli.serve",
    "turngate.process",
    "turngate.validation.service",
    "turngate.conclusion.service",
    "turngate.supervisor.service",
    "turngate.deadletter.service",
    "turngate.jetstream.crash",
    "turngate.cli.backup",
    "turngate.cli.restore",
    "turngate.backup.create",
    "turngate.backup.restore",
)


def main() -> None:
    """Fork until standard input ends."""
    for module in _IMPORTED:
        with contextlib.suppress(ImportError):
            importlib.import_module(module)
    woken, waking = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(waking)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    waits = selectors.DefaultSelector()
    waits.register(0, selectors.EVENT_READ)
    waits.register(woken, selectors.EVENT_READ)
    read = b""
    while True:
        ready = {key.fd for key, _ in waits.select()}
        if woken in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(woken, 4096)
            _reap()
        if 0 in ready:
            more = os.read(0, 65536)
            if not more:
                return
            *lines, read = (read + more).split(b"\n")
            for line in lines:
                _say(pid=_fork(json.loads(line)))


def _fork(wanted: dict[str, Any]) -> int:
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        random.seed()
        log = os.open(wanted["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.environ.clear()
        os.environ.update(wanted["environment"])
        from turngate.cli.main import main as turngate

        code = turngate(wanted["arguments"])
        sys.stderr.flush()
    finally:
        os._exit(code)


def _reap() -> None:
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            _say(pid=pid, exit=os.waitstatus_to_exitcode(status))


def _say(**fact: int) -> None:
    sys.stdout.write(f"{json.dumps(fact)}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
