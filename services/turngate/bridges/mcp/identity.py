"""Whose call it is: the session that it belongs to, and the connection that it came by.

The session is the configured one; else the one that an HTTP client names in a header; else the one that the agent's
program names in the call, in its environment or as its MCP session; else, over stdio, the one of the project directory.
"""

import os
import secrets
from typing import Any, Final, NamedTuple

from mcp.server.context import ServerRequestContext
from starlette.requests import Request

from turngate.bridges.mcp.options import Options
from turngate.bridges.names import session_of_directory, session_of_name
from turngate.bridges.places import Places
from turngate_contracts.errors import ErrorCode, InvalidId, TurngateError
from turngate_contracts.ids import is_id

SESSION_HEADER: Final = "turngate-session"
"""The HTTP header by which a client names its session."""
_NAMING: Final = ("codex", "opencode")
MCP_SESSION_HEADER: Final = "mcp-session-id"
SESSION_IN_META: Final = ("threadId", "ai.opencode/sessionID")
"""Where Codex and opencode say in each call which of their conversations makes it."""


class NoSession(TurngateError):
    """Nothing says which session a call belongs to."""

    code = ErrorCode.INVALID_ID

    def __init__(self) -> None:
        super().__init__(
            f"the call belongs to no session; configure the header {SESSION_HEADER}: ID in the client, "
            "or start the server with --session ID"
        )


class Caller(NamedTuple):
    """The session of a call, and what tells its connection from others."""

    session: str
    by: str


class Callers:
    """Finds out who calls, for one server process."""

    def __init__(self, options: Options, places: Places) -> None:
        self._options = options
        self._places = places
        self._process = f"{os.getpid()}-{secrets.token_hex(4)}"
        self._linked = ""

    def of(self, context: ServerRequestContext[Any, Any]) -> Caller:
        """Return who makes a call.

        Raises:
            InvalidId: an HTTP client names a session that can be none.
            NoSession: an HTTP client names none at all.
            OSError: the session's files can't be made.
        """
        headers = getattr(context.request, "headers", None)
        if headers is not None:
            mcp_session = str(headers.get(MCP_SESSION_HEADER, ""))
            session = self._of_http(context, str(headers.get(SESSION_HEADER, "")), mcp_session)
            return Caller(session, mcp_session or self._process)
        named = self._options.session or _in_meta(context)
        session = named or session_of_name(self._options.environment_session)
        if not named and not self._options.environment_session:
            session = session_of_directory(self._options.directory)
        if session != self._linked and (self._options.session or not _names_each_call(context)):
            # Hooks that start in this directory learn by it what they speak of.
            self._places.of_session(session)
            self._places.link(self._options.directory, session)
            self._linked = session
        return Caller(session, self._process)

    def _of_http(self, context: ServerRequestContext[Any, Any], header: str, mcp_session: str) -> str:
        if self._options.session:
            return self._options.session
        if header:
            if not is_id(header):
                raise InvalidId(f"the header {SESSION_HEADER}", header)
            return header
        if named := _in_meta(context) or mcp_session:
            return session_of_name(named)
        raise NoSession


def _names_each_call(context: ServerRequestContext[Any, Any]) -> bool:
    """Say whether the agent's program tells in each call which conversation makes it, as in its hooks."""
    client = context.session.client_params
    return client is not None and client.client_info.name.lower().startswith(_NAMING)


async def is_gone(context: ServerRequestContext[Any, Any]) -> bool:
    """Say whether the HTTP request of a call was cut off, so that its result will reach nobody."""
    return isinstance(context.request, Request) and await context.request.is_disconnected()


def _in_meta(context: ServerRequestContext[Any, Any]) -> str:
    meta: Any = context.meta or {}
    for key in SESSION_IN_META:
        if isinstance(name := meta.get(key), str) and name:
            return session_of_name(name)
    return ""
