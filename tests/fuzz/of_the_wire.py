"""Targets: what comes over NATS. Messages of every kind, errors, header blocks, the protocol itself, dead letters."""

import contextlib
import io
from typing import Any, Final

from nats.errors import ProtocolError

from tests.fuzz.target import check_sentence, finished, same_again
from turngate.cli import dead_shown
from turngate.deadletter import advisories
from turngate.jetstream._header_block import parse_headers
from turngate.jetstream._wire import WireParser
from turngate.jetstream.direct import NotServed
from turngate.jetstream.request import Reply
from turngate.tracing import trace_parent_of
from turngate_contracts import codec
from turngate_contracts.dead import DeadFound, DeadLetter
from turngate_contracts.errors import ErrorBody, ErrorCode, InvalidMessage, refusal_of
from turngate_contracts.messages import SCHEMAS

_SHOWN_MAX: Final = 64 * 1024
_LISTENED: Final = 7


def message(data: bytes) -> None:
    """Each message of the catalogue is read, written and read again as the same; what is none is a bounded error."""
    for kind in SCHEMAS:
        try:
            found = codec.decode(data, kind, f"a {kind.__name__}")
        except InvalidMessage as error:
            check_sentence(error.message)
            codec.encode(error.body())
            continue
        same_again(found)
        if isinstance(found, ErrorBody):
            # As an SDK raises what a service answered.
            same_again(refusal_of(found).body())


def advisory(data: bytes) -> None:
    """What the server says of a message that nobody could handle is read, or is a bounded error."""
    try:
        found = advisories.read(data)
    except InvalidMessage as error:
        check_sentence(error.message)
        return
    for subject in ("$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.S.C", "$JS.EVENT.ADVISORY.CONSUMER.MSG_TERMINATED.S.C"):
        reason = advisories.reason_of(subject, found)
        same_again(reason)


def headers(data: bytes) -> None:
    """A header block has a status of three digits or none; whatever is malformed is left out."""
    status, fields = parse_headers(data)
    assert 0 <= status <= 999
    for name, value in fields.items():
        (name + value).encode()
    assert len(trace_parent_of(data)) in (0, 55)
    check_sentence(NotServed("S", Reply(b"s", b"", data)).message)


def wire(data: bytes) -> None:
    """What the server sends means the same wherever its pieces break, and reading it ends."""
    whole = _read(data)
    half = len(data) // 2
    for pieces in ((data[:half], data[half:]), tuple(data[at : at + 5] for at in range(0, len(data), 5))):
        assert _read(*pieces) == whole


def dead_letter(data: bytes) -> None:
    """A dead letter is shown without a control character of its own, whatever its body and its names are."""
    text = data.decode("utf-8", "replace")
    code = ErrorCode.INVALID_MESSAGE
    letter = DeadLetter(
        text, 1, text, ErrorBody(code, text), 1, 0, data, text, len(data), {text: text}, text, first=text
    )
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        dead_shown.letter(DeadFound(letter, 1), as_json=False)
    assert len(shown.getvalue()) <= _SHOWN_MAX + 20 * len(text) * 10
    assert all(line.isprintable() for line in shown.getvalue().split("\n")), shown.getvalue()


class _Endless(BaseException):
    """More came out than went in."""


class _Server:
    """Stands for the connection: notes what its parser tells it."""

    def __init__(self, most: int) -> None:
        self.listeners = {_LISTENED: self._on_message}
        self.told: list[Any] = []
        self._most = most

    def note(self, *what: Any) -> None:
        self.told.append(what)
        if len(self.told) > self._most:
            raise _Endless

    def drop_malformed(self, subject: bytes, error: Exception) -> None:
        self.note("dropped", subject, type(error))

    def _on_message(self, subject: bytes, reply: bytes, body: bytes, head: bytes) -> None:
        self.note("listened", subject, reply, body, head)

    async def _process_msg(self, sid: int, subject: bytes, reply: bytes, body: bytes, head: bytes | None) -> None:
        self.note("message", sid, subject, reply, body, head or b"")

    async def _process_err(self, text: str) -> None:
        self.note("error", text)

    async def _process_ping(self) -> None:
        self.note("ping")

    async def _process_pong(self) -> None:
        self.note("pong")

    async def _process_info(self, info: Any) -> None:
        self.note("info", info)


def _read(*pieces: bytes) -> tuple[list[Any], bool]:
    """Return what was told, and whether it ended in an error: the connection is then made anew."""
    server = _Server(sum(map(len, pieces)) + 1)
    parser = WireParser(server)  # type: ignore[arg-type]
    try:
        for piece in pieces:
            finished(parser.parse(piece))
    except (ProtocolError, ValueError, IndexError, RecursionError):
        return server.told, True
    return server.told, False
