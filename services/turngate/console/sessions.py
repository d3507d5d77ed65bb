"""The browser's cookie: who it is, and what a form of this very browser carries.

A cookie is signed and says nothing secret: a random number of the browser's session, the id of the token that it was
opened with (none before a log-in, and where no tokens are needed), and when. It is worth nothing once that token was
removed. The CSRF token is derived from the random number, so that it is the session's own and needs no memory here.
"""

import contextlib
import hmac
import os
import secrets
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import itsdangerous
from msgspec import Struct

from turngate.console.facts import Flash
from turngate.console.tokens import write_private

SESSION_S: Final = 12 * 3600
"""How long a log-in lasts."""
FLASH_S: Final = 60
FLASH_TEXT: Final = 600
_SECRET_BYTES: Final = 32


class Session(Struct, frozen=True):
    """A browser's session. `token` is empty until it was opened with one; `fresh` when its cookie is not set yet."""

    number: str
    token: str = ""
    fresh: bool = False


def load_secret(path: Path) -> bytes:
    """Return the secret that cookies are signed with; made where there is none, in a file that only its owner reads."""
    try:
        found = path.read_bytes()
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        made = path.with_name(f".{path.name}-{secrets.token_hex(8)}")
        write_private(made, secrets.token_bytes(_SECRET_BYTES))
        # Whoever links it first made it; another process that starts at the same time takes that one.
        with contextlib.suppress(FileExistsError):
            os.link(made, path)
        made.unlink()
        found = path.read_bytes()
    if path.stat().st_mode & 0o077:
        path.chmod(0o600)
    return found


class Sessions:
    """Makes and reads the cookies of one console."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._sessions = itsdangerous.URLSafeTimedSerializer(secret, salt="turngate-session")
        self._flashes = itsdangerous.URLSafeTimedSerializer(secret, salt="turngate-flash")
        # Cookies know no ports: consoles on one host must not take each other's.
        self.cookie = f"turngate-{hmac.new(secret, b'cookie', sha256).hexdigest()[:8]}"
        self.flash_cookie = f"{self.cookie}-said"

    def read(self, cookie: str | None) -> Session:
        """Return the session of a cookie; a new one where it is missing, expired or not ours."""
        found = _loaded(self._sessions, cookie, SESSION_S)
        if isinstance(found, dict) and isinstance(found.get("n"), str) and isinstance(found.get("t"), str):
            return Session(found["n"], found["t"])
        return self.open()

    def open(self, token: str = "") -> Session:
        """Return a new session, opened with the token of this id."""
        return Session(secrets.token_urlsafe(18), token, fresh=True)

    def write(self, session: Session) -> str:
        """Return the cookie of a session."""
        return str(self._sessions.dumps({"n": session.number, "t": session.token}))

    def csrf(self, session: Session) -> str:
        """Return what each form of this session carries."""
        return hmac.new(self._secret, f"csrf\0{session.number}\0{session.token}".encode(), sha256).hexdigest()

    def is_csrf(self, session: Session, text: str) -> bool:
        """Say whether a form came from a page of this session."""
        return not session.fresh and hmac.compare_digest(self.csrf(session).encode(), text.encode("utf-8", "replace"))

    def write_flash(self, flash: Flash) -> str:
        """Return the cookie that says what became of an action on the next page."""
        message = flash.message if len(flash.message) <= FLASH_TEXT else f"{flash.message[: FLASH_TEXT - 1]}…"
        return str(self._flashes.dumps([flash.ok, message]))

    def read_flash(self, cookie: str | None) -> Flash | None:
        """Return what a cookie says that became of an action."""
        found = _loaded(self._flashes, cookie, FLASH_S)
        if isinstance(found, list) and len(found) == 2:
            return Flash(bool(found[0]), str(found[1]))
        return None


def _loaded(serializer: itsdangerous.URLSafeTimedSerializer, text: str | None, max_age: int) -> Any:
    if not text:
        return None
    try:
        return serializer.loads(text, max_age=max_age)
    except itsdangerous.BadData:
        return None
