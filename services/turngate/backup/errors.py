"""What can be wrong with a backup, or in the way of one."""

from collections.abc import Sequence
from pathlib import Path

from turngate_contracts.errors import ErrorCode, TurngateError, Unavailable


class BackupUnusable(TurngateError):
    """A directory holds no backup, or one that is damaged."""

    code = ErrorCode.INVALID

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path} can't be used: {reason}", path=str(path), reason=reason)


class DirectoryInUse(TurngateError):
    """A backup would be written over something."""

    code = ErrorCode.INVALID

    def __init__(self, path: Path) -> None:
        super().__init__(f"{path} is not empty; a backup is written into a new directory", path=str(path))


class StreamsInTheWay(TurngateError):
    """A restore would overwrite streams."""

    code = ErrorCode.INVALID

    def __init__(self, streams: Sequence[str]) -> None:
        super().__init__(
            f"the server has {', '.join(streams)} already; "
            "--replace deletes them first and puts the backup in their place",
            streams=list(streams),
        )


class ServicesRunning(TurngateError):
    """A restore would pull the streams from under running services."""

    code = ErrorCode.INVALID

    def __init__(self, services: Sequence[str]) -> None:
        super().__init__(
            f"services are running on this namespace ({', '.join(services)}); stop them, then restore; where they are"
            " those of `turngate up`, stop that and `turngate restore --here`",
            services=list(services),
        )


class WrongNamespace(TurngateError):
    """A backup is of another namespace."""

    code = ErrorCode.INVALID

    def __init__(self, found: str, wanted: str) -> None:
        super().__init__(
            f"the backup is of namespace {found}, not {wanted}; names of streams and subjects are part of it: "
            f"restore it with --namespace {found}",
            found=found,
            wanted=wanted,
        )


class SnapshotFailed(Unavailable):
    """The server did not finish a snapshot."""

    def __init__(self, stream: str, reason: str) -> None:
        super().__init__(f"the snapshot of {stream} was not finished: {reason}; make the backup again")


class RestoreFailed(Unavailable):
    """The server did not take a snapshot, or what came of it is not what was backed up."""

    def __init__(self, stream: str, reason: str) -> None:
        super().__init__(
            f"{stream} was not restored: {reason}; restore again with --replace, no service may start before that"
        )
