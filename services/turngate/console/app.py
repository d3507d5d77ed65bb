"""The ASGI app: its routes, and how errors are told."""

import logging
from importlib.resources import files
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Scope

from turngate.console.actions import Actions, wants_json
from turngate.console.api import JsonApi
from turngate.console.auth import Auth
from turngate.console.drawing import FRAGMENT_HEADER, Drawing
from turngate.console.errors import CODES, Fault, Refused, fault_of, refuse
from turngate.console.guard import Guard
from turngate.console.hub import Hub
from turngate.console.live import Live
from turngate.console.pages import Pages
from turngate_contracts.errors import TurngateError

log = logging.getLogger(__name__)


class _Static(StaticFiles):
    """Files with an ETag: asked about each time, and sent when they changed."""

    def file_response(self, *args: object, **given: object) -> Response:
        response = super().file_response(*args, **given)  # type: ignore[arg-type]
        response.headers["cache-control"] = "no-cache"
        return response


class App:
    """Makes the app of one console."""

    def __init__(
        self,
        auth: Auth,
        hub: Hub,
        drawing: Drawing,
        live: Live,
        pages: Pages,
        actions: Actions,
        api: JsonApi,
        hosts: tuple[str, ...],
    ) -> None:
        self._auth = auth
        self._hub = hub
        self._drawing = drawing
        static = _Static(directory=str(files("turngate.console") / "static"))
        routes = [
            Route("/healthz", self._healthy),
            Route("/readyz", self._ready),
            Route("/live", live),
            Mount("/static", static),
            *api.routes(),
            *pages.routes(),
            *actions.routes(),
        ]
        told = {
            Refused: self._on_error,
            TurngateError: self._on_error,
            HTTPException: self._on_http,
            Exception: self._on_error,
        }
        app = Starlette(routes=routes, exception_handlers=told)
        app.router.redirect_slashes = False
        self.app: ASGIApp = Guard(app, hosts, self._early)

    async def _healthy(self, _request: Request) -> Response:
        return Response("ok\n", media_type="text/plain")

    async def _ready(self, _request: Request) -> Response:
        if not self._hub.connected:
            return Response("the NATS server is away\n", 503, media_type="text/plain")
        if not self._hub.following:
            return Response("the events are not followed yet\n", 503, media_type="text/plain")
        return Response("ready\n", media_type="text/plain")

    async def _on_http(self, request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        if status == CODES["no_such_page"]:
            return self._tell(request, refuse("no_such_page", f"there is no page {request.url.path[:200]}").fault)
        if status == CODES["wrong_method"]:
            return self._tell(request, refuse("wrong_method", f"{request.method} does nothing here").fault)
        detail = error.detail if isinstance(error, HTTPException) else ""
        return self._tell(request, Fault(status, "invalid_message", detail or "this can't be understood"))

    async def _on_error(self, request: Request, error: Exception) -> Response:
        fault = fault_of(error)
        if fault.status == 500:
            log.error("%s %s failed", request.method, request.url.path, exc_info=error)
        return self._tell(request, fault)

    def _early(self, scope: Scope, error: Refused) -> Response:
        return self._tell(Request(scope), error.fault)

    def _tell(self, request: Request, fault: Fault) -> Response:
        signing_in = fault.code == "not_signed_in" and request.method == "GET"
        if signing_in and not wants_json(request) and FRAGMENT_HEADER not in request.headers:
            path = request.url.path + (f"?{request.url.query}" if request.url.query else "")
            return RedirectResponse(f"/login?next={quote(path, safe='/')}", 303)
        stream = "text/event-stream" in request.headers.get("accept", "")
        if wants_json(request) or stream or fault.code == "wrong_host":
            response = Response(fault.body(), fault.status, media_type="application/json")
        else:
            response = self._drawing.fault(request, fault)
        if fault.retry_after:
            response.headers["Retry-After"] = str(fault.retry_after)
        if fault.status == 401:
            response.headers["WWW-Authenticate"] = "Bearer"
        return response
