"""What goes wrong with a connection, for `connect`."""

from typing import Final

import msgspec

from turngate.login import Login
from turngate_contracts.errors import ErrorCode, TurngateError, Unavailable, shown

REFUSED_IDENTITY: Final = ("authorization violation", "authentication expired", "authentication revoked")
"""What a server says, in lower case, to an identity that it does not know or know any more."""
NO_TLS: Final = "the server offers no TLS"
_TLS: Final = ("ssl", "tls", "certificate", "handshake")


class ApiError(msgspec.Struct, frozen=True):
    """An error of the JetStream API."""

    code: int = 0
    err_code: int = 0
    description: str = ""


class NotConnected(Unavailable):
    """The connection is down at the moment; what was asked for was not sent."""

    def __init__(self, what: str, refused: str = "") -> None:
        why = f"the NATS server refuses this identity ({refused})" if refused else "not connected to the NATS server"
        super().__init__(f"{what} was not sent: {why}; it is retried on its own")


class NotPermitted(TurngateError):
    """The permissions of this connection's identity do not cover a subject."""

    code = ErrorCode.IDENTITY_MISMATCH

    def __init__(self, what: str, subject: str) -> None:
        super().__init__(
            f"this identity may not {what} {subject}; connect as one that may, act in a pool that is its own"
            " (TURNGATE_POOL), or change its permissions; `turngate auth show` lists them",
            subject=subject,
        )


class NoServer(Unavailable):
    """No NATS server could be reached at start."""

    def __init__(self, url: str, reason: str, says: str = "") -> None:
        # A URL may hold a password, and errors are logged.
        self.url = ",".join(_without_credentials(part.strip()) for part in url.split(","))
        sentence = says or "no NATS server at {url} ({reason}); start one with `turngate up` or set TURNGATE_NATS_URL"
        super().__init__(sentence.format(url=self.url or shown(url), reason=reason), url=self.url)

    @classmethod
    def because(cls, url: str, reason: str, login: Login) -> "NoServer":
        """Return the error of a first connection that was not made, by what the server or the system said."""
        text = reason.lower()
        if any(word in text for word in REFUSED_IDENTITY):
            return IdentityRefused(url, reason, login)
        if any(word in text for word in _TLS):
            return TlsFailed(url, reason, login)
        return cls(url, reason)


class IdentityRefused(NoServer):
    """The server does not know who connects: no key, a wrong one, or one that was revoked."""

    def __init__(self, url: str, reason: str, login: Login) -> None:
        file = login.seed_file or login.creds_file
        if file:
            says = _REFUSED_FILE.replace("FILE", file.replace("{", "{{").replace("}", "}}"))
        else:
            says = _REFUSED_URL if "@" in url else _REFUSED_NOBODY
        super().__init__(url, reason, says)


class TlsFailed(NoServer):
    """Client and server do not agree on TLS, or one does not trust the other's certificate."""

    def __init__(self, url: str, reason: str, login: Login) -> None:
        wanted = _TLS_UNTRUSTED if login.tls_ca or login.tls_cert else _TLS_WANTED
        super().__init__(url, reason, _TLS_MISSING if reason == NO_TLS else wanted)


_REFUSED_FILE: Final = (
    "the NATS server at {url} refuses this identity, that of FILE ({reason}): it was revoked, or was never known there;"
    " `turngate auth show` lists who is, `add-runner` and `add-ui` make a new one"
)
_REFUSED_URL: Final = (
    "the NATS server at {url} refuses this identity ({reason}); correct its user and password, or its token, in the URL"
)
_REFUSED_NOBODY: Final = (
    "the NATS server at {url} refuses this identity, which has no key ({reason}); put the path of a seed that "
    "`turngate auth` made into TURNGATE_NATS_SEED_FILE, or user and password into the URL"
)
_TLS_MISSING: Final = (
    "the NATS server at {url} offers no TLS, which TURNGATE_TLS_CA demands; nothing was sent to it: give the server a "
    "certificate (`turngate auth init --tls`), or unset that"
)
_TLS_UNTRUSTED: Final = (
    "no TLS with the NATS server at {url} ({reason}); TURNGATE_TLS_CA must name the certificate that signed the "
    "server's, and the URL a host that the server's is for"
)
_TLS_WANTED: Final = (
    "the NATS server at {url} wants TLS ({reason}); put the path of the certificate that signed the server's into "
    "TURNGATE_TLS_CA"
)


def _without_credentials(url: str) -> str:
    scheme, separator, rest = url.rpartition("://")
    return f"{scheme}{separator}{rest.rpartition('@')[2]}"
