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
from nats.aio.subscription import Subscription

from turngate.jetstream.connect import ApiError, Connection, NotConnected, NotPermitted, parse_headers
from turngate_contracts.errors import Unavailable, shown

log = logging.getLogger(__name__)

SWEEP_MS: Final = 100
"""How often overdue requests are looked for; a timeout is late by at most this."""

WRONG_SEQUENCE: Final = frozenset({10071, 10164})
"""JetStream's err_codes for a compare-and-set that lost; the second one comes from streams with replicas."""
STREAM_LIMIT: Final = 10077
"""JetStream's err_code for a full stream, and for a message on a subject that has as many as it takes."""
NO_ROOM: Final = frozenset({STREAM_LIMIT, 10023, 10047})
"""JetStream's err_codes for a full stream, and for a server that has no storage left."""


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


class PubAck(Struct, frozen=True, gc=False):
    """JetStream's confirmation of a stored message."""

    stream: str = ""
    seq: int = 0
    duplicate: bool = False
    error: ApiError | None = None


OnReply = Callable[["Reply | Exception"], "bool | None"]
"""Called once with the reply or the failure; a listener of several replies returns True to get the next."""
OnAck = Callable[[PubAck | Exception], None]
"""Called once with the confirmation of what was published, or with the failure."""

_decode_ack = msgspec.json.Decoder(PubAck).decode
_decode_api = msgspec.json.Decoder(dict[str, Any]).decode


class _Waiting(Struct, frozen=True):
    """Who waits for an answer: `on_reply`, or for what is published `on_ack`."""

    on_reply: OnReply | None
    on_ack: OnAck | None
    deadline: float
    subject: str
    timeout_ms: int

    def fail(self, error: Exception) -> None:
        """Tell that there will be no answer."""
        try:
            if self.on_ack is not None:
                self.on_ack(error)
            elif self.on_reply is not None:
                self.on_reply(error)
        except Exception:  # one waiter's mistake must not keep the others from learning
            log.exception("a reply callback failed")


class Requester:
    """The requests of one connection. Create with `await Requester.start(connection)`."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._inbox = connection.new_inbox()
        self._waiting: dict[bytes, _Waiting] = {}
        self._next = 0
        self._subscription: Subscription | None = None
        self._sweeper: asyncio.Task[None] | None = None
        self._stopped = False
        self._loop = asyncio.get_running_loop()

    @classmethod
    async def start(cls, connection: Connection) -> "Requester":
        """Subscribe to the shared inbox and start the deadline sweeper."""
        self = cls(connection)
        self._subscription = await connection.listen(f"{self._inbox}.*", self._on_message)
        connection.on_disconnect(self._on_disconnect)
        connection.on_refused_publish(self._on_refused)
        self._sweeper = asyncio.create_task(self._sweep(), name="turngate-request-sweeper")
        return self

    async def stop(self) -> None:
        """End the sweeper and fail what still waits; a later request fails at once."""
        self._stopped = True
        self.connection.forget(self._on_disconnect)
        self.connection.forget(self._on_refused)
        if self._sweeper is not None:
            self._sweeper.cancel()
            await asyncio.gather(self._sweeper, return_exceptions=True)
        self._on_disconnect()
        if self._subscription is not None:
            await self.connection.unlisten(self._subscription)

    def request_nowait(
        self, subject: str, body: bytes, on_reply: OnReply, headers: bytes = b"", timeout_ms: int = 5000
    ) -> None:
        """Send a request and have `on_reply` called once with its reply or failure; never raises."""
        self._send(subject, body, headers, timeout_ms, on_reply, None)

    async def request(self, subject: str, body: bytes = b"", headers: bytes = b"", timeout_ms: int = 5000) -> Reply:
        """Send a request and return its reply.

        Raises:
            NotConnected: it was not sent.
            RequestTimeout, Interrupted: it was sent, and what became of it is unknown.
            NoResponders: nobody listens on the subject.
            NotPermitted: the server refused to take it from this identity.
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
        """Send a request that has several replies and return those before the one that `is_last`; raises as `request`.

        `timeout_ms` is for all of them together.
        """
        future: asyncio.Future[list[Reply]] = self._loop.create_future()
        replies: list[Reply] = []

        def on_reply(reply: Reply | Exception) -> bool:
            if future.done():
                return False
            if isinstance(reply, Exception):
                future.set_exception(reply)
                return False
            try:
                last = is_last(reply)
            except Exception as error:  # noqa: BLE001  it is the waiter's, who would wait for ever without it
                future.set_exception(error)
                return False
            if last:
                future.set_result(replies)
            else:
                replies.append(reply)
            return not last

        self.request_nowait(subject, body, on_reply, timeout_ms=timeout_ms)
        return await future

    async def api(self, name: str, body: Any = None, timeout_ms: int = 5000) -> dict[str, Any]:
        """Call JetStream's API, such as `STREAM.INFO.TG_TURNS`, and return its answer.

        Raises:
            JetStreamError: JetStream refused, with its err_code.
            Unavailable: as for `request`.
        """
        subject = f"{self.connection.api}.{name}"
        reply = await self.request(subject, b"" if body is None else msgspec.json.encode(body), timeout_ms=timeout_ms)
        try:
            answer: dict[str, Any] = _decode_api(reply.body)
        except msgspec.DecodeError:
            raise JetStreamError(_unreadable(reply.body), name) from None
        if "error" in answer:
            raise JetStreamError(msgspec.convert(answer["error"], ApiError), name)
        return answer

    def publish_nowait(
        self,
        subject: str,
        body: bytes,
        on_ack: OnAck,
        headers: bytes = b"",
        timeout_ms: int = 5000,
    ) -> None:
        """Publish into a stream and have `on_ack` called once with the confirmation or the failure; never raises."""
        self._send(subject, body, headers, timeout_ms, None, on_ack)

    async def publish(self, subject: str, body: bytes, headers: bytes = b"", timeout_ms: int = 5000) -> PubAck:
        """Publish into a stream and return the confirmation.

        Raises:
            JetStreamError: the stream refused it (full, or a compare-and-set that lost).
            PayloadTooLarge, NotConnected: it was not sent.
            Unavailable: it may be stored or not; publish it again.
        """
        ack = _to_ack((await self.request(subject, body, headers, timeout_ms)).body, subject)
        if isinstance(ack, Exception):
            raise ack
        return ack

    def _send(
        self,
        subject: str,
        body: bytes,
        headers: bytes,
        timeout_ms: int,
        on_reply: OnReply | None,
        on_ack: OnAck | None,
    ) -> None:
        self._next += 1
        token = b"%x" % self._next
        waiting = _Waiting(on_reply, on_ack, self._loop.time() + timeout_ms / 1000, subject, timeout_ms)
        self._waiting[token] = waiting
        try:
            if self._stopped:
                raise NotConnected(f"a request to {subject}")
            self.connection.send(subject, body, f"{self._inbox}.{token.decode()}", headers)
        except Exception as error:  # noqa: BLE001  the caller learns of it in one way only
            del self._waiting[token]
            waiting.fail(error)

    def _on_message(self, subject: bytes, _reply: bytes, body: bytes, head: bytes) -> None:
        token = subject[subject.rindex(b".") + 1 :]
        waiting = self._waiting.get(token)
        if waiting is None:
            return  # answered after its deadline
        nobody = not body and head.startswith(b"NATS/1.0 503")
        if waiting.on_ack is not None:
            del self._waiting[token]
            waiting.on_ack(NoResponders(waiting.subject) if nobody else _to_ack(body, waiting.subject))
            return
        more: bool | None = False
        try:
            if waiting.on_reply is not None:
                more = waiting.on_reply(NoResponders(waiting.subject) if nobody else Reply(body, head, subject))
        finally:
            if not more:
                self._waiting.pop(token, None)

    def _on_disconnect(self) -> None:
        lost, self._waiting = self._waiting, {}
        for waiting in lost.values():
            waiting.fail(Interrupted(waiting.subject))

    def _on_refused(self, lower_subject: str) -> None:
        # nats-py hands on the server's words in lower case.
        refused = [token for token, waiting in self._waiting.items() if waiting.subject.lower() == lower_subject]
        for token in refused:
            waiting = self._waiting.pop(token, None)
            if waiting is not None:
                waiting.fail(NotPermitted("publish to", waiting.subject))

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_MS / 1000)
            now = self._loop.time()
            overdue = [token for token, waiting in self._waiting.items() if waiting.deadline <= now]
            for token in overdue:
                waiting = self._waiting.pop(token, None)
                if waiting is not None:  # else a callback before it in this sweep has ended it
                    waiting.fail(RequestTimeout(waiting.subject, waiting.timeout_ms))


def _to_ack(body: bytes, subject: str) -> PubAck | Exception:
    try:
        ack = _decode_ack(body)
    except msgspec.DecodeError:
        return JetStreamError(_unreadable(body), subject)
    if ack.error is not None:
        return JetStreamError(ack.error, subject)
    return ack if ack.seq else JetStreamError(_unreadable(body), subject)


def _unreadable(body: bytes) -> ApiError:
    return ApiError(description=f"the answer is not JetStream's: {shown(body[:80])}")


__all__ = [
    "NO_ROOM",
    "STREAM_LIMIT",
    "WRONG_SEQUENCE",
    "Interrupted",
    "JetStreamError",
    "NoResponders",
    "NotConnected",
    "NotPermitted",
    "PubAck",
    "Reply",
    "RequestTimeout",
    "Requester",
]
