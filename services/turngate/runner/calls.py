"""Requests and publishes of a client: repeated until they are answered or stored, because both are idempotent."""

import asyncio
import itertools
import random
import secrets
from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import Final, Protocol, TypeVar

from msgspec import Struct

from turngate import tracing
from turngate.jetstream.connect import Connection
from turngate.jetstream.request import NO_ROOM, JetStreamError, NoResponders, NotConnected, Requester
from turngate_contracts import codec
from turngate_contracts.errors import (
    ErrorBody,
    ErrorCode,
    Overloaded,
    PayloadTooLarge,
    TurngateError,
    Unavailable,
    refusal_of,
)
from turngate_contracts.headers import SCHEMA, block
from turngate_contracts.messages import SCHEMAS
from turngate_contracts.subjects import Subjects

R = TypeVar("R", bound=Struct)

RETRY_S: Final = 0.2
REQUEST_MS: Final = 5_000
"""How long one request waits before it is sent again."""
FULL_RETRIES_S: Final = (0.1, 0.2, 0.5, 1.0, 2.0)
"""After what a full stream is tried again, give or take a half; the last repeats."""
FULL_RETRY_MS: Final = 5_000
"""After what a caller should try again that has waited in vain."""
_JITTER: Final = (0.5, 1.5)


class Stored(StrEnum):
    """What a client knows of a message that it publishes."""

    NOT_STORED = "not_stored"
    """It never left, or the stream did not take it."""
    UNKNOWN = "unknown"
    """It was published, and the confirmation was lost or has not come yet."""
    STORED = "stored"
    """The stream confirmed it once."""


class ClientClosed(TurngateError):
    """The client was closed; nothing that it is asked for can be done any more."""

    code = ErrorCode.UNAVAILABLE

    def __init__(self, identity: str) -> None:
        super().__init__(f"the client {identity} is closed; connect another one", identity=identity)


class Caller(Protocol):
    """What sends requests: `TurnClient.call`."""

    def __call__(
        self, name: str, request: Struct, kind: type[R], timeout_ms: int = ..., /, *, pool: str = ...
    ) -> Awaitable[R]:
        """Send a request, for a pool where its subject names one, and return its answer."""


class Calls:
    """The requests and publishes of one identity over one connection."""

    def __init__(self, connection: Connection, requester: Requester, subjects: Subjects, identity: str) -> None:
        self._connection = connection
        self._requester = requester
        self._subjects = subjects
        self._identity = identity
        self._closed = False

    def close(self) -> ClientClosed:
        """Have what comes from now on fail at once, and return the error that it fails with."""
        self._closed = True
        return ClientClosed(self._identity)

    def check_open(self) -> None:
        """Raise ClientClosed when nothing can be sent ever again."""
        if self._closed or self._connection.is_closed:
            raise ClientClosed(self._identity)

    async def call(
        self,
        name: str,
        request: Struct,
        kind: type[R],
        timeout_ms: int = REQUEST_MS,
        *,
        pool: str = "",
        once: bool = False,
    ) -> R:
        """Send a request to a service and return its answer, asking again while nobody answers.

        `pool` is for requests whose subject names one; `once` has nobody asked again who is not there.

        Raises:
            Overloaded: the service has too much to do, also after waiting as long as it asked for.
            Refusal: the service's own error, with its code and details.
            Unavailable: nobody answered in time.
            ClientClosed: the client was closed.
        """
        subject = self._subjects.api(name, self._identity, pool)
        body = codec.encode(request)
        if len(body) > self._connection.body_limit:
            raise PayloadTooLarge(f"a {type(request).__name__}", len(body), self._connection.body_limit)
        head = block({SCHEMA: SCHEMAS[type(request)], **tracing.headers()})
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_ms / 1000
        while True:
            self.check_open()
            left_ms = int((deadline - loop.time()) * 1000)
            try:
                reply = await self._requester.request(subject, body, head, max(1, min(REQUEST_MS, left_ms)))
            except Unavailable:
                if once or loop.time() + RETRY_S >= deadline:
                    raise
                await asyncio.sleep(RETRY_S)
                continue
            if b"Nats-Service-Error" not in reply.head:
                return codec.decode(reply.body, kind, f"a {kind.__name__}")
            error = codec.decode(reply.body, ErrorBody, "an error")
            if error.code is ErrorCode.UNAVAILABLE:
                # The service is there and its state is not, as while the server restarts: no refusal, asking goes on.
                if loop.time() + RETRY_S >= deadline:
                    raise Unavailable(error.message, **error.details)
                await asyncio.sleep(RETRY_S)
                continue
            refused = refusal_of(error)
            if isinstance(refused, Overloaded):
                wait_s = refused.retry_after_ms / 1000 * random.uniform(*_JITTER)  # noqa: S311
                if loop.time() + wait_s < deadline:
                    await asyncio.sleep(wait_s)
                    continue
            raise refused

    async def publish_until_stored(
        self, subject: str, body: bytes, head: bytes, note: Callable[[Stored], None], patience_s: float = 0
    ) -> None:
        """Publish into a stream, again and again until it is stored; a caller bounds the time.

        Args:
            subject: where to publish.
            body: the message.
            head: its headers.
            note: told each time that more or less is known of the message.
            patience_s: how long to wait for room where the stream is full.

        Raises:
            Overloaded: the stream was full all the time.
            Unavailable: the stream refuses it for good.
            ClientClosed: the client was closed.
        """
        known = Stored.NOT_STORED
        loop = asyncio.get_running_loop()
        deadline = loop.time() + patience_s
        waits_s = itertools.chain(FULL_RETRIES_S, itertools.repeat(FULL_RETRIES_S[-1]))
        while True:
            self.check_open()
            note(Stored.UNKNOWN)
            try:
                await self._requester.publish(subject, body, head)
            except JetStreamError as error:
                note(known)
                if error.err_code not in NO_ROOM:
                    raise Unavailable(f"the message could not be stored: {error.description}") from None
                wait_s = next(waits_s) * random.uniform(*_JITTER)  # noqa: S311
                if loop.time() + wait_s >= deadline:
                    raise _full(error) from None
                await asyncio.sleep(wait_s)
                continue
            except (NotConnected, NoResponders):
                note(known)
            except Unavailable:
                # Sent, and perhaps stored: that too is repaired by sending it again.
                known = Stored.UNKNOWN
            else:
                note(Stored.STORED)
                return
            await asyncio.sleep(RETRY_S)


def _full(error: JetStreamError) -> Overloaded:
    whose = "this session has in it what it may" if "per subject" in error.description else "the services are behind"
    return Overloaded(f"the intake is full: {whose}; try again in {FULL_RETRY_MS // 1000} s", FULL_RETRY_MS)


def operation_id() -> str:
    """Return an id for an operation that is new for certain; repeating a request with it has the same result."""
    return secrets.token_hex(12)
