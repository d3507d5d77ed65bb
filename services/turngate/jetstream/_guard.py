"""Keeps a server from outliving the process that owns it; run as a script, never imported.

``python -I -S _guard.py OWNER_PID LOCK_FD COMMAND...`` starts the command as its own child and waits. The owner holds
the other end of stdin: however the owner ends, SIGKILL included, the pipe closes and the command is killed. A pipe
works the same on Linux and macOS, and unlike Linux's parent-death signal it does not care which thread started the
server.

Stdin takes one-byte orders, ``T`` (SIGTERM) and ``K`` (SIGKILL): only the parent of a process can signal it without the
risk that its id belongs to a stranger by now. Stdout tells the owner ``started PID``, then ``exited RETURNCODE``, or
``failed REASON``. Standard error is the server's log.
"""

import contextlib
import os
import select
import signal
import subprocess
import sys

_OWNER_CHECK_S = 1.0


def _tell_owner(line: str) -> None:
    # The owner may be gone, which is no reason to leave the server running.
    with contextlib.suppress(OSError):
        os.write(1, f"{line}\n".encode(errors="replace"))


def _wake_on_signals() -> int:
    """Make signals wake a select instead of ending this process; returns the descriptor to watch."""
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_read, False)
    os.set_blocking(wake_write, False)
    # Handlers, not SIG_IGN: a child would inherit the latter and could no longer be stopped gently.
    for number in (signal.SIGCHLD, signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda _number, _frame: None)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    return wake_read


def _watch(child: "subprocess.Popen[bytes]", owner_pid: int, wake: int) -> int:
    """Carry out the owner's orders until the child has ended; returns the child's return code."""
    while (returncode := child.poll()) is None:
        readable, _, _ = select.select([0, wake], [], [], _OWNER_CHECK_S)
        if wake in readable:
            with contextlib.suppress(BlockingIOError):
                os.read(wake, 512)
        # A process that the owner forked may hold the pipe open after the owner's death; its id tells the truth.
        orphaned = os.getppid() != owner_pid
        if not orphaned and 0 not in readable:
            continue
        if not orphaned and os.read(0, 1) == b"T":
            child.terminate()
        else:
            child.kill()
            return child.wait()
    return returncode


def main(arguments: list[str]) -> int:
    """Run one command under guard.

    Args:
        arguments: The owner's process id, the descriptor of the lock that the command keeps open, the command's words.

    Returns:
        Zero when the command ran, whatever its own code; the owner reads another one as "the guard died".
    """
    owner_pid, lock_fd, command = int(arguments[0]), int(arguments[1]), arguments[2:]
    wake = _wake_on_signals()
    try:
        child = subprocess.Popen(  # noqa: S603 - the owner chose the binary; no shell is involved
            command, stdin=subprocess.DEVNULL, stdout=2, stderr=2, pass_fds=(lock_fd,)
        )
    except OSError as error:
        _tell_owner(f"failed {error}")
        return 0
    _tell_owner(f"started {child.pid}")
    _tell_owner(f"exited {_watch(child, owner_pid, wake)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
