"""What people do on pages: forms, with a script or without, and logging in and out.

A form without a script is answered by a redirect to the page, which then says what became of it; a script gets the same
as JSON. A text that was edited for an option of the kind `collect` goes to the session as its next prompt once the
answer stands; its id comes from the form's operation id, so that a repeat of the form is a repeat of both.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec
from python_multipart.multipart import parse_options_header
from starlette.datastructures import FormData
from starlette.formparsers import MultiPartException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from turngate.console.acting import Acting
from turngate.console.auth import Actor, Auth, address_of, text_of
from turngate.console.drawing import Drawing
from turngate.console.errors import Fault, Refused, Told, fault_of, for_people, refuse
from turngate.console.facts import Flash
from turngate.console.forms import FORMS, Form
from turngate.console.operations import BY_NAME
from turngate.console.reading import Requests
from turngate.console.sessions import FLASH_S
from turngate_contracts.ids import check_id
from turngate_contracts.messages import AnswerRecorded, AnswerTurn, SendPrompt
from turngate_protocol.report.decode import decode
from turngate_protocol.report.model import Effect, Report
from turngate_protocol.report.session import Turn

_MOST_FIELDS: Final = 64
_SEE_OTHER: Final = 303


class Actions:
    """The forms of one console."""

    def __init__(self, auth: Auth, drawing: Drawing, requests: Requests, acting: Acting) -> None:
        self._auth = auth
        self._drawing = drawing
        self._requests = requests
        self._acting = acting

    def routes(self) -> list[Route]:
        """Return a route for each form, and those of logging in and out."""
        made = [Route(form.path, self._form(form), methods=["POST"]) for form in FORMS]
        return [
            *made,
            Route("/login", self._ask_token, methods=["GET"]),
            Route("/login", self._log_in, methods=["POST"]),
            Route("/logout", self._log_out, methods=["POST"]),
        ]

    def _form(self, form: Form) -> Callable[[Request], Awaitable[Response]]:
        async def post(request: Request) -> Response:
            path = {name: check_id(name, value) for name, value in request.path_params.items()}
            fields = await self._fields(request)
            to = local(text_of(fields, "next")) or form.page.format_map(path | {"session": _session(path, fields)})
            try:
                actor = self._auth.require(request, operator=True)
                self._auth.check_csrf(actor.session, text_of(fields, "csrf"))
                said = await self._act(actor, address_of(request), form, path, fields)
            except Exception as error:
                fault = fault_of(error)
                if fault.status in (401, 500):
                    raise
                fault = for_people(fault)
                if wants_json(request):
                    raise Told(fault) from None
                return self._redirect(request, to, Flash(False, fault.message))
            if wants_json(request):
                return _json({"ok": True, "message": said, "location": to})
            return self._redirect(request, to, Flash(True, said))

        return post

    async def _act(self, actor: Actor, address: str, form: Form, path: dict[str, Any], fields: FormData) -> str:
        wanted = form.request(path, fields)
        edited = ""
        if isinstance(wanted, AnswerTurn) and wanted.text:
            found = await self._requests.by(actor.name).turn(wanted.session)
            if _collects(found.state.current, wanted):
                edited, wanted = wanted.text, msgspec.structs.replace(wanted, text="")
        reply = await self._acting.do(actor, address, form.operation, wanted)
        said = form.said(reply)
        if edited and isinstance(wanted, AnswerTurn) and isinstance(reply, AnswerRecorded):
            prompt = SendPrompt(wanted.session, found.state.pool, f"person-{wanted.op}", edited, "person")
            await self._acting.do(actor, address, BY_NAME["turn.prompt"], prompt)
            said = f"{said}; your text goes to the session"
        return said

    async def _fields(self, request: Request) -> FormData:
        self._auth.check_origin(request)
        kind, options = parse_options_header(request.headers.get("content-type", ""))
        if kind not in (b"application/x-www-form-urlencoded", b"multipart/form-data"):
            raise refuse("wrong_content_type", "send the fields of a form")
        # Python has encodings that end in half characters, or in an error that Starlette does not expect.
        if options.get(b"charset", b"utf-8").lower() != b"utf-8":
            raise refuse("wrong_content_type", "send the fields of a form in UTF-8")
        try:
            return await request.form(max_files=0, max_fields=_MOST_FIELDS)
        except MultiPartException as error:
            raise Refused(400, "invalid_message", f"the form can't be read: {error.message}") from None

    def _redirect(self, request: Request, to: str, flash: Flash) -> Response:
        response = RedirectResponse(to, _SEE_OTHER)
        sessions = self._auth.sessions
        response.set_cookie(
            sessions.flash_cookie,
            sessions.write_flash(flash),
            max_age=FLASH_S,
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
        )
        return response

    async def _ask_token(self, request: Request) -> Response:
        if self._auth.actor_of(request) is not None:
            return RedirectResponse(local(request.query_params.get("next", "")) or "/", _SEE_OTHER)
        return self._drawing.login(request, "", local(request.query_params.get("next", "")) or "/", 200)

    async def _log_in(self, request: Request) -> Response:
        fields = await self._fields(request)
        to = local(text_of(fields, "next")) or "/"
        self._auth.check_csrf(self._auth.session_of(request), text_of(fields, "csrf"))
        try:
            _token, session = self._auth.log_in(request, text_of(fields, "token"))
        except Refused as error:
            if wants_json(request):
                raise
            return _with_retry(self._drawing.login(request, error.fault.message, to, error.fault.status), error.fault)
        response: Response = RedirectResponse(to, _SEE_OTHER)
        if wants_json(request):
            response = _json({"ok": True, "message": "logged in", "location": to})
        self._auth.set_cookie(request, response, session)
        return response

    async def _log_out(self, request: Request) -> Response:
        fields = await self._fields(request)
        self._auth.check_csrf(self._auth.session_of(request), text_of(fields, "csrf"))
        response = RedirectResponse("/login", _SEE_OTHER)
        response.delete_cookie(self._auth.sessions.cookie)
        return response


def wants_json(request: Request) -> bool:
    """Say whether the client asked for JSON, as our script does, and programs."""
    return request.url.path.startswith("/api/") or "application/json" in request.headers.get("accept", "")


def local(to: str) -> str:
    """Return a path of this console as it is, and nothing in the place of what could lead elsewhere."""
    if not to.startswith("/") or to.startswith(("//", "/\\")) or not to.isprintable() or not to.isascii():
        return ""
    return to if "\\" not in to and len(to) <= 2048 else ""


def _session(path: dict[str, Any], fields: FormData) -> str:
    # The page of an objective that is created here has its name from the form.
    given = path.get("session") or text_of(fields, "session").strip()
    return str(given)


def _collects(turn: Turn, wanted: AnswerTurn) -> bool:
    report = decode(bytes(turn.report))
    if not isinstance(report, Report):
        return False
    for choice in turn.choices:
        block = report.blocks[choice.block]
        option = block.options[choice.option]
        by_id = not wanted.number and (wanted.block, wanted.option) == (block.id, option.id)
        if by_id or (wanted.number and wanted.number == choice.number):
            return option.effect == Effect.COLLECT
    return False


def _json(value: dict[str, Any]) -> Response:
    return Response(msgspec.json.encode(value), media_type="application/json")


def _with_retry(response: Response, fault: Fault) -> Response:
    if fault.retry_after:
        response.headers["Retry-After"] = str(fault.retry_after)
    return response
