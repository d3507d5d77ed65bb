"""Crash points: ways to have a process end at a named effect, for tests of what is lost or done twice then.

    TURNGATE_CRASH_AT=NAME[:N]      such as `save.turns.sent`, or `ack.validation.before:3`

Whatever a process does to others it sends over its one connection, so each effect has its points there. Its name says
what it is and to what (`effect_of`), and then where the process ends:

- `before`: nothing of it has left the process, and what was still to be written with it is lost too;
- `sent`: it is out, and whether it was taken will never be known here;
- `confirmed`: the answer to it has come, and nobody in the process has learned of it. What is never answered, such as
  an acknowledgement, has no such point.

The process ends the Nth time that it gets there, at once and with the exit code CRASHED, as SIGKILL would end it. Where
the variable is not set none of this is there: `connect` asks once, and makes a plain connection. Reading is no effect.
"""

import asyncio
import logging
import os
import re
from collections.abc import Mapping
from typing import Final, NoReturn

from msgspec import Struct
from nats.aio.subscription import Subscription

from turngate.jetstream.connect import Connection, Listener
from turngate_contracts.errors import ErrorCode, TurngateError, shown

log = logging.getLogger(__name__)

VARIABLE: Final = "TURNGATE_CRASH_AT"
CRASHED: Final = 86
"""The exit code of a process that ended where it was told to."""
UNNAMED: Final = "unnamed"
"""The effect that `effect_of` has no name for: a part of the system that it does not know."""

_FORM: Final = re.compile(
    r"(?P<effect>[a-z_]+(?:[.-][a-z_]+)*)\.(?P<step>before|sent|confirmed)(?::(?P<nth>[1-9]\d{0,8}))?"
)
_READING: Final = frozenset({"INFO", "LIST", "NAMES", "MSG.GET", "MSG.NEXT"})
_WORDS: Final = {b"+ACK": "ack", b"-NAK": "nak", b"+TER": "term"}
_OF_SUBJECT: Final = {"dead": "letter", "suspect": "suspect", "mark": "mark", "presence": "presence", "event": "event"}


class CrashPointUnknown(TurngateError):
    """TURNGATE_CRASH_AT names no point."""

    code = ErrorCode.INVALID_ARGUMENT

    def __init__(self, value: str) -> None:
        super().__init__(
            f"{VARIABLE}={shown(value)} must be EFFECT.before, EFFECT.sent or EFFECT.confirmed, such as"
            " save.turns.sent, or that and :N for the Nth time",
            field=VARIABLE,
        )


class CrashPoint(Struct, frozen=True):
    """Where a process ends: a step of an effect, the `nth` time."""

    effect: str
    step: str
    nth: int = 1


def planned(environment: Mapping[str, str]) -> CrashPoint:
    """Return where this process is to end.

    Raises:
        CrashPointUnknown: what was said is no point.
    """
    value = environment.get(VARIABLE, "")
    found = _FORM.fullmatch(value)
    if found is None:
        raise CrashPointUnknown(value)
    return CrashPoint(found["effect"], found["step"], int(found["nth"] or "1"))


class CrashingConnection(Connection):
    """A connection that ends its process at the point that the environment names.

    Raises:
        CrashPointUnknown: it names none.
    """

    def __init__(self) -> None:
        super().__init__()
        self._point = planned(os.environ)
        self._left = self._point.nth
        self._ending = False
        self._reached: set[str] = set()
        self._unconfirmed: dict[bytes, str] = {}
        self._asked: dict[str, str] = {}

    def send(self, subject: str, body: bytes, reply: str = "", headers: bytes = b"") -> None:
        """As of any connection, with the points around it."""
        if self._ending:
            return
        effect = effect_of(subject, body, headers, self._asked)
        self._asked.pop(subject, None)
        if not effect:
            super().send(subject, body, reply, headers)
            return
        if effect not in self._reached:
            self._reached.add(effect)
            log.info("reached effect %s", effect)
        if self._is_here(effect, "before"):
            _end(self._point)
        super().send(subject, body, reply, headers)
        if reply:
            self._unconfirmed[reply.encode()] = effect
        if self._is_here(effect, "sent"):
            self._ending = True
            self._write_out()
            self._end_once_written()

    def acknowledge(self, reply: bytes, word: bytes) -> None:
        """As of any connection, with the points around it."""
        self.send(reply.decode(), word)

    async def listen(self, subject: str, listener: Listener, queue: str = "") -> Subscription:
        """As of any connection; confirmations pass their points on the way to their listeners."""

        def on_message(to: bytes, reply: bytes, body: bytes, head: bytes) -> None:
            effect = self._unconfirmed.pop(to, "")
            if self._ending:
                return
            if effect and self._is_here(effect, "confirmed"):
                _end(self._point)
            listener(to, reply, body, head)

        return await super().listen(subject, on_message, queue)

    async def _process_msg(self, sid: int, subject: bytes, reply: bytes, data: bytes, headers: bytes) -> None:
        if self._ending:
            return
        parts = subject.decode("utf-8", "replace").split(".")
        if parts[1:2] == ["api"] and reply:
            self._asked[reply.decode()] = ".".join(parts[2:4])
        await super()._process_msg(sid, subject, reply, data, headers)

    def _is_here(self, effect: str, step: str) -> bool:
        if (effect, step) != (self._point.effect, self._point.step):
            return False
        self._left -= 1
        return self._left == 0

    def _end_once_written(self) -> None:
        # The process does nothing more; only what it had sent still has to reach the kernel.
        writer = self._socket()
        if writer is None or writer.transport.get_write_buffer_size() == 0:
            _end(self._point)
        asyncio.get_running_loop().call_later(0.001, self._end_once_written)


def effect_of(subject: str, body: bytes, headers: bytes, asked: Mapping[str, str]) -> str:
    """Return the name of what a message does to others; empty where it only reads, or says that work goes on.

    Args:
        subject: where it goes.
        body: what is in it.
        headers: its header block.
        asked: which request each reply subject answers.
    """
    parts = subject.split(".")
    match parts[0]:
        case "$KV":
            verb = "delete" if b"KV-Operation" in headers else "batch" if b"Nats-Batch-Id" in headers else "save"
            return f"{verb}.{parts[1].rpartition('_')[2]}"
        case "$JS":
            return _of_acknowledgement(parts, body) if parts[1] == "ACK" else _of_api(parts)
        case "$SRV":
            return ""
        case "_INBOX" | "_R_":
            return f"answer.{asked[subject]}" if subject in asked else UNNAMED
    return _of_namespace(parts[1:])


def _of_acknowledgement(parts: list[str], body: bytes) -> str:
    word = _WORDS.get(body[:4], "")
    # The longer form has a domain and an account before the stream.
    return f"{word}.{parts[3 if len(parts) == 9 else 5]}" if word else ""


def _of_api(parts: list[str]) -> str:
    match parts[1:]:
        case ["API", "STREAM" | "CONSUMER" as kind, "MSG" | "DURABLE" as first, second, *_]:
            verb = f"{first}.{second}"
        case ["API", "STREAM" | "CONSUMER" as kind, verb, *_]:
            pass
        case _:
            return ""
    return "" if verb in _READING else f"{kind}.{verb}".lower()


def _of_namespace(parts: list[str]) -> str:
    match parts:
        case ["work", _, "prompt", *_]:
            return "put.prompt"
        case ["work", _, "role", *_]:
            return "put.offer"
        case ["timer", where, kind, _]:
            return f"{'set' if where == 'at' else 'put'}.timer-{kind}"
        case ["to", _, kind]:
            return f"tell.{kind}"
        case ["api", group, name, *_]:
            return f"ask.{group}.{name}"
        case ["runner", _, "stat"]:
            return "ask.stat"
        case ["memory", "check"]:
            return "ask.memory"
        case ["turn" | "task" | "esm", kind, *_]:
            return f"put.{parts[0]}-{kind}"
        case [kind, *_] if kind in _OF_SUBJECT:
            return f"put.{_OF_SUBJECT[kind]}"
    return UNNAMED


def _end(point: CrashPoint) -> NoReturn:
    os.write(2, f"ended at crash point {point.effect}.{point.step}\n".encode())
    os._exit(CRASHED)
