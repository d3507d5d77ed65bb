"""What the machine is, and what a process has used of it: read from the kernel, without another package.

CPU time comes from `/proc/PID/stat`, which counts all threads in ticks of 10 ms; over rounds of seconds that is exact
enough. On a system without `/proc` those figures are missing and the rest works.
"""

import contextlib
import importlib.metadata
import importlib.util
import os
import platform
import subprocess
from collections.abc import Iterator
from pathlib import Path

from turngate.jetstream.embedded import BinaryMissing, find_binary

_TICKS_S = os.sysconf("SC_CLK_TCK")
_PROC = Path("/proc")


def cpu_s(pid: int) -> float:
    """Return the CPU time that a process has used so far, user and system, in seconds; 0 where nobody knows."""
    stat = _PROC / str(pid) / "stat"
    if not stat.exists():
        return 0.0
    # The command's name is in brackets and may hold spaces; what follows it is fields 3 and up.
    fields = stat.read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_S


def rss_mib(pid: int) -> float:
    """Return a process's resident memory in MiB; 0 where nobody knows."""
    status = _PROC / str(pid) / "status"
    if not status.exists():
        return 0.0
    kib = next((line.split()[1] for line in status.read_text().splitlines() if line.startswith("VmRSS:")), "0")
    return int(kib) / 1024


@contextlib.contextmanager
def on_one_core() -> Iterator[bool]:
    """Keep this thread, and the processes that it starts meanwhile, on one core; yield whether that is possible."""
    if not hasattr(os, "sched_setaffinity"):
        yield False
        return
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        yield True
    finally:
        os.sched_setaffinity(0, allowed)


def has_uvloop() -> bool:
    """Say whether the faster event loop can be imported."""
    return importlib.util.find_spec("uvloop") is not None


def facts() -> dict[str, str]:
    """Return what a reader must know to compare the figures with others; the same for every run on this machine."""
    return {
        "cores": str(os.cpu_count()),
        "cpu": _cpu_model(),
        "python": platform.python_version(),
        "nats-server": _server_version(),
        "nats-py": importlib.metadata.version("nats-py"),
        "msgspec": importlib.metadata.version("msgspec"),
        "uvloop": importlib.metadata.version("uvloop") if has_uvloop() else "no",
    }


def _server_version() -> str:
    try:
        binary = find_binary()
    except BinaryMissing:
        return "none"
    said = subprocess.run([binary, "--version"], capture_output=True, text=True, check=True).stdout
    return said.strip().rpartition(" ")[2]


def _cpu_model() -> str:
    info = _PROC / "cpuinfo"
    lines = info.read_text().splitlines() if info.exists() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())
