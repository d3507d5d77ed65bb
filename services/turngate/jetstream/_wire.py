"""Taking what the server sends apart: messages for listeners in one pass, everything else as nats-py does it.

nats-py matches patterns, moves a buffer and awaits a coroutine for each message, which costs more than our rules do.
Here a line is found and split, and its listener called. Control lines and messages for nats-py's own subscriptions go
to nats-py.
"""

from typing import TYPE_CHECKING, Final

from nats.errors import ProtocolError
from nats.protocol.parser import Parser

from turngate_contracts.errors import shown

if TYPE_CHECKING:
    from turngate.jetstream.connect import Connection

_LINE_END: Final = b"\r\n"
_M: Final = ord("M")
_H: Final = ord("H")


class WireParser(Parser):
    """The parser of a connection, in place of nats-py's."""

    def __init__(self, connection: "Connection") -> None:
        self._connection = connection
        self._rest = bytearray()
        self._missing = 0
        self._resets = 0
        super().__init__(connection)

    def reset(self) -> None:
        """Forget what was read of a message: its rest will not come."""
        super().reset()
        self._rest.clear()
        self._missing = 0
        self._resets += 1

    async def parse(self, data: bytes = b"") -> None:
        """Handle what was read from the socket.

        Raises:
            Exception: this is not NATS's protocol; the connection has to be made anew.
        """
        if self._rest:
            # A large message comes in many pieces; they are looked at once, when all of them are there.
            self._rest += data
            self._missing -= len(data)
            if self._missing > 0:
                return
            data = bytes(self._rest)
            self._rest.clear()
        self._missing = 0
        connection, resets = self._connection, self._resets
        at, end = 0, len(data)
        while at < end:
            at, line_end = self._messages(data, at)
            if line_end < 0:
                break
            if data[at] == _M or data[at] == _H:
                sid, subject, reply, head, body, after = _frame(data, at, line_end)
                await connection._process_msg(sid, subject, reply, data[body : after - 2], data[head:body])
            else:
                after = line_end + 2
                await super().parse(data[at:after])
            if self._resets != resets:
                return  # what follows came on a connection that is no more
            at = after
        self._rest += data[at:]

    def _messages(self, data: bytes, at: int) -> tuple[int, int]:
        """Tell listeners their messages, and return where what is none begins and where its first line ends.

        The line ends at -1 where the chunk ends before it, or before its message does.
        """
        connection = self._connection
        listeners = connection.listeners
        end = len(data)
        while at < end:
            line_end = data.find(_LINE_END, at)
            if line_end < 0 or (data[at] != _M and data[at] != _H):
                return at, line_end
            sid, subject, reply, head, body, after = _frame(data, at, line_end)
            if after > end:
                self._missing = after - end
                return at, -1
            listener = listeners.get(sid)
            if listener is None:
                return at, line_end
            try:
                listener(subject, reply, data[body : after - 2], data[head:body])
            except Exception as error:  # noqa: BLE001  one bad message must not end the read loop
                connection.drop_malformed(subject, error)
            at = after
        return at, -1


def _frame(data: bytes, at: int, line_end: int) -> tuple[int, bytes, bytes, int, int, int]:
    """Return a message's subscription, subject and reply, and where its headers, its body and what follows begin."""
    words = data[at:line_end].split(b" ")
    head = body = line_end + 2
    end = head + int(words[-1])
    count = len(words)
    if data[at] == _H:
        # HMSG subject sid [reply] header-size size
        body += int(words[-2])
        count -= 1
    if not head <= body <= end:
        raise ProtocolError(f"nats: a message cannot be of such sizes: {shown(data[at:line_end])}")
    # MSG subject sid [reply] size
    return int(words[2]), words[1], words[3] if count == 5 else b"", head, body, end + 2
