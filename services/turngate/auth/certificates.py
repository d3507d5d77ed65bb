"""A certificate for a server of one's own: a new authority, and one certificate that it signed, made by openssl."""

import shutil
import subprocess
from collections.abc import Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from turngate.auth.errors import CertificateFailed
from turngate.auth.files import make_private_directory
from turngate.auth.server_config import Certificates

DAYS: Final = 825
"""For how long a certificate is valid; longer ones are refused by some clients."""
_SECONDS: Final = 60
_EC: Final = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-sha256")


def make_certificates(directory: Path, hosts: Sequence[str]) -> Certificates:
    """Make what is missing below `directory`, for these host names and addresses, and return where it is.

    Raises:
        CertificateFailed: there is no openssl, or it failed.
    """
    openssl = shutil.which("openssl")
    if openssl is None:
        raise CertificateFailed("making a certificate needs the program openssl, which is not here")
    make_private_directory(directory)
    ca, ca_key = directory / "ca.pem", directory / "ca-key.pem"
    cert, key = directory / "server.pem", directory / "server-key.pem"
    if not (ca.exists() and ca_key.exists()):
        ca_extensions = ["-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign"]
        _run(openssl, ["req", "-x509", *_EC, "-keyout", ca_key, "-out", ca, *_subject("Turngate CA"), *ca_extensions])
        cert.unlink(missing_ok=True)
    if not (cert.exists() and key.exists()):
        request, extensions = directory / "server.csr", directory / "server.ext"
        extensions.write_text(f"subjectAltName={_names(hosts)}\nextendedKeyUsage=serverAuth\n", encoding="ascii")
        _run(openssl, ["req", *_EC, "-keyout", key, "-out", request, "-subj", "/CN=nats"])
        signing = ["-CA", ca, "-CAkey", ca_key, "-CAcreateserial", "-days", DAYS, "-extfile", extensions]
        _run(openssl, ["x509", "-req", "-sha256", "-in", request, "-out", cert, *signing])
        request.unlink()
        extensions.unlink()
    return Certificates(str(cert), str(key), str(ca))


def _subject(name: str) -> list[str]:
    return ["-days", str(DAYS * 4), "-subj", f"/CN={name}"]


def _names(hosts: Sequence[str]) -> str:
    return ",".join(f"IP:{host}" if _is_address(host) else f"DNS:{host}" for host in hosts)


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _run(openssl: str, arguments: Sequence[object]) -> None:
    try:
        done = subprocess.run(  # noqa: S603  a program on PATH, with arguments of our own; no shell
            [openssl, *map(str, arguments)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            umask=0o077,  # keys are their owner's alone from the first moment on
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CertificateFailed(f"openssl could not be run: {error}") from None
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise CertificateFailed(f"openssl failed: {said[-1] if said else 'it said nothing'}")
