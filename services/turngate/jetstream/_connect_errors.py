"""What goes wrong with a connection, for `connect`."""

from turngate_contracts.errors import ErrorCode, TurngateError, Unavailable, shown


class NotConnected(Unavailable):
    """The connection is down at the moment; what was asked for was not sent."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} was not sent: not connected to the NATS server; it is retried on its own")


class NotPermitted(TurngateError):
    """The permissions of this connection's identity do not cover a subject."""

    code = ErrorCode.IDENTITY_MISMATCH

    def __init__(self, what: str, subject: str) -> None:
        super().__init__(
            f"this identity may not {what} {subject}; connect as one that may, or change its permissions",
            subject=subject,
        )


class NoServer(Unavailable):
    """No NATS server could be reached at start."""

    def __init__(self, url: str, reason: str) -> None:
        # A URL may hold a password, and errors are logged.
        self.url = ",".join(_without_credentials(part.strip()) for part in url.split(","))
        super().__init__(
            f"no NATS server at {self.url or shown(url)} ({reason}); "
            "start one with `turngate up` or set TURNGATE_NATS_URL",
            url=self.url,
        )


def _without_credentials(url: str) -> str:
    scheme, separator, rest = url.rpartition("://")
    return f"{scheme}{separator}{rest.rpartition('@')[2]}"
