"""Writing files that are their owner's alone: never readable for others, not even for a moment."""

import os
import secrets
from pathlib import Path

from turngate.auth.errors import DirectoryUnsafe


def make_private_directory(path: Path) -> None:
    """Make a directory that only its owner may enter; one that others may enter is refused.

    Raises:
        DirectoryUnsafe: it exists and others may enter it.
        OSError: it can't be made.
    """
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    mode = path.stat().st_mode & 0o777
    if mode & 0o077:
        raise DirectoryUnsafe(path, f"may be entered by others (mode {mode:o}); run `chmod 700` on it, or name another")


def write_new(path: Path, text: str) -> None:
    """Write a file that must not exist, with mode 0600 from its first moment on, and sync it.

    Raises:
        FileExistsError: it exists.
    """
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(fd)


def replace(path: Path, text: str) -> None:
    """Put a file in the place of another in one step: whoever reads sees the old one or the new one, whole."""
    beside = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    try:
        write_new(beside, text)
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
