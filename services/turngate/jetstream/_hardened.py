"""nats-py's client, hardened, for `connect`: what it does by itself when messages, sockets or servers fail.

Its methods stand in for nats-py's own, each for a reproduced reason:

- a header block, subject or reply that can't be decoded raises inside nats-py's read loop, which then stays silent
  while `is_connected` stays true; here it is logged, counted and dropped;
- a PONG that answers a cancelled `flush()` sets a done future and breaks the read loop; here it is dropped;
- any -ERR but a permission or stale-connection error closes nats-py's client for good; here it reconnects, except when
  the server no longer knows who we are;
- a read loop that ends by an error is not started again; here it reconnects;
- a peer that stopped reading keeps nats-py from closing the old socket, hence from reconnecting and from ending; here
  the socket is aborted;
- an attempt to reconnect that fails half way leaves its tasks and its socket behind; here they are ended;
- an attempt to reconnect may outlive its cancellation (Python 3.11's `wait_for` can swallow one), and then go on for
  ever on a closed connection; here it ends;
- a greeting that offers no TLS is taken as it is where TLS is wanted; here it is refused.
"""

import asyncio
import logging
from typing import Any

import nats.errors
from nats.aio.client import Client as NatsClient

from turngate.jetstream._connect_errors import NO_TLS, REFUSED_IDENTITY
from turngate_contracts.errors import shown

log = logging.getLogger(__name__)


class HardenedClient(NatsClient):
    """A client that outlives malformed messages, server errors and half-made attempts to reconnect."""

    def __init__(self) -> None:
        super().__init__()
        self.dropped_malformed = 0
        self._closing = False

    def drop_malformed(self, subject: bytes, error: Exception) -> None:
        """Log and count a message that can't be processed."""
        self.dropped_malformed += 1
        log.error("dropped a message on %s that can't be processed: %r", shown(subject), error)

    async def _process_msg(self, sid: int, subject: bytes, reply: bytes, data: bytes, headers: bytes) -> None:
        try:
            await super()._process_msg(sid, subject, reply, data, headers)
        except asyncio.CancelledError:
            raise
        except Exception as error:  # noqa: BLE001  one bad message must not end the read loop
            self.drop_malformed(subject, error)

    async def _process_pong(self) -> None:
        if self._pongs and self._pongs[0].done():
            self._pongs.pop(0)
            self._pongs_received += 1
            self._pings_outstanding = 0
            return
        await super()._process_pong()

    async def _process_err(self, err_msg: str) -> None:
        text = err_msg.lower()
        known = "permissions violation" in text or "stale connection" in text
        if known or any(reason in text for reason in REFUSED_IDENTITY):
            await super()._process_err(err_msg)
            return
        self._err = nats.errors.Error(f"nats: {err_msg}")
        log.error("the NATS server reported %s; reconnecting", shown(err_msg))
        await self._process_op_err(self._err)

    async def _read_loop(self) -> None:
        await super()._read_loop()
        task = self._reading_task
        if task is None or task is not asyncio.current_task() or task.cancelling():
            return
        if self.is_connected and not self.is_draining:
            log.error("reading from the NATS server failed; reconnecting")
            await self._process_op_err(nats.errors.Error("nats: reading failed"))

    async def _attempt_reconnect(self) -> None:
        writer = self._abort_socket()
        if writer is not None:
            # Shielded: a close in this moment would cancel the wait that it then waits for itself.
            await asyncio.shield(asyncio.gather(writer.wait_closed(), return_exceptions=True))
        await super()._attempt_reconnect()

    async def _connect_to_server(self, s: Any) -> None:
        self._abort_socket()
        self._end_if_closing()
        await super()._connect_to_server(s)

    async def _process_connect_init(self) -> None:
        for task in (self._reading_task, self._ping_interval_task, self._flusher_task):
            if task is not None:
                task.cancel()
        self._ps.reset()
        self._end_if_closing()
        await super()._process_connect_init()
        self._end_if_closing()

    def _connect_command(self) -> bytes:
        # Whoever stands between could leave TLS out of the greeting, and read everything.
        if self.options.get("tls") is not None and not self._server_info.get("tls_required"):
            raise nats.errors.Error(f"nats: {NO_TLS}")
        return super()._connect_command()

    def _end_if_closing(self) -> None:
        if not self._closing:
            return
        self._status = NatsClient.CLOSED
        self._abort_socket()
        for task in (self._reading_task, self._ping_interval_task, self._flusher_task):
            if task is not None:
                task.cancel()
        raise asyncio.CancelledError

    def _abort_socket(self) -> asyncio.StreamWriter | None:
        writer = self._socket()
        if writer is not None:
            writer.transport.abort()
        return writer

    def _socket(self) -> asyncio.StreamWriter | None:
        writer: asyncio.StreamWriter | None = getattr(self._transport, "_io_writer", None)
        return writer
