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
from turngate_protocol.report.turn import MAX_NUMBER

T = TypeVar("T")

LEDGER: Final = "turns.json"
MAX_BYTES: Final = 256 * 1024
"""Longest ledger; a longer one is none of ours."""

log = logging.getLogger(__name__)

_decode = msgspec.json.Decoder(Ledger).decode
_encode = msgspec.json.Encoder().encode


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
            ledger = _decode(data)
        except FileNotFoundError:
            return Ledger()
        except (msgspec.DecodeError, UnicodeDecodeError):
            ledger = None
        if ledger is None or not _may_be(ledger):
            # The services know the turns; only which attempt is a repeat of which is forgotten.
            log.warning("%s could not be read and begins anew", path)
            return Ledger()
        return ledger

    def _save(self, ledger: Ledger) -> None:
        # Written over, not renamed: a new file in place of another one waits for the disk. A write that is cut off
        # leaves what can't be read, and that costs what the loss of the file does.
        data = _encode(ledger)
        descriptor = os.open(self.directory / LEDGER, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.pwrite(descriptor, data, 0)
            os.ftruncate(descriptor, len(data))
        finally:
            os.close(descriptor)


def _may_be(ledger: Ledger) -> bool:
    """Say whether numbers can have been counted: with one that can't, every later one would be refused."""
    numbers = (ledger.turn, ledger.attempts, ledger.endings)
    return ledger.mark >= 0 and all(0 <= number < MAX_NUMBER for number in numbers)
