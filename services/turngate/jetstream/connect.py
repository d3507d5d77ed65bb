"""The one connection type of every process: nats-py's client, hardened, with a fast path for messages.

What nats-py does wrong by itself is mended in `_hardened`. Here its internals are touched for what we ask of it (as in
`api` for reply subjects), each time for a reproduced reason:

- a PING overtakes what waits in the write buffer, so that its PONG confirms nothing; here it goes last;
- what was not sent before a disconnect would be sent after it; here it is dropped with it: its senders were told;
- closing in the moment in which the connection is lost raises CancelledError or an OSError; here it closes;
- nats-py checks only the body against max_payload, the server checks headers too and drops the connection;
- a coroutine, a queue, a task and a parsed header dict per message cost more than our rules do: `listen` calls back
  from the read loop (see `_wire`), and `send` appends without an await to what is written behind the present callback;
- 32 KiB at a time cut most messages in two, and keep the socket from being read; here it is a quarter of a MiB.
"""

import asyncio
import contextlib
import logging
import os
import random
from collections.abc import Callable
from typing import Any, Final

import nats.aio.client
import nats.errors
from nats.aio.subscription import Subscription

from turngate.jetstream._connect_errors import ApiError, NoServer, NotConnected, NotPermitted
from turngate.jetstream._hardened import HardenedClient
from turngate.jetstream._header_block import parse_headers
from turngate.jetstream._refusals import Refusals
from turngate.jetstream._wire import WireParser
from turngate.login import NOBODY, Login
from turngate_contracts.errors import PayloadTooLarge
from turngate_contracts.subjects import API

__all__ = [
    "HEADER_RESERVE",
    "LAST_WORDS_S",
    "OUTBOUND_LIMIT",
    "ApiError",
    "Connection",
    "Listener",
    "NoServer",
    "NotConnected",
    "NotPermitted",
    "connect",
    "parse_headers",
]

log = logging.getLogger(__name__)

Listener = Callable[[bytes, bytes, bytes, bytes], None]
"""Called from the read loop with (subject, reply, body, header block); it must not block and should not raise."""

HEADER_RESERVE: Final = 16 * 1024
"""Bytes below the server's max_payload that bodies keep free for headers."""
OUTBOUND_LIMIT: Final = 64 * 1024 * 1024
"""Bytes that may wait in the write buffer before a send is refused."""
WRITTEN_AHEAD: Final = 1024 * 1024
"""Bytes that may wait in the socket's own buffer before more is kept back."""
LAST_WORDS_S: Final = 2
"""How long an end waits for the server: to flush a last word, or to confirm an unsubscribe."""
READ_AT_ONCE: Final = 256 * 1024
"""Bytes that are read at once at most. Twice as many may wait to be handled before the socket is left alone; under TLS
it is asyncio's own 128 KiB, because nats-py sets no limit there."""

# nats-py has no option for it, but looks at its constant at each read. Its other clients in this process read as much.
nats.aio.client.DEFAULT_BUFFER_SIZE = READ_AT_ONCE


class Connection(HardenedClient):
    """A NATS connection that outlives malformed messages, server errors and restarts; made by `connect`."""

    api = API

    def __init__(self) -> None:
        super().__init__()
        self.listeners: dict[int, Listener] = {}
        self._on_reconnect: list[Callable[[], None]] = []
        self._on_disconnect: list[Callable[[], None]] = []
        self._write_due = False
        self._ps = WireParser(self)
        self.refusals = Refusals()
        self._was_connected = False
        self.closed_for_good = asyncio.Event()

    # The fast path

    async def listen(self, subject: str, listener: Listener, queue: str = "") -> Subscription:
        """Subscribe with a callback that runs in the read loop; the subscription survives reconnects.

        Raises:
            NotPermitted: the server refuses the subscription. While disconnected it is not asked, and its refusal is
                only logged.
        """
        # `subscribe` takes this id before it first waits: no message can come before the listener is known.
        upcoming = self._sid + 1
        self.listeners[upcoming] = listener
        try:
            subscription = await self.subscribe(subject, queue=queue)
            if self.is_connected:
                # A refusal comes before the confirmation, and nothing else tells of it.
                with contextlib.suppress(nats.errors.Error, OSError):
                    await self.flush(timeout=LAST_WORDS_S)
            if self.refusals.take_subscription(subject):
                self._remove_sub(subscription._id)
                raise NotPermitted("subscribe to", subject)
        except BaseException:
            self.listeners.pop(upcoming, None)
            raise
        return subscription

    async def unlisten(self, subscription: Subscription) -> None:
        """End a subscription made by `listen`; what the server had sent by then still reaches the listener."""
        try:
            with contextlib.suppress(nats.errors.Error, OSError):
                await subscription.unsubscribe()
                if self.is_connected:
                    await self.flush(timeout=LAST_WORDS_S)
        finally:
            self.listeners.pop(subscription._id, None)

    async def finish(self, subscription: Subscription) -> None:
        """Have a subscription get nothing more, and wait until what the server had sent it is handled."""
        await self._send_unsubscribe(subscription._id)
        await self.flush(timeout=LAST_WORDS_S)
        await subscription._pending_queue.join()

    def send(self, subject: str, body: bytes, reply: str = "", headers: bytes = b"") -> None:
        """Publish without waiting.

        Args:
            subject: where to; built from checked ids by the contracts.
            body: the payload, bytes.
            reply: where an answer should go.
            headers: an encoded header block, or nothing.

        Raises:
            NotConnected: the connection is down or its write buffer is full.
            PayloadTooLarge: body and headers together exceed the server's max_payload.
        """
        if not self.is_connected or self._pending_data_size > OUTBOUND_LIMIT:
            raise NotConnected(f"a message to {subject}", self.refusals.identity)
        size = len(headers) + len(body)
        if size > self._max_payload:
            raise PayloadTooLarge(f"a message to {subject}", size, self._max_payload)
        if headers:
            line = f"HPUB {subject} {reply} {len(headers)} {size}\r\n".encode()
        else:
            line = f"PUB {subject} {reply} {size}\r\n".encode()
        self._pending += (line, headers, body, b"\r\n")
        self._pending_data_size += len(line) + size + 2
        self._write_soon()

    def acknowledge(self, reply: bytes, word: bytes) -> None:
        """Send an acknowledgement, which every message gets, at the cost of its bytes.

        Raises:
            NotConnected: the connection is down or its write buffer is full.
        """
        if not self.is_connected or self._pending_data_size > OUTBOUND_LIMIT:
            raise NotConnected("an acknowledgement", self.refusals.identity)
        line = b"PUB %b %d\r\n%b\r\n" % (reply, len(word), word)
        self._pending.append(line)
        self._pending_data_size += len(line)
        self._write_soon()

    @property
    def body_limit(self) -> int:
        """Largest body to send, in bytes: the server's max_payload less the reserve for headers."""
        return self._max_payload - HEADER_RESERVE

    @property
    def server_info(self) -> dict[str, Any]:
        """What the server said of itself when it greeted us."""
        return dict(self._server_info)

    @property
    def server_id(self) -> str:
        """The id of the server that answers; it has another one after each start."""
        return str(self._server_info.get("server_id", ""))

    def on_reconnect(self, callback: Callable[[], None]) -> None:
        """Have `callback` called after each reconnect; it must only enqueue."""
        self._on_reconnect.append(callback)

    def on_disconnect(self, callback: Callable[[], None]) -> None:
        """Have `callback` called when the connection is lost; it must only enqueue."""
        self._on_disconnect.append(callback)

    def on_refused_publish(self, callback: Callable[[str], None]) -> None:
        """Have `callback` called with the lower-case subject of each publish that permissions refused."""
        self.refusals.callbacks.append(callback)

    def forget(self, callback: Callable[..., None]) -> None:
        """Have `callback` called no more; one that is not known is left alone."""
        for callbacks in (self._on_reconnect, self._on_disconnect, self.refusals.callbacks):
            with contextlib.suppress(ValueError):
                callbacks.remove(callback)

    async def close(self) -> None:
        """Send what still waits and close for good; a server that reads no more is not waited for."""
        self._closing = True
        deadline = asyncio.get_running_loop().call_later(LAST_WORDS_S, self._abort_socket)
        try:
            with contextlib.suppress(OSError, RuntimeError):  # the server went away before its client
                if self.is_connected and self._transport is not None:
                    self._write_out()
                    await self._transport.drain()  # type: ignore[no-untyped-call]
            self._drop_pending()
            await super().close()
            attempt = self._reconnection_task
            if attempt is not None and not attempt.done() and attempt is not asyncio.current_task():
                attempt.cancel()
                await asyncio.wait({attempt}, timeout=LAST_WORDS_S)
        finally:
            deadline.cancel()

    # nats-py's hooks

    async def _send_ping(self, future: "asyncio.Future[Any] | None" = None) -> None:
        self._write_out()
        await super()._send_ping(future)

    def _write_soon(self) -> None:
        # Behind what the loop is doing now: all that one read makes us send leaves in one piece.
        if not self._write_due:
            self._write_due = True
            asyncio.get_running_loop().call_soon(self._write_behind)

    def _write_behind(self) -> None:
        self._write_due = False
        if not self._pending or not self.is_connected:
            return
        writer = self._socket()
        if writer is not None and writer.transport.get_write_buffer_size() < WRITTEN_AHEAD:
            self._write_out()
        elif self._flush_queue is not None and self._flush_queue.empty():
            # The socket is slow: nats-py's flusher waits for it.
            self._flush_queue.put_nowait(asyncio.get_running_loop().create_future())

    def _write_out(self) -> None:
        if self._pending and self._transport is not None:
            # One buffer: a system call takes a limited number of pieces, and each costs its own bookkeeping.
            with contextlib.suppress(OSError, RuntimeError):  # uvloop's, for a socket that is gone; reading tells of it
                self._transport.write(b"".join(self._pending))
            self._drop_pending()

    def _drop_pending(self) -> None:
        self._pending = []
        self._pending_data_size = 0

    async def _handle_error(self, error: Exception) -> None:
        if not isinstance(error, (ConnectionError, nats.errors.UnexpectedEOF)):
            self.refusals.note(str(error) or type(error).__name__)
            if self.refusals.identity and not self._was_connected:
                raise error  # asking again would not help whoever waits for the first connection

    async def _handle_disconnected(self) -> None:
        self._drop_pending()
        _call_each(self._on_disconnect)

    async def _handle_reconnected(self) -> None:
        log.info("reconnected to the NATS server")
        self.refusals.identity = ""
        _call_each(self._on_reconnect)

    async def _handle_closed(self) -> None:
        self.closed_for_good.set()


async def connect(url: str, *, name: str = "turngate", timeout_ms: int = 5000, login: Login = NOBODY) -> Connection:
    """Connect to a NATS server or cluster.

    Args:
        url: `nats://host:port`, or several separated by commas.
        name: what the server's monitoring shows for this connection.
        timeout_ms: how long the first connection may take.
        login: who connects, and whom it trusts.

    Raises:
        NoServer: nobody answered in time, or (IdentityRefused, TlsFailed) client and server do not trust one another.
        CredentialsUnusable, CrashPointUnknown: a file that `login` names, or TURNGATE_CRASH_AT, can't be used.
    """
    connection = Connection()
    if os.environ.get("TURNGATE_CRASH_AT"):
        from turngate.jetstream.crash import CrashingConnection

        connection = CrashingConnection()
    connection.api = login.api()
    servers = [part.strip() for part in url.split(",") if part.strip()]
    if not servers:
        raise NoServer(url, "the URL is empty")
    try:
        async with asyncio.timeout(timeout_ms / 1000):
            await connection.connect(
                servers=servers,
                name=name,
                inbox_prefix=login.inbox().encode(),
                **login.options(),
                error_cb=connection._handle_error,
                disconnected_cb=connection._handle_disconnected,
                reconnected_cb=connection._handle_reconnected,
                closed_cb=connection._handle_closed,
                ping_interval=5,
                max_outstanding_pings=2,
                max_reconnect_attempts=-1,
                # Spread over processes, or a restarted server meets all of them in the same instant.
                reconnect_time_wait=random.uniform(0.5, 2.0),  # type: ignore[arg-type]  # noqa: S311
                connect_timeout=2,
                pending_size=-1,
            )
    except (TimeoutError, OSError, nats.errors.Error) as error:
        reason = str(connection.last_error or error) or type(error).__name__
        with contextlib.suppress(Exception):
            await connection.close()
        raise NoServer.because(url, reason.removeprefix("nats: "), login) from None
    connection._was_connected = True
    return connection


def _call_each(callbacks: list[Callable[..., None]], *arguments: str) -> None:
    for callback in list(callbacks):
        try:
            callback(*arguments)
        except Exception:  # a callback that raises would leave nats-py reconnecting for ever
            log.exception("a connection callback failed")
