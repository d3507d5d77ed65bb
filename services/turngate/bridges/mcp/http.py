"""The MCP server over streamable HTTP: for clients that hold the token, on loopback unless hosts are named.

Whoever can reach the port and holds the token acts for every session of the pool, so the token is compared in constant
time before anything of a request is read, and the names by which the server may be reached are checked against those
that were meant: a page in a browser that had its name resolved to loopback is refused.
"""

import hmac
import json
import os
import secrets
import socket
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mcp.server.transport_security import TransportSecuritySettings
from starlette.types import ASGIApp, Receive, Scope, Send

from turngate.bridges.mcp.server import TurngateServer

TOKEN_VARIABLE: Final = "TURNGATE_MCP_TOKEN"  # noqa: S105  its name
"""The environment variable that holds the token."""
TOKEN_FILE: Final = "mcp-token"  # noqa: S105  its name
"""The file, beside those of the sessions, that holds the token where nobody gave one."""
LEAST_TOKEN: Final = 16
"""Shortest token, in characters."""
PATH: Final = "/mcp"

if TYPE_CHECKING:
    import uvicorn

_LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
_SHUTDOWN_S: Final = 2
_MAX_TOKEN: Final = 4_096


class TokenUnusable(ValueError):
    """The token can't be used; the message says why and what would be right."""


def token_of(file: Path | None, environment: Mapping[str, str], agents: Path) -> tuple[str, Path | None]:
    """Return the token, and the file that it is in: the given file, the environment, or one that is made by itself.

    Raises:
        TokenUnusable: it is too short, or others may read its file.
        OSError: the file can't be read or made.
    """
    if file is None and (given := environment.get(TOKEN_VARIABLE, "")):
        return _checked(given, TOKEN_VARIABLE), None
    path = file or agents / TOKEN_FILE
    if file is None and not path.exists():
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except FileExistsError:
            pass  # another server made it this very moment
        else:
            with os.fdopen(descriptor, "w") as made:
                made.write(secrets.token_urlsafe(32) + "\n")
    if stat.S_IMODE(path.stat().st_mode) & 0o077:
        raise TokenUnusable(f"{path} can be read by others; run chmod 600 on it")
    with path.open(encoding="utf-8", errors="replace") as read:
        return _checked(read.read(_MAX_TOKEN).strip(), str(path)), path


def application(
    server: TurngateServer, token: str, host: str, hosts: Sequence[str] = (), origins: Sequence[str] = ()
) -> ASGIApp:
    """Return the ASGI application.

    Args:
        server: the MCP server.
        token: what clients must send as a bearer token.
        host: the address that it listens at; loopback needs no names.
        hosts: further names by which it may be reached, with `:*` or a port behind them.
        origins: further origins of pages that may call it.
    """
    local = [f"[{name}]:*" if ":" in name else f"{name}:*" for name in _LOOPBACK]
    security = TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=[*local, *hosts],
        allowed_origins=[*(f"http://{name}" for name in local), *origins],
    )
    app = server.mcp.streamable_http_app(streamable_http_path=PATH, transport_security=security, host=host)
    return BearerGate(app, token)


def is_loopback(host: str) -> bool:
    """Say whether an address is this machine's own."""
    return host in _LOOPBACK or host.startswith("127.")


def listen(host: str, port: int) -> tuple[socket.socket, str]:
    """Return a socket that listens there, and the URL that clients use.

    Raises:
        OSError: the address is taken, or none of this machine's.
    """
    listening = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    shown = f"[{host}]" if ":" in host else host
    return listening, f"http://{shown}:{listening.getsockname()[1]}{PATH}"


def web_server(app: ASGIApp) -> "uvicorn.Server":
    """Return the web server: `serve(sockets=…)` serves until it is told to end, by a signal or `should_exit`."""
    import uvicorn

    return uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=_SHUTDOWN_S))


class BearerGate:
    """Lets requests pass that carry the token."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._token = token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] == "http" and not self._is_allowed(scope):
            await _refuse(send)
            return
        await self._app(scope, receive, send)

    def _is_allowed(self, scope: Scope) -> bool:
        sent: list[bytes] = [value for name, value in scope["headers"] if name == b"authorization"]
        scheme, _, token = (sent[0] if len(sent) == 1 else b"").partition(b" ")
        # Compared also where there is none: how long it takes says nothing.
        return hmac.compare_digest(token, self._token) and scheme.lower() == b"bearer"


async def _refuse(send: Send) -> None:
    body = json.dumps(
        {
            "code": "unauthorized",
            "message": "send the server's token in the header `Authorization: Bearer TOKEN`",
            "details": {},
        }
    ).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"www-authenticate", b'Bearer realm="turngate"'),
    ]
    await send({"type": "http.response.start", "status": 401, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _checked(token: str, where: str) -> str:
    if len(token) < LEAST_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
        raise TokenUnusable(f"the token in {where} is unusable; use {LEAST_TOKEN} or more printable ASCII characters")
    return token
