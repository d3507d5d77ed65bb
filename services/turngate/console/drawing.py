"""Drawing pages: the templates, the frame around each page, and the part that scripts put in its place."""

import time
from importlib.resources import files
from typing import Any, Final
from urllib.parse import quote

import jinja2
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from turngate import __version__
from turngate.console.auth import Actor, Auth
from turngate.console.errors import Fault
from turngate.console.facts import Flash, Shell
from turngate.console.forms import new_op
from turngate.console.hub import Hub
from turngate.console.tokens import Role
from turngate_contracts.messages import InboxPage

FRAGMENT_HEADER: Final = "turngate-fragment"
NOBODY: Final = "nobody"


class Drawing:
    """Draws the pages of one console."""

    def __init__(self, namespace: str, auth: Auth, hub: Hub) -> None:
        self._namespace = namespace
        self._auth = auth
        self._hub = hub
        self._templates = jinja2.Environment(
            loader=jinja2.FileSystemLoader(str(files("turngate.console") / "templates")),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        self._templates.globals["new_op"] = new_op

    def page(
        self, request: Request, actor: Actor, template: str, page: Any, cursor: int, inbox: InboxPage | None
    ) -> Response:
        """Return a page, or only what is inside of its `main`.

        Args:
            request: whose page it is.
            actor: who looks.
            template: the template's file.
            page: what the page's view made.
            cursor: the events' sequence that the page is at least as new as.
            inbox: what waits for a person, as far as it was counted.
        """
        count, more = (len(inbox.entries), inbox.more) if inbox else (0, False)
        shell = self._shell(request, actor, cursor=cursor, inbox=count, inbox_more=more)
        return self._respond(request, template, page, shell)

    def fault(self, request: Request, fault: Fault) -> Response:
        """Return the page of an error."""
        session = self._auth.session_of(request)
        shell = self._shell(request, Actor(NOBODY, Role.VIEWER, session))
        page = {"status": fault.status, "code": fault.code, "message": fault.message}
        response = self._respond(request, "error.html", page, shell)
        response.status_code = fault.status
        return response

    def login(self, request: Request, error: str, to: str, status: int) -> Response:
        """Return the page that asks for a token."""
        session = self._auth.session_of(request)
        shell = self._shell(request, Actor(NOBODY, Role.VIEWER, session))
        response = self._respond(request, "login.html", {"next": to, "error": error}, shell)
        response.status_code = status
        self._auth.set_cookie(request, response, session)
        return response

    def _shell(self, request: Request, actor: Actor, **known: Any) -> Shell:
        return Shell(
            self._namespace,
            actor.name,
            actor.operator,
            self._auth.sessions.csrf(actor.session),
            connected=self._hub.connected,
            signed_in=bool(actor.session.token),
            path=request.url.path,
            flash=self._flash(request),
            version=__version__,
            **known,
        )

    def _flash(self, request: Request) -> Flash | None:
        sessions = self._auth.sessions
        return sessions.read_flash(request.cookies.get(sessions.flash_cookie))

    def _respond(self, request: Request, template: str, page: Any, shell: Shell) -> Response:
        fragment = request.headers.get(FRAGMENT_HEADER, "") == "main"
        layout = "fragment.html" if fragment else "base.html"
        known = {"page": page, "shell": shell, "now": time.time_ns() // 1_000_000, "layout": layout}
        found = self._templates.get_template(template)
        response = HTMLResponse(found.render(known))
        if fragment:
            title = "".join(found.blocks["title"](found.new_context(known))) if "title" in found.blocks else ""
            response.headers["Turngate-Cursor"] = str(shell.cursor)
            response.headers["Turngate-Inbox"] = str(shell.inbox)
            response.headers["Turngate-Title"] = quote(" ".join(title.split()))
        response.headers["Vary"] = "Turngate-Fragment, Cookie"
        if shell.flash is not None:
            response.delete_cookie(self._auth.sessions.flash_cookie)
        return response
