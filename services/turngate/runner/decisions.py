"""How a client learns what became of its reports and endings: by mailbox, and when that is silent by asking.

The mailbox is a nudge, which is listened to all the time; `get` is the truth. A message that nobody knows is published
again, after a wait that doubles: a service that is behind must not be given more to do.
"""

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from turngate import tracing
from turngate.jetstream.connect import Connection
from turngate.runner.calls import RETRY_S, Calls, ClientClosed, Stored
from turngate.tracing import Span
from turngate_contracts import codec
from turngate_contracts import messages as m
from turngate_contracts.errors import ErrorCode, Overloaded, PayloadTooLarge, Refusal, Unavailable, refusal_of
from turngate_contracts.headers import SCHEMA, block
from turngate_protocol.report.session import Outcome

GET_AFTER_MS: Final = (2_000, 4_000, 8_000, 15_000)
"""How long a verdict may take by mailbox before the truth is asked for, each time that it was published; the last
repeats."""

_ADVICE: Final = {
    Stored.NOT_STORED: "it is not stored: send it again",
    Stored.UNKNOWN: "it may be stored: ask `get`, and send it again if it is not known there",
    Stored.STORED: "it was stored: ask `get` later, and send it again if it is not known there",
}

Key = tuple[str, str, int, int]
"""`report` or `ending`, the session, the turn, and the number of the attempt or ending."""
Get = Callable[[Key, str], Awaitable[m.TurnFound]]


class VerdictTimeout(Unavailable):
    """No verdict in time. `stored` says what is known of the message: not stored, unknown, or stored once.

    Sending the same again is harmless in each case.
    """

    def __init__(self, what: str, stored: Stored, timeout_ms: int) -> None:
        super().__init__(f"no outcome of {what} within {timeout_ms} ms; {_ADVICE[stored]}", stored=stored.value)
        self.stored = stored


class Decisions:
    """The reports and endings of one client that wait for what becomes of them."""

    def __init__(self, connection: Connection, calls: Calls, get: Get) -> None:
        self._connection = connection
        self._calls = calls
        self._get = get
        # Two calls may submit different content under one number: each waits for what became of its own.
        self._waiting: dict[Key, list[tuple[str, asyncio.Future[Any]]]] = {}

    async def of(
        self,
        subject: str,
        message: m.ReportSubmitted | m.TurnEnded,
        key: Key,
        what: str,
        timeout_ms: int,
        digest: str = "",
    ) -> m.Verdict | m.EndingVerdict:
        """Publish a message and return what became of it.

        Raises:
            Refusal, PayloadTooLarge, VerdictTimeout, Unavailable, ClientClosed: as `TurnClient.submit_report`.
        """
        facts = {"session": message.session, "turn": message.turn, "runner": message.runner}
        with Span("turngate.submit", tracing.current(), "producer", **facts):
            return await self._of(subject, message, key, what, timeout_ms, digest)

    async def _of(
        self, subject: str, message: m.ReportSubmitted | m.TurnEnded, key: Key, what: str, timeout_ms: int, digest: str
    ) -> m.Verdict | m.EndingVerdict:
        self._calls.check_open()
        body = codec.encode(message)
        if len(body) > self._connection.body_limit:
            raise PayloadTooLarge(what, len(body), self._connection.body_limit)
        waiter: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        entry = (digest, waiter)
        self._waiting.setdefault(key, []).append(entry)
        fate = _Fate()
        waits_ms = itertools.chain(GET_AFTER_MS, itertools.repeat(GET_AFTER_MS[-1]))
        head = block({SCHEMA: m.SCHEMAS[type(message)], **tracing.headers()})
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_ms / 1000
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                while True:
                    # Once stored, it is not refused: the intake may be full of what this message waits behind.
                    patience_s = 0 if fate.stored is Stored.STORED else max(0, deadline - loop.time() - RETRY_S)
                    try:
                        await self._calls.publish_until_stored(subject, body, head, fate.note, patience_s)
                    except Overloaded:
                        if fate.stored is not Stored.STORED:
                            raise
                    outcome = await self._outcome(waiter, key, digest, next(waits_ms))
                    if outcome is not None:
                        return outcome
        except TimeoutError:
            raise VerdictTimeout(what, fate.stored, timeout_ms) from None
        finally:
            waiters = self._waiting[key]
            waiters.remove(entry)
            if not waiters:
                del self._waiting[key]

    def close(self, error: ClientClosed) -> None:
        """Have everything that waits fail with `error`."""
        for waiters in self._waiting.values():
            for _digest, waiter in waiters:
                if not waiter.done():
                    waiter.set_result(error)

    def on_mail(self, kind: bytes, body: bytes) -> None:
        """Take in a mail; raises InvalidMessage for one that is none."""
        if kind == b"verdict":
            verdict = codec.decode(body, m.Verdict, "a Verdict")
            self._settle(("report", verdict.session, verdict.turn, verdict.attempt), verdict, verdict.digest)
        elif kind == b"ending":
            ended = codec.decode(body, m.EndingVerdict, "an EndingVerdict")
            self._settle(("ending", ended.session, ended.turn, ended.ending), ended)
        elif kind == b"refused":
            refused = codec.decode(body, m.Refusal, "a Refusal")
            what, number = ("report", refused.attempt) if refused.attempt else ("ending", refused.ending)
            self._settle((what, refused.session, refused.turn, number), refused, refused.digest)

    async def _outcome(
        self, waiter: "asyncio.Future[Any]", key: Key, digest: str, wait_ms: int
    ) -> m.Verdict | m.EndingVerdict | None:
        """Wait for the mailbox, then ask too; None when nobody knows the message, which is then published again."""
        await asyncio.wait([waiter], timeout=wait_ms / 1000)
        if not waiter.done():
            asking = asyncio.create_task(self._ask(key, digest))
            try:
                await asyncio.wait([waiter, asking], return_when=asyncio.FIRST_COMPLETED)
                if not waiter.done():
                    return asking.result()
            finally:
                asking.cancel()
                await asyncio.gather(asking, return_exceptions=True)
        return _raise_failure(waiter.result())

    async def _ask(self, key: Key, digest: str) -> m.Verdict | m.EndingVerdict | None:
        """Ask for the truth until somebody answers."""
        while True:
            try:
                found = await self._get(key, digest)
            except Refusal as error:
                if error.code is not ErrorCode.NOT_FOUND:
                    raise
                return None
            except Unavailable:
                await asyncio.sleep(RETRY_S)
                continue
            if found.refused is not None:
                raise refusal_of(found.refused)
            return found.verdict if key[0] == "report" else found.ended

    def _settle(self, key: Key, outcome: Struct, digest: str = "") -> None:
        for wanted, waiter in self._waiting.get(key, ()):
            if not waiter.done() and (not digest or wanted == digest):
                waiter.set_result(outcome)


class _Fate:
    """What is known of a message over all the times that it was published."""

    def __init__(self) -> None:
        self.stored = Stored.NOT_STORED

    def note(self, stored: Stored) -> None:
        # Whoever publishes again knows nothing of the times before.
        if self.stored is not Stored.STORED:
            self.stored = stored


def with_report(found: m.TurnFound) -> m.TurnFound:
    """Return what was found with the accepted report in its verdict; it came once, in the state."""
    verdict, current = found.verdict, found.state.current
    if verdict is None or verdict.outcome is not Outcome.ACCEPTED or verdict.turn != current.turn:
        return found
    return replace(found, verdict=replace(verdict, report=current.report))


def _raise_failure(outcome: Any) -> m.Verdict | m.EndingVerdict:
    if isinstance(outcome, ClientClosed):
        raise outcome
    if isinstance(outcome, m.Refusal):
        raise refusal_of(outcome.error)
    return outcome  # type: ignore[no-any-return]
