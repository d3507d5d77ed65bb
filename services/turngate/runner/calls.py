"""Requests and publishes of a client: repeated until they are answered or stored, because both are idempotent."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import Final, Protocol, TypeVar

from msgspec import Struct

from turngate.jetstream.connect import Connection
from turngate.jetstream.request import STREAM_LIMIT, JetStreamError, NoResponders, NotConnected, Requester
from turngate_contracts import codec
from turngate_contracts.errors import ErrorBody, ErrorCode, PayloadTooLarge, Refusal, TurngateError, Unavailable
from turngate_contracts.headers import SCHEMA, block
from turngate_contracts.messages import SCHEMAS
from turngate_contracts.subjects import Subjects

R = TypeVar("R", bound=Struct)

RETRY_S: Final = 0.2
REQUEST_MS: Final = 5_000
"""How long one request waits before it is sent again."""


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

    def __call__(self, name: str, request: Struct, kind: type[R], timeout_ms: int = ..., /) -> Awaitable[R]:
        """Send a request and return its answer, asking again while nobody answers."""


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
        self, name: str, request: Struct, kind: type[R], timeout_ms: int = REQUEST_MS, *, pool: str = ""
    ) -> R:
        """Send a request to a service and return its answer, asking again while nobody answers.

        `pool` is for requests whose subject names one.

        Raises:
            Refusal: the service's own error, with its code and details.
            Unavailable: nobody answered in time.
            ClientClosed: the client was closed.
        """
        subject = self._subjects.api(name, self._identity, pool)
        body = codec.encode(request)
        if len(body) > self._connection.body_limit:
            raise PayloadTooLarge(f"a {type(request).__name__}", len(body), self._connection.body_limit)
        head = block({SCHEMA: SCHEMAS[type(request)]})
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_ms / 1000
        while True:
            self.check_open()
            left_ms = int((deadline - loop.time()) * 1000)
            try:
                reply = await self._requester.request(subject, body, head, max(1, min(REQUEST_MS, left_ms)))
            except Unavailable:
                if loop.time() + RETRY_S >= deadline:
                    raise
                await asyncio.sleep(RETRY_S)
                continue
            if b"Nats-Service-Error" not in reply.head:
                return codec.decode(reply.body, kind, f"a {kind.__name__}")
            error = codec.decode(reply.body, ErrorBody, "an error")
            if error.code is ErrorCode.UNAVAILABLE and loop.time() + RETRY_S < deadline:
                # The service is there and its state is not, as while the server restarts.
                await asyncio.sleep(RETRY_S)
                continue
            raise Refusal(error.code, error.message, **error.details)

    async def publish_until_stored(
        self, subject: str, body: bytes, head: bytes, note: Callable[[Stored], None]
    ) -> None:
        """Publish into a stream, again and again until it is stored; a caller bounds the time.

        `note` is told each time that more or less is known of it.

        Raises:
            Refusal: overloaded, the stream is full.
            Unavailable: the stream refuses it for good.
            ClientClosed: the client was closed.
        """
        known = Stored.NOT_STORED
        while True:
            self.check_open()
            note(Stored.UNKNOWN)
            try:
                await self._requester.publish(subject, body, head)
            except JetStreamError as error:
                note(known)
                if error.err_code == STREAM_LIMIT:
                    raise Refusal(
                        ErrorCode.OVERLOADED, "the intake is full; try again in some seconds", retry_after_ms=5_000
                    ) from None
                raise Unavailable(f"the message could not be stored: {error.description}") from None
            except (NotConnected, NoResponders):
                note(known)
            except Unavailable:
                # Sent, and perhaps stored: that too is repaired by sending it again.
                known = Stored.UNKNOWN
            else:
                note(Stored.STORED)
                return
            await asyncio.sleep(RETRY_S)


def operation_id() -> str:
    """Return an id for an operation that is new for certain; repeating a request with it has the same result."""
    return secrets.token_hex(12)
