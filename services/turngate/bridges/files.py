"""A session's ledger in its file: read, changed and replaced under the session's lock, which no network call holds."""

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from turngate.bridges import toollog
from turngate.bridges.counting import Ledger
from turngate.bridges.toollog import Seen

T = TypeVar("T")

LEDGER: Final = "turns.json"
MAX_BYTES: Final = 256 * 1024
"""Longest ledger; a longer one is none of ours."""

log = logging.getLogger(__name__)


class SessionFiles:
    """The files of one session."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def change(self, decide: Callable[[Ledger, Seen], tuple[Ledger, T]]) -> tuple[T, Seen]:
        """Change the ledger by `decide`, which gets it and the tools since its mark.

        Returns:
            What `decide` gave beside the ledger, and the tools that it saw.

        Raises:
            OSError: the files can't be read or written.
        """
        with toollog.locked(self.directory):
            before = self._load()
            seen = toollog.seen(self.directory, before.mark)
            after, result = decide(before, seen)
            if after.over and after.mark != before.mark:
                after = msgspec.structs.replace(after, mark=toollog.trim(self.directory, after.mark))
            if after != before:
                self._save(after)
        return result, seen

    def load(self) -> Ledger:
        """Return the ledger as it is now."""
        with toollog.locked(self.directory):
            return self._load()

    def _load(self) -> Ledger:
        path = self.directory / LEDGER
        try:
            with path.open("rb") as file:
                data = file.read(MAX_BYTES + 1)
            return msgspec.json.decode(data, type=Ledger)
        except FileNotFoundError:
            return Ledger()
        except (msgspec.DecodeError, UnicodeDecodeError):
            # The services know the turns; only which attempt is a repeat of which is forgotten.
            log.warning("%s could not be read and begins anew", path)
            return Ledger()

    def _save(self, ledger: Ledger) -> None:
        path = self.directory / LEDGER
        beside = path.with_suffix(".new")
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(msgspec.json.encode(ledger))
        beside.replace(path)
