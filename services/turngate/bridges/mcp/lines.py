"""Lines of a stdio client that the SDK can't read: it drops them, and a client that sent a call would wait for ever.

Programs send lone halves of surrogate pairs, as of an emoji that a model cut in two, as escapes that are no Unicode.
They become replacement characters. A request that can't be read all the same, as one that is nested too deep, is
answered with an error.
"""

import json
import re
from types import TracebackType
from typing import Any, Final, Self

import anyio
from mcp.shared._stream_protocols import ReadStream, WriteStream
from mcp.shared.message import SessionMessage
from mcp_types import INVALID_REQUEST, ErrorData, JSONRPCError, jsonrpc_message_adapter
from pydantic import ValidationError

_HALF: Final = re.compile("[\ud800-\udfff]")
_REPLACEMENT: Final = "\ufffd"
_UNREADABLE: Final = "the request can't be read: send JSON of at most 100 levels, in UTF-8"

Item = SessionMessage | Exception


class ReadLines:
    """The stream of a client's messages, with those repaired that can be, and the rest of the requests answered."""

    def __init__(self, read: ReadStream[Item], write: WriteStream[SessionMessage]) -> None:
        self._read = read
        self._write = write

    @property
    def last_context(self) -> Any:
        """The context of the sender of the last message."""
        return getattr(self._read, "last_context", None)

    async def receive(self) -> Item:
        """Return the next message; ends as the stream behind it."""
        while True:
            item = await self._read.receive()
            again = read_again(item) if isinstance(item, ValidationError) else None
            if not isinstance(again, JSONRPCError):
                return again or item
            await self._write.send(SessionMessage(again))

    async def aclose(self) -> None:
        """Close the stream."""
        await self._read.aclose()

    def __aiter__(self) -> Self:
        """Return the stream itself."""
        return self

    async def __anext__(self) -> Item:
        """Return the next message."""
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        """Open the stream."""
        await self._read.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        """Close the stream."""
        return await self._read.__aexit__(kind, error, trace)


def read_again(error: ValidationError) -> SessionMessage | JSONRPCError | None:
    """Return the message of a line that is no JSON for the SDK, or what its sender is told; None for no request."""
    first = error.errors(include_url=False, include_context=False)[0]
    if first["type"] != "json_invalid":
        return None
    try:
        message = json.loads(first["input"])
        text = _HALF.sub(_REPLACEMENT, json.dumps(message, ensure_ascii=False))
    except (ValueError, TypeError, RecursionError):
        return None
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(text, by_name=False))
    except ValidationError:
        asked = message.get("id") if isinstance(message, dict) and "method" in message else None
        if not isinstance(asked, int | str) or isinstance(asked, bool):
            return None
        return JSONRPCError(
            jsonrpc="2.0",
            id=_HALF.sub(_REPLACEMENT, asked) if isinstance(asked, str) else asked,
            error=ErrorData(code=INVALID_REQUEST, message=_UNREADABLE),
        )
