"""What a session's newest state wants outside of it: prompts for its pool, and its place in the inbox.

Each effect may be done twice with the same result: a prompt's subject takes one message for ever, and an inbox entry
knows the revision it came from. When all is done a revision without wants records it.
"""

import asyncio
from collections.abc import Awaitable
from typing import Final

from msgspec.structs import replace

from turngate import tracing
from turngate.clock import Clock
from turngate.jetstream.inbox import Inbox
from turngate.jetstream.keyed import Lanes, Save
from turngate.jetstream.request import STREAM_LIMIT, JetStreamError, Requester
from turngate.jetstream.store import Entry, Event
from turngate_contracts import codec
from turngate_contracts.errors import ErrorCode, Refusal
from turngate_contracts.headers import SCHEMA, block
from turngate_contracts.messages import SCHEMAS
from turngate_contracts.subjects import Subjects
from turngate_protocol.report.answering import Wants, settled, wants, wants_something
from turngate_protocol.report.session import Prompt, SessionTurns

_PROMPT: Final = block({SCHEMA: SCHEMAS[Prompt]})


class TurnEffects:
    """Performs what states want; `perform` is the reconcile loop's."""

    def __init__(
        self, requester: Requester, subjects: Subjects, lanes: Lanes[SessionTurns], inbox: Inbox, clock: Clock
    ) -> None:
        self._requester = requester
        self._subjects = subjects
        self._lanes = lanes
        self._inbox = inbox
        self._clock = clock

    async def perform(self, entry: Entry) -> None:
        """Do what the newest state of a session wants, then record that it was done.

        Raises:
            Exception: something could not be done for now; all of it is done again later.
        """
        await self._perform(codec.decode(entry.value or b"", SessionTurns, "a session's state"), entry.revision)

    def recall(self, session: str, revision: int) -> Awaitable[None] | None:
        """Do the same for a state that this process holds; None where it does not."""
        state = self._lanes.held(session, revision)
        return None if state is None else self._perform(state, revision)

    async def _perform(self, state: SessionTurns, revision: int) -> None:
        wanted = wants(state)
        for prompt in wanted.prompts:
            await self._send(state.pool, prompt)
        if wanted.inbox is not None:
            await self._inbox.show(wanted.inbox, revision)
        elif wanted.clears_inbox:
            await self._inbox.clear("card", state.session, revision)
        if settled(state, wanted, self._clock()) is not None:
            await self._record(state, wanted)

    async def _send(self, pool: str, prompt: Prompt) -> None:
        subject = self._subjects.prompt(pool, prompt.id)
        try:
            head = block({SCHEMA: SCHEMAS[Prompt], **tracing.headers()}) if tracing.current() else _PROMPT
            await self._requester.publish(subject, codec.encode(prompt), head)
        except JetStreamError as error:
            if error.err_code != STREAM_LIMIT:
                raise
            # The same refusal means "there is one" and "the stream is full": only the subject's own message tells.
            stream = self._subjects.stream("work")
            reply = await self._requester.request(f"$JS.API.DIRECT.GET.{stream}.{subject}")
            status = reply.headers()[0]
            if status:
                why = "is full" if status == 404 else f"can't say whether it holds it (status {status})"
                raise Refusal(ErrorCode.OVERLOADED, f"{stream} {why}; prompt {prompt.id} waits") from None

    async def _record(self, performed: SessionTurns, done: Wants) -> None:
        record = _Record(performed, done, self._clock)
        self._lanes.submit(record)
        await record.stored.wait()
        if record.error is not None:
            raise record.error


class _Record:
    """The revision that says what was done, on its way through the lanes."""

    def __init__(self, performed: SessionTurns, done: Wants, clock: Clock) -> None:
        self.key = performed.session
        self.likely_new = False
        self.stored = asyncio.Event()
        self.error: Exception | None = None
        self._op = performed.op
        self._trace_parent = tracing.current()
        self._done = done
        self._clock = clock

    def decide(self, state: SessionTurns | None) -> Save[SessionTurns] | None:
        if state is None:
            return None
        # A newer state may have shown another entry since: clearing that one is its own delivery's work.
        done = self._done if state.op == self._op else replace(self._done, clears_inbox=False)
        new = settled(state, done, self._clock())
        if new is None:
            return None
        event = Event(new.cause.type, new.cause.at, wants_something(new), self._trace_parent)
        return Save(new, event)

    def done(self, _state: SessionTurns | None, _revision: int) -> None:
        self.stored.set()

    def failed(self, error: Exception) -> None:
        self.error = error
        self.stored.set()
