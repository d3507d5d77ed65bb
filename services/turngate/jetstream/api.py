"""Requests that want an answer now: NATS micro services whose handlers only enqueue.

A micro endpoint handles one message at a time, so a handler takes the call and returns; the answer is sent when there
is one. Whatever goes wrong becomes an error reply with the micro error headers and a body `{code, message, details}`;
a traceback never reaches a caller.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

import nats.errors
import nats.micro
from msgspec import Struct
from nats.micro.request import Request
from nats.micro.service import Service

from turngate.jetstream.connect import Connection
from turngate.tracing import Span, well_formed
from turngate_contracts import codec
from turngate_contracts.errors import STATUS, ErrorBody, ErrorCode, PayloadTooLarge, TurngateError, Unavailable
from turngate_contracts.headers import SCHEMA, TRACE_PARENT, block
from turngate_contracts.ids import check_id
from turngate_contracts.messages import SCHEMAS
from turngate_contracts.subjects import Subjects, last_token

if TYPE_CHECKING:
    from turngate.metrics.watches import RequestWatch

log = logging.getLogger(__name__)

R = TypeVar("R", bound=Struct)

_ERROR_TEXT: Final = 200
_INTERNAL: Final = ErrorBody(ErrorCode.INTERNAL, "the service failed on this request; its log says why")
STOP_S: Final = 5.0
"""How long a stop waits for the requests that it has, and then for those under way."""


class Call:
    """One request: who asks (pinned by permissions), and how to answer. The first answer or error is the one."""

    __slots__ = ("_api", "_came", "_reply", "answered", "caller", "name", "pool", "span")

    def __init__(self, api: "Api", name: str, caller: str, reply: str, trace_parent: str = "") -> None:
        self.span = Span("turngate.request", trace_parent, "consumer", request=name, caller=caller)
        self._api = api
        self._came = api.now()
        self._reply = reply
        self.name = name
        self.caller = caller
        self.pool = ""
        self.answered = False

    def answer(self, message: Struct) -> None:
        """Send the answer."""
        try:
            body, head = codec.encode(message), block({SCHEMA: SCHEMAS[type(message)]})
        except Exception as error:  # noqa: BLE001  whoever waits must learn of it
            self.error(error)
        else:
            self._send(body, head, "ok")

    def error(self, error: Exception | ErrorBody) -> None:
        """Send an error; one that is not ours is logged and told as `internal`."""
        if isinstance(error, TurngateError):
            error = error.body()
        elif not isinstance(error, ErrorBody):
            log.error("a request of %s failed", self.caller, exc_info=error)
            error = _INTERNAL
        try:
            body = codec.encode(error)
        except Exception:
            log.exception("the details of an error %s can't be sent", error.code)
            error = ErrorBody(error.code, error.message)
            body = codec.encode(error)
        self._send(body, error_head(error), error.code.value)

    def _send(self, body: bytes, head: bytes, code: str) -> None:
        if self.answered:
            log.error("a request of %s was answered before; the second answer is not sent", self.caller)
            return
        self.answered = True
        self.span.end()
        if self._api.watch is not None:
            self._api.watch.answered(self.name, code, self._api.now() - self._came)
        self._api.send(self._reply, body, head)


def error_head(error: ErrorBody) -> bytes:
    """Return the headers of an error; they repeat its sentence for micro clients, in ASCII and without line breaks."""
    text = ascii(error.message)[1:-1][:_ERROR_TEXT]
    return block(
        {
            SCHEMA: SCHEMAS[ErrorBody],
            "Nats-Service-Error": text,
            "Nats-Service-Error-Code": str(STATUS[error.code]),
        }
    )


class Api:
    """The requests that one service answers, under one micro service name."""

    def __init__(self, connection: Connection, subjects: Subjects, service: Service) -> None:
        self._connection = connection
        self._subjects = subjects
        self._service = service
        self.watch: RequestWatch | None = None
        self.now = asyncio.get_running_loop().time
        self._tasks: set[asyncio.Task[None]] = set()

    @classmethod
    async def start(cls, connection: Connection, subjects: Subjects, name: str, version: str) -> "Api":
        """Register the micro service."""
        service = await nats.micro.add_service(
            connection, name=f"{subjects.namespace}-{name}", version=version, description=f"Turngate {name}"
        )
        return cls(connection, subjects, service)

    async def add(self, name: str, kind: type[R], handler: Callable[[Call, R], None], *, by_pool: bool = False) -> None:
        """Answer requests of one name, such as `turn.answer`; `handler` must not block and answers now or later.

        `by_pool` is for those whose subject names a pool before the caller.
        """
        text = f"a {kind.__name__}"

        async def on_request(request: Request) -> None:
            reply = request._msg.reply
            caller = last_token(request.subject)
            trace_parent = well_formed((request.headers or {}).get(TRACE_PARENT, ""))
            call = Call(self, name, caller, reply, trace_parent)
            try:
                check_id("caller", caller)
                if by_pool:
                    call.pool = check_id("pool", request.subject.split(".")[-2])
                with call.span.active():
                    handler(call, codec.decode(request.data or b"{}", kind, text))
            except Exception as error:  # noqa: BLE001  every failure is the caller's to know
                call.error(error)

        await self._service.add_endpoint(
            name=name.replace(".", "-"),
            subject=self._subjects.api_endpoint(name, by_pool=by_pool),
            handler=on_request,
            metadata={"request": SCHEMAS[kind]},
        )

    def run(self, call: Call, work: Any) -> None:
        """Run a coroutine for a call that needs to wait; what it returns is the answer, what it raises the error."""

        async def answer() -> None:
            try:
                call.answer(await work)
            except asyncio.CancelledError:
                call.error(Unavailable("the service stopped before it had an answer; ask again"))
                raise
            except Exception as error:  # noqa: BLE001  every failure is the caller's to know
                call.error(error)

        task = asyncio.create_task(answer())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def send(self, reply: str, body: bytes, head: bytes) -> None:
        """Send an answer, if somebody waits for it and the connection is up."""
        if not reply:
            return
        try:
            try:
                self._connection.send(reply, body, headers=head)
            except PayloadTooLarge as error:
                # Whoever waits must learn of it; asking again would not help.
                self._connection.send(reply, codec.encode(error.body()), headers=error_head(error.body()))
        except TurngateError as error:
            log.warning("an answer was not sent: %s", error)

    async def stop(self) -> None:
        """Take no more requests, and answer those that were taken: dropped ones would cost their callers a timeout."""
        with contextlib.suppress(TimeoutError, OSError, nats.errors.Error):
            async with asyncio.timeout(STOP_S):
                for endpoint in self._service._endpoints:
                    if endpoint._subscription is not None:
                        await self._connection.finish(endpoint._subscription)
                await self._service.stop()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=STOP_S)
        left = list(self._tasks)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
