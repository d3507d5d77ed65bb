"""Who makes a request, and whether it may do what it asks for.

On loopback nobody needs a token, and everybody acts under the configured name. As soon as tokens were made, or another
address is listened on, each request shows one: a program as `Authorization: Bearer`, a browser by the cookie that it
got for it. What changes anything must come from a page of this console: a browser says where a request comes from, and
a form carries the token of its session.
"""

import logging
import time
from collections.abc import Callable
from typing import Final

from msgspec import Struct
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from turngate.console.errors import refuse
from turngate.console.limits import Attempts
from turngate.console.sessions import SESSION_S, Session, Sessions
from turngate.console.tokens import Role, Token, TokenFile

log = logging.getLogger(__name__)

CSRF_HEADER: Final = "turngate-csrf"


class Actor(Struct, frozen=True):
    """Who acts. `token` is the id of the token that says so; `by_token` when a program showed it with the request."""

    name: str
    role: Role
    session: Session
    token: str = ""
    by_token: bool = False

    @property
    def operator(self) -> bool:
        """Whether the actor may answer and steer."""
        return self.role is Role.OPERATOR


class Auth:
    """The rules of one console.

    Args:
        sessions: the cookies.
        tokens: the file of tokens.
        open_to_all: whether no token is needed as long as there is none.
        local_actor: who acts where no tokens are needed.
        clock: seconds that never go back.
    """

    def __init__(
        self,
        sessions: Sessions,
        tokens: TokenFile,
        *,
        open_to_all: bool,
        local_actor: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.sessions = sessions
        self._tokens = tokens
        self._open_to_all = open_to_all
        self._local_actor = local_actor
        self._attempts = Attempts(clock)

    @property
    def needs_token(self) -> bool:
        """Whether a token is needed now."""
        return not self._open_to_all or self._tokens.in_use()

    def session_of(self, request: Request) -> Session:
        """Return the session of the browser that makes a request."""
        return self.sessions.read(request.cookies.get(self.sessions.cookie))

    def actor_of(self, request: Request) -> Actor | None:
        """Return who makes a request, or None where that is not known and needs to be.

        Raises:
            Refused: wrong_token, too_many: a program shows a token that is none.
        """
        session = self.session_of(request)
        kind, _, text = request.headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer":
            token = self._checked(request, text.strip())
            return Actor(token.name, token.role, session, token.id, by_token=True)
        if not self.needs_token:
            return Actor(self._local_actor, Role.OPERATOR, session)
        found = self._tokens.find(session.token) if session.token else None
        return None if found is None else Actor(found.name, found.role, session, found.id)

    def still_may(self, actor: Actor) -> bool:
        """Say whether what an actor began may go on: a token that was removed ends it."""
        return self._tokens.find(actor.token) is not None if actor.token else not self.needs_token

    def require(self, request: Request, *, operator: bool = False) -> Actor:
        """Return who makes a request.

        Raises:
            Refused: not_signed_in, forbidden, wrong_token, too_many.
        """
        actor = self.actor_of(request)
        if actor is None:
            raise refuse("not_signed_in", "log in with a token first; `turngate console token add NAME` makes one")
        if operator and not actor.operator:
            raise refuse("forbidden", f"{actor.name} may look and not act; that needs a token of an operator")
        return actor

    def log_in(self, request: Request, text: str) -> tuple[Token, Session]:
        """Return the token that a browser shows, and the session that it opens.

        Raises:
            Refused: wrong_token, too_many.
        """
        token = self._checked(request, text.strip())
        log.info("%s logged in from %s", token.name, address_of(request))
        return token, self.sessions.open(token.id)

    def check_origin(self, request: Request) -> None:
        """Check that a request which changes something does not come from another site's page.

        Raises:
            Refused: wrong_origin.
        """
        site = request.headers.get("sec-fetch-site", "")
        origin = request.headers.get("origin", "")
        host = request.headers.get("host", "")
        if site not in ("", "same-origin", "none") or (origin and origin.partition("://")[2].lower() != host.lower()):
            raise refuse("wrong_origin", "this was sent from a page of another site")

    def check_csrf(self, session: Session, text: str) -> None:
        """Check that a form came from a page of this session.

        Raises:
            Refused: csrf.
        """
        if not self.sessions.is_csrf(session, text):
            raise refuse("csrf", "the page is not of this session any more; load it again, then repeat what you did")

    def check_program(self, request: Request, actor: Actor) -> None:
        """Check what changes something by the JSON API: a token, or the header that a page of this session sends.

        Where no token is needed, programs of this machine need none either; a browser always sends where from.

        Raises:
            Refused: wrong_origin, csrf, wrong_content_type.
        """
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            # Also what keeps a form of another site out: a browser asks first before it sends this type there.
            raise refuse("wrong_content_type", "send application/json")
        if actor.by_token:
            return
        self.check_origin(request)
        browser = any(name in request.headers for name in ("cookie", "origin", "sec-fetch-site"))
        if browser or self.needs_token:
            self.check_csrf(actor.session, request.headers.get(CSRF_HEADER, ""))

    def set_cookie(self, request: Request, response: Response, session: Session) -> None:
        """Have the browser keep its session."""
        response.set_cookie(
            self.sessions.cookie,
            self.sessions.write(session),
            max_age=SESSION_S,
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
        )

    def _checked(self, request: Request, text: str) -> Token:
        address = address_of(request)
        wait = self._attempts.wait_s(address)
        if wait:
            raise refuse("too_many", f"too many wrong tokens; try again in {wait} s", retry_after=wait)
        token = self._tokens.match(text)
        if token is None:
            self._attempts.failed(address)
            log.warning("a wrong token was shown from %s", address)
            raise refuse("wrong_token", "that is no token of this console; `turngate console token add NAME` makes one")
        self._attempts.succeeded(address)
        return token


def address_of(request: Request) -> str:
    """Return the address that a request comes from."""
    return request.client.host if request.client else ""


def text_of(form: FormData, name: str) -> str:
    """Return a field of a form, empty where it is missing or a file."""
    value = form.get(name, "")
    return value if isinstance(value, str) else ""
