"""The JSON API: the operations of `operations` for programs, with the same Structs as on NATS."""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from turngate.console.acting import Acting
from turngate.console.auth import Auth, address_of
from turngate.console.live import Live
from turngate.console.openapi import document
from turngate.console.operations import BASE, OPERATIONS, Operation
from turngate.console.reading import Requests
from turngate_contracts import codec
from turngate_contracts.ids import check_id

JSON = "application/json"


class JsonApi:
    """The JSON API of one console."""

    def __init__(self, auth: Auth, requests: Requests, acting: Acting, live: Live) -> None:
        self._auth = auth
        self._requests = requests
        self._acting = acting
        self._live = live
        self._document = msgspec.json.encode(document())

    def routes(self) -> list[BaseRoute]:
        """Return a route for each operation, for the events and for the document."""
        made: list[BaseRoute] = [
            Route(f"{BASE}{each.path}", self._operation(each), methods=[each.method]) for each in OPERATIONS
        ]
        made.append(Route(f"{BASE}/events", self._live, methods=["GET"]))
        made.append(Route(f"{BASE}/openapi.json", self._openapi, methods=["GET"]))
        return made

    def _operation(self, operation: Operation) -> Callable[[Request], Awaitable[Response]]:
        async def call(request: Request) -> Response:
            path = {name: check_id(name, value) for name, value in request.path_params.items()}
            actor = self._auth.require(request, operator=operation.changes)
            if operation.changes:
                self._auth.check_program(request, actor)
                wanted = operation.build(path, _object(await request.body()), typed=True)
                reply = await self._acting.do(actor, address_of(request), operation, wanted)
            else:
                wanted = operation.build(path, request.query_params, typed=False)
                row = operation.row
                reply = await self._requests.call(actor.name, row.name, wanted, row.reply)
            return _answer(reply)

        return call

    async def _openapi(self, _request: Request) -> Response:
        return Response(self._document, media_type=JSON)


def _object(body: bytes) -> dict[str, Any]:
    return codec.decode(body or b"{}", dict[str, Any], "a JSON object")


def _answer(reply: Struct) -> Response:
    return Response(codec.encode(reply), media_type=JSON)
