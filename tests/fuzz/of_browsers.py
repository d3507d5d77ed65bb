"""Targets: what comes over HTTP. The console's headers, cookies, forms and JSON, and requests for metrics."""

import asyncio
from typing import Any, Final, cast

from starlette.datastructures import QueryParams
from starlette.requests import Request

from tests.fuzz.target import check_sentence, directory, finished
from turngate.console.actions import Actions, local
from turngate.console.api import _object
from turngate.console.auth import Auth, text_of
from turngate.console.errors import Refused
from turngate.console.forms import FORMS
from turngate.console.guard import Guard, _bounded
from turngate.console.live import MOST_SEQUENCE, after_of
from turngate.console.operations import OPERATIONS
from turngate.console.sessions import Sessions
from turngate.console.tokens import TokenFile
from turngate.metrics.endpoint import Endpoint, Page
from turngate_contracts import codec
from turngate_contracts.errors import InvalidMessage

_SECRET: Final = b"a secret of the fuzzing console!"
_PATH: Final = {"session": "s1", "task": "t1", "letter": "l1"}
_sessions: Final = Sessions(_SECRET)
_auth: Final = Auth(
    _sessions, TokenFile(directory("console") / "tokens.json"), open_to_all=True, local_actor="ann", clock=lambda: 0.0
)
_nothing: Any = None
_actions: Final = Actions(_auth, _nothing, _nothing, _nothing)
_endpoint: Final = Endpoint({"/metrics": lambda: Page(200, b"all is well\n")})


_guard: Final = Guard(_nothing, (), None)


def browser_headers(data: bytes) -> None:
    """Headers and cookies that mean nothing are refused or passed over, and never lead to another site."""
    request = _request(
        *((name, data) for name in (b"cookie", b"last-event-id", b"authorization", b"content-length")),
        query=data,
    )
    after = after_of(request)
    assert after is None or 0 <= after <= MOST_SEQUENCE
    for check in (_auth.actor_of, _auth.check_origin, _length):
        try:
            check(request)
        except Refused as error:
            check_sentence(error.fault.message)
    text = data.decode("latin-1")
    try:
        _guard._check_host(text)
    except Refused as error:
        check_sentence(error.fault.message)
    to = local(text)
    assert to == "" or (to.startswith("/") and not to.startswith(("//", "/\\")))
    # Who does not know the secret is nobody.
    assert _sessions.read(text).fresh
    assert _sessions.read_flash(text) is None
    assert not _sessions.is_csrf(_sessions.read(None), text)


def form(data: bytes) -> None:
    """A form is a request of the catalogue, or a refusal. The first line is its content type, the rest its body."""
    kind, _, body = data.partition(b"\n")
    try:
        fields = finished(_actions._fields(_request((b"content-type", kind), body=body)))
    except Refused as error:
        check_sentence(error.fault.message)
        return
    local(text_of(fields, "next"))
    for each in FORMS:
        try:
            codec.encode(each.request({name: _PATH[name] for name in each.operation.in_path()}, fields))
        except InvalidMessage as error:
            check_sentence(error.message)


def json_request(data: bytes) -> None:
    """JSON, or a query, is a request of the catalogue or an error."""
    query = QueryParams(data.decode("latin-1"))
    for operation in OPERATIONS:
        path = {name: _PATH[name] for name in operation.in_path()}
        try:
            given: Any = _object(data) if operation.changes else query
            codec.encode(operation.build(path, given, typed=operation.changes))
        except InvalidMessage as error:
            check_sentence(error.message)
            codec.encode(error.body())


def metrics_request(data: bytes) -> None:
    """A request for metrics gets a page; half a request gets nothing."""
    try:
        answer = finished(_endpoint._answer(cast("asyncio.StreamReader", _Sent(data))))
    except asyncio.IncompleteReadError:
        return
    assert answer.startswith(b"HTTP/1.1 ")
    assert len(answer) < 512


class _Sent:
    """Stands for the reader of a socket on which all has come."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    async def readuntil(self, end: bytes) -> bytes:
        head, found, _ = self._data.partition(end)
        if not found:
            raise asyncio.IncompleteReadError(self._data, None)
        return head + found


def _length(request: Request) -> None:
    _bounded(request.headers.get("content-length", ""), request.receive)


def _request(*headers: tuple[bytes, bytes], body: bytes = b"", query: bytes = b"") -> Request:
    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/",
        "query_string": query,
        "headers": list(headers),
        "client": ("192.0.2.1", 5),
    }
    return Request(scope, receive)
