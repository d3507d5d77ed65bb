"""The deployment files as data, and their commands as processes of this machine."""

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import yaml

from tests.waiting import wait_until_sync

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "turngate.cli.main"]
"""What `turngate` is here."""


def compose() -> dict[str, Any]:
    """`compose.yaml`, with its merges resolved."""
    loaded: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())
    return loaded


def dockerfile() -> list[tuple[str, str]]:
    """The instructions of the Dockerfile: (name, rest), continued lines joined."""
    lines = [line for line in (ROOT / "Dockerfile").read_text().splitlines() if not line.startswith("#")]
    text = re.sub(r"\\\n\s*", "", "\n".join(lines))
    split = (line.split(" ", 1) for line in text.splitlines() if line.strip())
    return [(name, rest.strip()) for name, rest in split]


def image_environment() -> dict[str, str]:
    """The environment that the image sets in its last stage."""
    last = dockerfile()
    last = last[max(i for i, (name, _) in enumerate(last) if name == "FROM") :]
    pairs = (pair.partition("=") for name, rest in last if name == "ENV" for pair in shlex.split(rest))
    return {name: value for name, _, value in pairs}


def unit(name: str) -> dict[str, list[str]]:
    """The settings of a systemd unit, by name, whatever their section."""
    found: dict[str, list[str]] = {}
    for line in (ROOT / "deploy" / "systemd" / name).read_text().splitlines():
        if line and line[0] not in "#;[":
            key, _, value = line.partition("=")
            found.setdefault(key, []).append(value)
    return found


class Process:
    """A command of a deployment file, run here; it drains and ends with the `with` block."""

    def __init__(self, arguments: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("TURNGATE_")}
        self.environment = kept | dict(environment)
        self._arguments = list(arguments)
        self._log = log
        self.code: int | None = None

    def __enter__(self) -> Self:
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                self._arguments, env=self.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/"
            )
        return self

    def __exit__(self, *_error: object) -> None:
        self.end()

    def wait_ready(self) -> None:
        """Wait until it says that it takes work."""

        def ready() -> bool:
            assert self._process.poll() is None, f"it ended before it was ready:\n{self._log.read_text()}"
            return '"ready"' in self._log.read_text()

        wait_until_sync(ready, 60, "it is ready")

    def end(self) -> int:
        """Have it drain, as a container engine and systemd do, and return its exit code."""
        if self.code is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self.code = self._process.wait(40)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
                raise
        return self.code
