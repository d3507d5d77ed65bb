"""Running the command line: as a process of its own, or inside of the test, which takes a tenth of the time."""

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, Self
from unittest import mock

from tests.waiting import wait_until_sync
from turngate.cli.main import main

COMMAND = [sys.executable, "-m", "turngate.cli.main"]


class Outcome(NamedTuple):
    code: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)

    def json_lines(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The test's own environment without what would steer the command line, and `extra`."""
    kept = {
        k: v for k, v in os.environ.items() if not k.startswith("TURNGATE_") and k not in ("NO_COLOR", "FORCE_COLOR")
    }
    return kept | dict(extra or {})


def turngate(
    *arguments: str, env: Mapping[str, str] | None = None, stdin: bytes | None = None, cwd: Path | None = None
) -> Outcome:
    """Run one command to its end."""
    done = subprocess.run(
        [*COMMAND, *arguments],
        env=environment(env),
        input=stdin or b"",
        capture_output=True,
        cwd=cwd or "/",
        timeout=60,
    )
    return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())


def inside(*arguments: str, env: Mapping[str, str] | None = None, stdin: bytes = b"") -> Outcome:
    """Run one command to its end in this process."""
    streams = [io.TextIOWrapper(io.BytesIO(data), encoding="utf-8", write_through=True) for data in (stdin, b"", b"")]
    given, out, err = streams
    with (
        mock.patch.dict(os.environ, environment(env), clear=True),
        mock.patch.object(sys, "stdin", given),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            code = main(arguments)
        except SystemExit as ended:
            code = int(ended.code or 0)
    texts = [stream.buffer.getvalue().decode() for stream in (out, err)]
    return Outcome(code, *texts)


class Background:
    """A command that runs until it is told to end; its output is kept in files."""

    def __init__(self, directory: Path, *arguments: str, env: Mapping[str, str] | None = None) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._out, self._err = directory / "out", directory / "err"
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self.process = subprocess.Popen(
                [*COMMAND, *arguments],
                env=environment(env),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                cwd=directory,
            )

    @property
    def out(self) -> str:
        return self._out.read_text()

    @property
    def err(self) -> str:
        return self._err.read_text()

    def records(self) -> list[dict[str, Any]]:
        """The log records that it has written whole."""
        return [json.loads(line) for line in self.err.splitlines(keepends=True) if line.endswith("\n")]

    def ready(self) -> list[dict[str, Any]]:
        """The records that say a process is ready: its own and its children's."""
        return [record for record in self.records() if "ready" in record]

    def wait_ready(self, processes: int = 1) -> None:
        wait_until_sync(
            lambda: len(self.ready()) >= processes or self.process.poll() is not None, 60, f"not ready: {self.err}"
        )
        assert self.process.poll() is None, self.err

    def wait_for(self, text: str) -> None:
        wait_until_sync(lambda: text in self.err or text in self.out, 30, f"no {text!r} in {self.out}{self.err}")

    def end(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and return the exit code."""
        self.process.send_signal(number)
        return self.process.wait(60)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(30)


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended but was not collected does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"
