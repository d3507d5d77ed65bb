"""The runner's side of the gate: which of the files that a conclusion cites are on this host.

One request asks about many paths. Looking runs in a thread, a few requests at a time, so that a slow disk delays
neither the runner nor its heartbeats; what is too much is refused, and asked again. `turngate.evidence` keeps to the
roots.
"""

import asyncio
import contextlib
import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import nats.errors
from msgspec import Struct
from nats.aio.subscription import Subscription

from turngate.evidence import Evidence
from turngate.jetstream.connect import Connection
from turngate_contracts import codec
from turngate_contracts.errors import STATUS, ErrorBody, ErrorCode, InvalidMessage, Refusal, TurngateError
from turngate_contracts.headers import SCHEMA, block
from turngate_contracts.messages import SCHEMAS
from turngate_contracts.subjects import Subjects
from turngate_contracts.tasks import MAX_STAT_BYTES, MAX_STAT_PATHS, PathsStated, StatPaths
from turngate_protocol.text import byte_length

log = logging.getLogger(__name__)

CONFIRM_S: Final = 5
MAX_AT_ONCE: Final = 4
"""How many requests are looked at together."""
MAX_WAITING: Final = 256
"""How many may wait; more are refused as overloaded and asked again."""


class StatService:
    """Answers for one runner; made by `TurnClient.serve_stat`. It ends with the connection, or by `stop`."""

    def __init__(self, connection: Connection, subjects: Subjects, runner: str, roots: Iterable[str | Path]) -> None:
        """Resolve the roots.

        Raises:
            RootUnusable: one of them is relative or no directory.
        """
        self.answered = 0
        self._connection = connection
        self._subject = subjects.runner_stat(runner)
        self._evidence = Evidence(roots)
        self._slots = asyncio.Semaphore(MAX_AT_ONCE)
        self._tasks: set[asyncio.Task[None]] = set()
        self._subscription: Subscription | None = None

    async def start(self) -> None:
        """Begin to answer; when it returns, the server knows."""
        self._subscription = await self._connection.listen(self._subject, self._on_request)
        # While the connection is down this fails, and the subscription is made with the next one.
        with contextlib.suppress(nats.errors.Error, OSError):
            await self._connection.flush(timeout=CONFIRM_S)

    async def stop(self) -> None:
        """Take no more requests and finish those under way."""
        if self._subscription is not None:
            await self._connection.unlisten(self._subscription)
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=5)

    def _on_request(self, _subject: bytes, reply: bytes, body: bytes, _head: bytes) -> None:
        to = reply.decode("utf-8", "replace")
        if not to:
            return
        if len(self._tasks) >= MAX_WAITING:
            self._send(to, ErrorBody(ErrorCode.OVERLOADED, "too many requests wait on this runner; ask again"))
            return
        task = asyncio.create_task(self._answer(to, body))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, to: str, body: bytes) -> None:
        try:
            request = _checked(codec.decode(body, StatPaths, "a StatPaths"))
            async with self._slots:
                answers = await asyncio.to_thread(self._evidence.look, request.paths, hashes=request.hash)
            self._send(to, PathsStated(request.session, request.task, tuple(answers)))
            self.answered += 1
        except TurngateError as error:
            self._send(to, error.body())
        except Exception as error:
            log.exception("looking for files failed")
            self._send(to, ErrorBody(ErrorCode.INTERNAL, type(error).__name__))

    def _send(self, to: str, message: Struct) -> None:
        fields = {SCHEMA: SCHEMAS[type(message)]}
        if isinstance(message, ErrorBody):
            fields["Nats-Service-Error"] = message.code.value
            fields["Nats-Service-Error-Code"] = str(STATUS[message.code])
        try:
            self._connection.send(to, codec.encode(message), headers=block(fields))
        except TurngateError as error:
            log.warning("an answer about files was not sent: %s", error)


def _checked(request: StatPaths) -> StatPaths:
    if len(request.paths) > MAX_STAT_PATHS:
        raise InvalidMessage(f"{len(request.paths)} paths were asked about; at most {MAX_STAT_PATHS} at a time")
    size = sum(map(byte_length, request.paths))
    # A single path may be as long as it likes: it is one that no file has.
    if size > MAX_STAT_BYTES and len(request.paths) > 1:
        raise Refusal(
            ErrorCode.PAYLOAD_TOO_LARGE, f"the paths have {size} bytes; at most {MAX_STAT_BYTES}", limit=MAX_STAT_BYTES
        )
    return request
