"""What stands before every request: the host check, the headers of every answer, and the bound on what is sent.

Pure ASGI, so that streams pass through unbuffered.
"""

import ipaddress
import socket
from collections.abc import Iterable
from typing import Any, Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from turngate.console.errors import Refused, refuse
from turngate_contracts.errors import shown

MOST_BYTES: Final = 1024 * 1024
"""Largest body that is read; texts of 64 KiB take three times that in a form and six times in JSON."""

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
_HEADERS: Final = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    # Not no-referrer: browsers then hide the origin of our own forms too, which is checked.
    "referrer-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
_BODILESS: Final = frozenset({"GET", "HEAD", "OPTIONS"})


class Guard:
    """Wraps the app. A refusal is told by `tell`, which draws it as the client wants it."""

    def __init__(self, app: ASGIApp, hosts: Iterable[str], tell: Any) -> None:
        self._app = app
        self._hosts = allowed_hosts(hosts)
        self._tell = tell

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = False

        async def sending(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("cache-control", "no-store")
            await send(message)

        headers = Headers(scope=scope)
        try:
            self._check_host(headers.get("host", ""))
            if scope["method"] not in _BODILESS:
                receive = _bounded(headers.get("content-length", ""), receive)
            await self._app(scope, receive, sending)
        except Refused as error:
            if started:
                raise
            await self._tell(scope, error)(scope, receive, sending)
        except Exception:
            # Starlette raises what it has answered already; what was not answered is the server's to log and to end.
            if not started:
                raise

    def _check_host(self, host: str) -> None:
        # A page of a stranger whose name was made to point to this machine ("DNS rebinding") says so in `Host`.
        name = name_of(host)
        if name is None or not (name in self._hosts or _is_address(name)):
            raise refuse(
                "wrong_host", f"this console is not called {shown(host)}; add the name to console_hosts to allow it"
            )


def allowed_hosts(more: Iterable[str]) -> frozenset[str]:
    """Return the names that this console may be called by, in lower case; addresses are no names and always right."""
    return frozenset({"localhost", socket.gethostname().lower(), *(name.lower() for name in more)})


def name_of(host: str) -> str | None:
    """Return the name or address of a `Host` header without its port, in lower case; None where it is neither."""
    name, port = host, ""
    if host.startswith("["):
        name, closing, rest = host[1:].partition("]")
        if not closing or (rest and not rest.startswith(":")):
            return None
        port = rest[1:]
    elif ":" in host:
        name, _, port = host.partition(":")
    if not name or (port and not (port.isascii() and port.isdigit())):
        return None
    return name.lower().rstrip(".")


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _bounded(length: str, receive: Receive) -> Receive:
    if length and (not length.isascii() or not length.isdigit() or int(length[:12]) > MOST_BYTES):
        raise _too_large()
    received = 0

    async def bounded() -> Message:
        nonlocal received
        message = await receive()
        received += len(message.get("body", b""))
        if received > MOST_BYTES:
            raise _too_large()
        return message

    return bounded


def _too_large() -> Refused:
    return refuse("body_too_large", f"at most {MOST_BYTES} bytes can be sent at once", limit=MOST_BYTES)
