"""A backup's manifest and files, written so that a backup is complete or not there, for its owner alone."""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from turngate.backup.errors import BackupUnusable, DirectoryInUse

MANIFEST: Final = "manifest.json"
FORMAT: Final = 1
_PARTIAL: Final = ".partial"


class StreamFile(Struct, frozen=True):
    """One stream's snapshot.

    Attributes:
        stream: its name.
        file: the file's name in the directory.
        size: its size in bytes.
        sha256: its digest.
        messages: how many messages it holds, or somewhat more than it does if it was read under load.
        subjects: how many subjects they have.
        keeps_keys: whether a subject that is there stays there, as the keys of buckets do.
        first_sequence: the sequence of the oldest.
        last_sequence: the sequence of the newest, or of the last that there ever was.
        snapshot: its configuration and state, as the server told them.
    """

    stream: str
    file: str
    size: int
    sha256: str
    messages: int
    subjects: int
    keeps_keys: bool
    first_sequence: int
    last_sequence: int
    snapshot: dict[str, Any]


class Manifest(Struct, frozen=True):
    """What a backup has.

    Attributes:
        format: the version of this manifest.
        version: the version of Turngate that made it.
        topology: the version of the topology.
        server: the version of nats-server.
        namespace: the namespace.
        began_at: when it was begun, in ms since the epoch.
        ended_at: when it was complete.
        streams: its streams, in the order in which they were read.
    """

    format: int
    version: str
    topology: int
    server: str
    namespace: str
    began_at: int
    ended_at: int
    streams: tuple[StreamFile, ...]


class SnapshotWriter:
    """A snapshot on its way into a file, which has its name only once it is on the disk."""

    def __init__(self, directory: Path, stream: str) -> None:
        self.path = directory / f"{stream}.snapshot"
        self.size = 0
        self._digest = hashlib.sha256()
        self._partial = self.path.with_name(self.path.name + _PARTIAL)
        self._file = os.fdopen(os.open(self._partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")

    def write(self, chunk: bytes) -> None:
        """Add a piece."""
        self._file.write(chunk)
        self._digest.update(chunk)
        self.size += len(chunk)

    def finish(self) -> str:
        """Have it on the disk under its name, and return its digest."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        self._partial.rename(self.path)
        return self._digest.hexdigest()

    def abandon(self) -> None:
        """Remove what was written of it; does nothing when it was finished."""
        self._file.close()
        self._partial.unlink(missing_ok=True)


def make_directory(path: Path) -> None:
    """Make a backup's directory.

    Raises:
        DirectoryInUse: there is something in it.
        OSError: it can't be made.
    """
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    if any(path.iterdir()):
        raise DirectoryInUse(path)


def write_manifest(directory: Path, manifest: Manifest) -> None:
    """Complete a backup."""
    partial = directory / f"{MANIFEST}{_PARTIAL}"
    with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(msgspec.json.format(msgspec.json.encode(manifest)) + b"\n")
        file.flush()
        os.fsync(file.fileno())
    partial.rename(directory / MANIFEST)
    listing = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(listing)
    finally:
        os.close(listing)


def read_manifest(directory: Path) -> Manifest:
    """Return a backup's manifest.

    Raises:
        BackupUnusable: there is none, or it is of a later version.
    """
    path = directory / MANIFEST
    try:
        manifest = msgspec.json.decode(path.read_bytes(), type=Manifest)
    except FileNotFoundError:
        reason = f"it has no {MANIFEST}: it is no backup, or one that was not finished"
        raise BackupUnusable(directory, reason) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BackupUnusable(path, f"it can't be read ({error})") from None
    if manifest.format != FORMAT:
        raise BackupUnusable(path, f"it has format {manifest.format}, this Turngate knows {FORMAT}")
    for entry in manifest.streams:
        if Path(entry.file).name != entry.file or entry.file in ("", ".", ".."):
            raise BackupUnusable(path, f"the file of {entry.stream} lies outside of the directory")
    return manifest


def check_files(directory: Path, manifest: Manifest) -> None:
    """Compare every file with the manifest.

    Raises:
        BackupUnusable: one is missing, or is not what was written.
    """
    for entry in manifest.streams:
        digest, size = hashlib.sha256(), 0
        for chunk in chunks_of(directory, entry, 1024 * 1024):
            digest.update(chunk)
            size += len(chunk)
        if size != entry.size:
            raise BackupUnusable(directory / entry.file, f"it has {size} bytes, {entry.size} were written")
        if digest.hexdigest() != entry.sha256:
            raise BackupUnusable(directory / entry.file, "its digest is not that of what was written")


def chunks_of(directory: Path, entry: StreamFile, size: int) -> Iterator[bytes]:
    """Yield a snapshot in pieces of at most `size` bytes.

    Raises:
        BackupUnusable: the file is missing.
    """
    try:
        with (directory / entry.file).open("rb") as file:
            while chunk := file.read(size):
                yield chunk
    except FileNotFoundError:
        raise BackupUnusable(directory / entry.file, "it is missing") from None
