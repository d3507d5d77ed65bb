"""The tokens that people and programs show, in a file that holds only their hashes.

A token is 256 random bits, so one round of SHA-256 keeps it: there is nothing to guess from. The file is the truth and
is read again whenever it changed: adding or removing a token takes effect at once, and also in consoles that run.
"""

import contextlib
import fcntl
import os
import secrets
import tempfile
from collections.abc import Iterator
from enum import StrEnum
from hashlib import sha256
from hmac import compare_digest
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from turngate_contracts.errors import ErrorCode, TurngateError
from turngate_contracts.ids import check_id

PREFIX: Final = "tgc_"
MOST: Final = 1_000
_BITS: Final = 256
_OTHERS: Final = 0o077


class Role(StrEnum):
    """What a token's holder may do: look, or also answer and steer."""

    VIEWER = "viewer"
    OPERATOR = "operator"


class Token(Struct, frozen=True):
    """A token as the file has it. `id` names it for ever, also when another one gets its name later."""

    id: str
    name: str
    role: Role
    hash: str
    created_at: int


class TokenFileError(TurngateError):
    """The file of tokens can't be used as it is."""

    code = ErrorCode.INVALID_ARGUMENT

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"the tokens in {path} can't be used: {reason}", path=str(path))


class _Content(Struct, frozen=True):
    tokens: tuple[Token, ...] = ()


class TokenFile:
    """The tokens of one console."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._seen: tuple[int, int, int] | None = None
        self._tokens: tuple[Token, ...] = ()

    def tokens(self) -> tuple[Token, ...]:
        """Return the tokens that are valid now; none where there is no file.

        Raises:
            TokenFileError: others may read the file, or it holds something else.
        """
        try:
            found = self.path.stat()
        except FileNotFoundError:
            self._seen, self._tokens = None, ()
            return ()
        except OSError as error:
            raise TokenFileError(self.path, f"{error.strerror}") from None
        if found.st_mode & _OTHERS:
            raise TokenFileError(self.path, f"others may read it; run chmod 600 {self.path}")
        seen = (found.st_ino, found.st_mtime_ns, found.st_size)
        if seen != self._seen:
            self._tokens = self._read()
            self._seen = seen
        return self._tokens

    def in_use(self) -> bool:
        """Say whether there is a file of tokens: also one without any left lets nobody in by itself."""
        self.tokens()
        return self._seen is not None

    def match(self, text: str) -> Token | None:
        """Return the token that `text` is, or None; takes as long for any wrong text."""
        wanted = _hash(text)
        found = None
        for token in self.tokens():
            if compare_digest(token.hash, wanted):
                found = token
        return found

    def find(self, token_id: str) -> Token | None:
        """Return the token of an id, or None once it was removed."""
        return next((token for token in self.tokens() if token.id == token_id), None)

    def add(self, name: str, role: Role, now: int) -> str:
        """Make a token and return it; it is not kept and can't be shown again.

        Args:
            name: who has it; what its holder does is recorded under this name.
            role: what its holder may do.
            now: ms since the epoch.

        Raises:
            InvalidId: the name is no id.
            TokenFileError: the name is taken, or the file can't be used.
        """
        check_id("name", name)
        text = PREFIX + secrets.token_urlsafe(_BITS // 8)
        with self._changing() as tokens:
            if any(token.name == name for token in tokens):
                raise TokenFileError(self.path, f"{name} has one; remove it first, or choose another name")
            if len(tokens) >= MOST:
                raise TokenFileError(self.path, f"there are {MOST}; remove some")
            tokens.append(Token(secrets.token_hex(8), name, role, _hash(text), now))
        return text

    def remove(self, name: str) -> bool:
        """Remove a token, which ends what was begun with it; say whether there was one."""
        with self._changing() as tokens:
            left = [token for token in tokens if token.name != name]
            removed = len(left) < len(tokens)
            tokens[:] = left
        return removed

    @contextlib.contextmanager
    def _changing(self) -> Iterator[list[Token]]:
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = os.open(self.path.with_name(f"{self.path.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            tokens = list(self.tokens())
            yield tokens
            write_private(self.path, msgspec.json.format(msgspec.json.encode(_Content(tuple(tokens))), indent=1))
        finally:
            os.close(lock)

    def _read(self) -> tuple[Token, ...]:
        try:
            return msgspec.json.decode(self.path.read_bytes(), type=_Content).tokens
        except OSError as error:
            raise TokenFileError(self.path, f"{error.strerror}") from None
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise TokenFileError(self.path, f"{error}; move it away and add the tokens anew") from None


def write_private(path: Path, content: bytes) -> None:
    """Replace a file that only its owner may read; a crash leaves the old content or the new."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _hash(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
