"""What goes wrong with identities before any server is asked."""

from pathlib import Path

from turngate_contracts.errors import ErrorCode, TurngateError, shown


class AuthError(TurngateError):
    """Base of what the directory of identities refuses."""

    code = ErrorCode.INVALID_ARGUMENT


class NotInitialised(AuthError):
    """There are no identities yet."""

    code = ErrorCode.NOT_FOUND

    def __init__(self, directory: Path) -> None:
        super().__init__(f"{directory} holds no identities; run `turngate auth init` first", directory=str(directory))


class DirectoryUnsafe(AuthError):
    """Others may read the directory, or what is in it is not what we wrote."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path} {reason}", path=str(path))


class NameTaken(AuthError):
    """An identity of that name exists and is something else."""

    code = ErrorCode.IDENTITY_MISMATCH

    def __init__(self, name: str, kind: str) -> None:
        super().__init__(
            f"{name} is an identity already, of kind {kind}; choose another name, or revoke it first", name=name
        )


class UnknownIdentity(AuthError):
    """There is no identity of that name."""

    code = ErrorCode.NOT_FOUND

    def __init__(self, name: str, known: list[str]) -> None:
        listed = ", ".join(known) or "none"
        super().__init__(f"there is no identity {shown(name)}; there are {listed}", name=name)


class KeysMissing(AuthError):
    """The package that makes NKEYs is not installed."""

    code = ErrorCode.UNAVAILABLE

    def __init__(self) -> None:
        super().__init__("making keys needs the package nkeys: pip install 'turngate[auth]'")


class CertificateFailed(AuthError):
    """A certificate could not be made, or one that was named can't be used."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"{reason}; name certificates of your own with --tls-cert and --tls-key (and --tls-ca)")


class ReloadFailed(AuthError):
    """The server runs with what it knew before."""

    code = ErrorCode.UNAVAILABLE

    def __init__(self, reason: str) -> None:
        super().__init__(f"the server was not told: {reason}; restart it, or run `nats-server --signal reload=PID`")
