"""Requests with one shared reply inbox and one deadline sweeper, for JetStream's API, publishes and direct gets.

nats-py makes a future, a timer and a `wait_for` per request; at thousands a second that is most of the cost. Here a
request is an entry in a dict and a callback. `request` is the awaitable form for what is not on the hot path.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Final

import msgspec
from msgspec import Struct

from turngate.jetstream.connect import ApiError, Connection, NotConnected, parse_headers
from turngate_contracts.errors import Unavailable

log = logging.getLogger(__name__)

SWEEP_MS: Final = 100
"""How often overdue requests are looked for; a timeout is late by at most this."""
NO_RESPONDERS: Final = 503

WRONG_SEQUENCE: Final = 10071
"""JetStream's err_code for a compare-and-set that lost."""
STREAM_LIMIT: Final = 10077
"""JetStream's err_code for a full stream, and for a second message on a subject that takes one."""


class Reply(Struct, frozen=True):
    """What came back: the body, and the header block as it came."""

    body: bytes
    head: bytes
    subject: bytes = b""

    def headers(self) -> tuple[int, dict[str, str]]:
        """Return the status (0 when there is none) and the header fields."""
        return parse_headers(self.head)


class RequestTimeout(Unavailable):
    """No answer in time; what was asked for may have been done all the same."""

    def __init__(self, subject: str, timeout_ms: int) -> None:
        super().__init__(f"no answer from {subject} within {timeout_ms} ms; it may have been done all the same")


class Interrupted(Unavailable):
    """The connection was lost while waiting; what was asked for may have been done all the same."""

    def __init__(self, subject: str) -> None:
        super().__init__(f"the connection was lost while waiting for {subject}; it may have been done all the same")


class NoResponders(Unavailable):
    """Nobody listens on the subject: the stream, consumer or service does not exist or is down."""

    def __init__(self, subject: str) -> None:
        super().__init__(f"nobody answers on {subject}; is the service running and the topology provisioned?")


class JetStreamError(Exception):
    """JetStream refused a request; `err_code` is its own number for the reason."""

    def __init__(self, error: ApiError, subject: str = "") -> None:
        super().__init__(f"JetStream refused {subject or 'a request'}: {error.description} (err_code {error.err_code})")
        self.err_code = error.err_code
        self.code = error.code
        self.description = error.description


class PubAck(Struct, frozen=True):
    """JetStream's confirmation of a stored message."""

    stream: str = ""
    seq: int = 0
    duplicate: bool = False
    error: ApiError | None = None


OnReply = Callable[["Reply | Exception"], "bool | None"]
"""Called once with the reply or the failure; a listener of several replies returns True to get the next."""

_decode_ack = msgspec.json.Decoder(PubAck).decode
_decode_any = msgspec.json.Decoder().decode


class Requester:
    """The requests of one connection. Create with `await Requester.start(connection)`."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._inbox = connection.new_inbox()
        self._waiting: dict[bytes, tuple[OnReply, float, str, int]] = {}
        self._next = 0
        self._sweeper: asyncio.Task[None] | None = None
        self._loop = asyncio.get_running_loop()

    @classmethod
    async def start(cls, connection: Connection) -> "Requester":
        """Subscribe to the shared inbox and start the deadline sweeper."""
        self = cls(connection)
        await connection.listen(f"{self._inbox}.*", self._on_message)
        connection.on_disconnect(self._on_disconnect)
        self._sweeper = asyncio.create_task(self._sweep(), name="turngate-request-sweeper")
        return self

    async def stop(self) -> None:
        """End the sweeper and fail what still waits."""
        if self._sweeper is not None:
            self._sweeper.cancel()
            await asyncio.gather(self._sweeper, return_exceptions=True)
        self._on_disconnect()

    def request_nowait(
        self, subject: str, body: bytes, on_reply: OnReply, headers: bytes = b"", timeout_ms: int = 5000
    ) -> None:
        """Send a request and have `on_reply` called once with its reply or failure; never raises."""
        self._next += 1
        token = b"%x" % self._next
        self._waiting[token] = (on_reply, self._loop.time() + timeout_ms / 1000, subject, timeout_ms)
        try:
            self.connection.send(subject, body, f"{self._inbox}.{token.decode()}", headers)
        except Exception as error:  # noqa: BLE001  the caller learns of it in one way only
            del self._waiting[token]
            on_reply(error)

    async def request(self, subject: str, body: bytes = b"", headers: bytes = b"", timeout_ms: int = 5000) -> Reply:
        """Send a request and return its reply.

        Raises:
            NotConnected: it was not sent.
            RequestTimeout, Interrupted: it was sent, and what became of it is unknown.
            NoResponders: nobody listens on the subject.
        """
        future: asyncio.Future[Reply] = self._loop.create_future()

        def on_reply(reply: Reply | Exception) -> None:
            if future.done():
                return
            if isinstance(reply, Exception):
                future.set_exception(reply)
            else:
                future.set_result(reply)

        self.request_nowait(subject, body, on_reply, headers, timeout_ms)
        return await future

    async def collect(
        self, subject: str, body: bytes, is_last: Callable[[Reply], bool], timeout_ms: int = 5000
    ) -> list[Reply]:
        """Send a request that has several replies and return those before the one that `is_last`."""
        future: asyncio.Future[list[Reply]] = self._loop.create_future()
        replies: list[Reply] = []

        def on_reply(reply: Reply | Exception) -> bool:
            if future.done():
                return False
            if isinstance(reply, Exception):
                future.set_exception(reply)
            elif is_last(reply):
                future.set_result(replies)
            else:
                replies.append(reply)
                return True
            return False

        self.request_nowait(subject, body, on_reply, timeout_ms=timeout_ms)
        return await future

    async def api(self, name: str, body: Any = None, timeout_ms: int = 5000) -> dict[str, Any]:
        """Call JetStream's API, such as `STREAM.INFO.TG_TURNS`, and return its answer.

        Raises:
            JetStreamError: JetStream refused, with its err_code.
            Unavailable: as for `request`.
        """
        subject = f"$JS.API.{name}"
        reply = await self.request(subject, b"" if body is None else msgspec.json.encode(body), timeout_ms=timeout_ms)
        answer: dict[str, Any] = _decode_any(reply.body)
        if "error" in answer:
            raise JetStreamError(msgspec.convert(answer["error"], ApiError), name)
        return answer

    def publish_nowait(
        self,
        subject: str,
        body: bytes,
        on_ack: Callable[[PubAck | Exception], None],
        headers: bytes = b"",
        timeout_ms: int = 5000,
    ) -> None:
        """Publish into a stream and have `on_ack` called once with the confirmation or the failure; never raises."""

        def on_reply(reply: Reply | Exception) -> None:
            on_ack(reply if isinstance(reply, Exception) else _to_ack(reply, subject))

        self.request_nowait(subject, body, on_reply, headers, timeout_ms)

    async def publish(self, subject: str, body: bytes, headers: bytes = b"", timeout_ms: int = 5000) -> PubAck:
        """Publish into a stream and return the confirmation.

        Raises:
            JetStreamError: the stream refused it (full, or a compare-and-set that lost).
            PayloadTooLarge, NotConnected: it was not sent.
            Unavailable: it may be stored or not; publish it again.
        """
        ack = _to_ack(await self.request(subject, body, headers, timeout_ms), subject)
        if isinstance(ack, Exception):
            raise ack
        return ack

    def _on_message(self, subject: bytes, _reply: bytes, body: bytes, head: bytes) -> None:
        token = subject[subject.rindex(b".") + 1 :]
        waiting = self._waiting.get(token)
        if waiting is None:
            return  # answered after its deadline
        answer: Reply | Exception = Reply(body, head, subject)
        if not body and head.startswith(b"NATS/1.0 503"):
            answer = NoResponders(waiting[2])
        if not waiting[0](answer):
            self._waiting.pop(token, None)

    def _on_disconnect(self) -> None:
        waiting, self._waiting = self._waiting, {}
        for on_reply, _deadline, subject, _timeout in waiting.values():
            _fail(on_reply, Interrupted(subject))

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_MS / 1000)
            now = self._loop.time()
            overdue = [token for token, waiting in self._waiting.items() if waiting[1] <= now]
            for token in overdue:
                on_reply, _deadline, subject, timeout_ms = self._waiting.pop(token)
                _fail(on_reply, RequestTimeout(subject, timeout_ms))


def _fail(on_reply: OnReply, error: Exception) -> None:
    try:
        on_reply(error)
    except Exception:  # one waiter's mistake must not keep the others from learning
        log.exception("a reply callback failed")


def _to_ack(reply: Reply, subject: str) -> PubAck | Exception:
    try:
        ack = _decode_ack(reply.body)
    except msgspec.DecodeError:
        return JetStreamError(ApiError(description=f"an answer that is no confirmation: {reply.body[:80]!r}"), subject)
    return ack if ack.error is None else JetStreamError(ack.error, subject)


__all__ = [
    "NO_RESPONDERS",
    "STREAM_LIMIT",
    "WRONG_SEQUENCE",
    "Interrupted",
    "JetStreamError",
    "NoResponders",
    "NotConnected",
    "PubAck",
    "Reply",
    "RequestTimeout",
    "Requester",
]
