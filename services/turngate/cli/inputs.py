"""Reading what a command is given: files, or standard input, as bytes and as they are."""

import sys
from pathlib import Path
from typing import Final

from turngate.cli.commands import UsageError

STDIN: Final = "-"


def read_bytes(name: str) -> bytes:
    """Return what a file holds, or standard input where the name is `-`; nothing is decoded.

    Raises:
        UsageError: it can't be read.
    """
    if name != STDIN:
        try:
            return Path(name).read_bytes()
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise UsageError(f"{name} can't be read: {reason}; name another file, or - for standard input") from None
    if sys.stdin is None:
        raise UsageError("there is no standard input; name a file")
    if sys.stdin.isatty():
        sys.stderr.write("reading from the terminal; end it with Ctrl-D\n")
    try:
        return sys.stdin.buffer.read()
    except OSError as error:
        raise UsageError(f"standard input can't be read: {error.strerror}; name a file") from None
