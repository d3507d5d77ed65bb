"""Reading a subject's newest message from its stream's leader, in a cluster.

A direct get may be answered by any replica, also by one that is behind: a session whose verdict was told could be
unknown to who asks next. What comes back here looks as if it came from a direct get, so that nobody need know.
"""

from typing import Final

import msgspec
from msgspec import Struct

from turngate.jetstream.connect import ApiError, Connection
from turngate.jetstream.direct import NotServed
from turngate.jetstream.request import OnReply, Reply, Requester
from turngate_contracts.errors import Unavailable

TIMEOUT_MS: Final = 2_000
_NOT_FOUND: Final = 10037
_NOTHING: Final = b"NATS/1.0 404 Message Not Found\r\n\r\n"


class _Found(Struct):
    subject: str = ""
    seq: int = 0
    hdrs: bytes = b""
    data: bytes = b""
    time: str = ""


class _Answer(Struct):
    message: _Found | None = None
    error: ApiError | None = None


_decode = msgspec.json.Decoder(_Answer).decode


def is_needed(connection: Connection) -> bool:
    """Say whether there may be replicas that are behind: whether the server belongs to a cluster."""
    return bool(connection.server_info.get("cluster"))


def read_newest_nowait(requester: Requester, stream: str, subject: str, on_reply: OnReply) -> None:
    """Have `on_reply` called with the newest message of a subject as a direct get's reply; never raises."""

    def on_answer(reply: Reply | Exception) -> None:
        on_reply(reply if isinstance(reply, Exception) else _as_direct(stream, reply))

    wanted = msgspec.json.encode({"last_by_subj": subject})
    # Less than what a client waits for its service: it learns then that the stream has no leader at the moment.
    requester.request_nowait(f"$JS.API.STREAM.MSG.GET.{stream}", wanted, on_answer, timeout_ms=TIMEOUT_MS)


def _as_direct(stream: str, reply: Reply) -> Reply | Exception:
    try:
        answer = _decode(reply.body)
    except msgspec.DecodeError:
        return NotServed(stream, reply)
    found = answer.message
    if answer.error is not None and answer.error.err_code == _NOT_FOUND:
        return Reply(b"", _NOTHING)
    if found is None:
        reason = "nothing" if answer.error is None else answer.error.description
        return Unavailable(f"the leader of {stream} answered a read with {reason}; ask again")
    place = (
        f"Nats-Stream: {stream}\r\nNats-Subject: {found.subject}\r\n"
        f"Nats-Sequence: {found.seq}\r\nNats-Time-Stamp: {found.time}\r\n\r\n"
    )
    return Reply(found.data, (found.hdrs[:-2] or b"NATS/1.0\r\n") + place.encode())
