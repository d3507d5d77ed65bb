"""How a process proves who it is and whom it talks to: an NKEY seed or a credentials file, and TLS certificates.

Files are named, never their contents: a path may stand in settings, the environment and a command line. A seed is read
when the connection is made, signs the server's challenge, and never leaves this process.
"""

import base64
import binascii
import os
import re
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from turngate_contracts.errors import ErrorCode, TurngateError
from turngate_contracts.ids import is_id
from turngate_contracts.subjects import API, CORE_API, inbox_prefix

if TYPE_CHECKING:
    import ssl

_SEED: Final = re.compile(r"^(SU[A-Z2-7]{56})\s*$", re.MULTILINE)
_NAME: Final = re.compile(r"^# identity: (\S+)\s*$", re.MULTILINE)
_KIND: Final = re.compile(r"^# turngate (\w+)\s*$", re.MULTILINE)
_PEOPLE: Final = ("operator", "viewer", "console")
_MOST: Final = 64 * 1024


class CredentialsUnusable(TurngateError):
    """A seed, credentials or certificate file that can't be used; it is named, its contents are not."""

    code = ErrorCode.IDENTITY_MISMATCH

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path} {reason}", path=path)


class Login(Struct, frozen=True):
    """Who connects, and how: all of them paths, and empty where there is none.

    Attributes:
        seed_file: an NKEY seed, as `turngate auth` writes it.
        creds_file: a JWT with its seed, for servers whose identities are made elsewhere.
        tls_ca: certificates that the server's must be signed by; naming it demands TLS.
        tls_cert: this client's certificate, where the server wants one; with `tls_key`.
        tls_key: the key of that certificate.
    """

    seed_file: str = ""
    creds_file: str = ""
    tls_ca: str = ""
    tls_cert: str = ""
    tls_key: str = ""

    def identity(self) -> str:
        """Return the name that the seed file has for its identity; empty where it has none.

        Raises:
            CredentialsUnusable: the file can't be used.
        """
        if not self.seed_file:
            return ""
        found = _NAME.search(_read(self.seed_file))
        return found[1] if found and is_id(found[1]) else ""

    def check(self, identity: str) -> None:
        """Refuse to act as somebody whose key this is not: the server would refuse each message on its own.

        Raises:
            CredentialsUnusable: the seed file is another identity's, or can't be used.
        """
        named = self.identity()
        if named and named != identity:
            reason = f"is the seed of {named}, not of {identity}; act as {named}, or name the seed of {identity}"
            raise CredentialsUnusable(self.seed_file, reason)

    def inbox(self) -> str:
        """Return the prefix of the reply subjects that this identity may subscribe to; raises as `identity`."""
        name = self.identity()
        return inbox_prefix(name) if name else "_INBOX"

    def api(self) -> str:
        """Return what JetStream's own requests begin with for this identity; raises as `identity`."""
        found = _KIND.search(_read(self.seed_file)) if self.seed_file else None
        return CORE_API if found and found[1] in _PEOPLE else API

    def options(self) -> dict[str, Any]:
        """Return what nats-py's `connect` needs to know of this.

        Raises:
            CredentialsUnusable: a file is missing, readable for others, or not what it should be.
        """
        found: dict[str, Any] = {}
        if self.seed_file:
            found["nkeys_seed_str"] = read_seed(self.seed_file)
        elif self.creds_file:
            _read(self.creds_file)
            found["user_credentials"] = str(Path(self.creds_file).expanduser())
        if self.tls_ca or self.tls_cert:
            found["tls"] = self._tls()
        return found

    def _tls(self) -> "ssl.SSLContext":
        import ssl

        ca = str(Path(self.tls_ca).expanduser()) if self.tls_ca else None
        try:
            context = ssl.create_default_context(cafile=ca)
        except (OSError, ssl.SSLError) as error:
            raise CredentialsUnusable(
                self.tls_ca, f"holds no CA certificates ({_said(error)}); name a PEM file"
            ) from None
        if self.tls_cert:
            try:
                context.load_cert_chain(
                    Path(self.tls_cert).expanduser(), Path(self.tls_key or self.tls_cert).expanduser()
                )
            except (OSError, ssl.SSLError) as error:
                reason = f"is no certificate with its key ({_said(error)}); name PEM files with tls_cert and tls_key"
                raise CredentialsUnusable(self.tls_cert, reason) from None
        return context


NOBODY: Final = Login()
"""No identity and no TLS: what a server without accounts wants."""


def seed_text(seed: str, identity: str, kind: str) -> str:
    """Return what a seed file holds: NATS's own tools read it too."""
    return f"# turngate {kind}\n# identity: {identity}\n{seed}\n"


def read_seed(path: str) -> str:
    """Return the NKEY seed that a file holds; raises CredentialsUnusable."""
    text = _read(path)
    found = _SEED.search(text)
    if found is None or not _is_sound(found[1]):
        raise CredentialsUnusable(
            path, "holds no NKEY user seed (a line that begins with SU); see `turngate auth show`"
        )
    try:
        import nkeys  # type: ignore[import-untyped]  # noqa: F401  nats-py signs with it
    except ImportError:
        raise CredentialsUnusable(
            path, "can't be used without the package nkeys: pip install 'turngate[auth]'"
        ) from None
    return found[1]


def _is_sound(seed: str) -> bool:
    """Say whether a seed's checksum is right: a mistyped one would be refused as a stranger."""
    try:
        raw = base64.b32decode(seed + "=" * (-len(seed) % 8))
    except binascii.Error:
        return False
    return binascii.crc_hqx(raw[:-2], 0) == int.from_bytes(raw[-2:], "little")


def _read(path: str) -> str:
    """Read a file of secrets, which must be its owner's alone."""
    try:
        fd = os.open(Path(path).expanduser(), os.O_RDONLY | os.O_CLOEXEC)
        with os.fdopen(fd, encoding="utf-8") as file:
            found = os.fstat(fd)
            # One that somebody else mounted for us, as containers' secrets are, is theirs to protect.
            if found.st_uid == os.getuid() and stat.S_IMODE(found.st_mode) & 0o077:
                raise CredentialsUnusable(path, f"can be read by others; run `chmod 600 {path}`")
            return file.read(_MOST)
    except OSError as error:
        raise CredentialsUnusable(
            path, f"can't be read: {error.strerror}; `turngate auth show` lists the files"
        ) from None
    except UnicodeDecodeError:
        raise CredentialsUnusable(path, "is no text; name the seed file that `turngate auth` wrote") from None


def _said(error: OSError) -> str:
    return error.strerror or str(error)
