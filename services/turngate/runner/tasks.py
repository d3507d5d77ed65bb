"""Delegated tasks for a runner: tell that one ended, answer for its files, and read what was concluded.

A task is told once it is stored; from there on its conclusion needs this runner for one thing only, to say which of the
cited files exist. Telling it again is harmless, so a runner that is not sure tells it again.
"""

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from turngate import tracing
from turngate.jetstream.connect import Connection
from turngate.runner.calls import RETRY_S, Calls, Stored
from turngate.runner.stat import StatService
from turngate.tracing import Span
from turngate_contracts import codec
from turngate_contracts import tasks as t
from turngate_contracts.errors import ErrorCode, PayloadTooLarge, Refusal, Unavailable
from turngate_contracts.headers import SCHEMA, block
from turngate_contracts.ids import check_id
from turngate_contracts.messages import SCHEMAS
from turngate_contracts.subjects import Subjects
from turngate_protocol.conclusion import (
    BYTE_LIMITS,
    MAX_OUTPUT_BYTES,
    MAX_TAIL_BYTES,
    StartRecord,
    Task,
    keep_end,
)
from turngate_protocol.conclusion.parse import carriable
from turngate_protocol.conclusion.record import ConclusionPhase
from turngate_protocol.text import byte_length, cut_bytes

POLL_S: Final = (0.05, 0.1, 0.2, 0.5, 1.0)
"""How long a waiting client pauses before it asks again; the last pause repeats."""
TIMEOUT_MS: Final = 30_000


class TaskNotStored(Unavailable):
    """The task could not be stored in time; `stored` says whether it may be all the same. Tell it again."""

    def __init__(self, task: str, stored: Stored, timeout_ms: int) -> None:
        perhaps = "may not be" if stored is Stored.UNKNOWN else "is not"
        super().__init__(
            f"task {task} {perhaps} stored after {timeout_ms} ms; tell it again", task=task, stored=stored.value
        )
        self.stored = stored


class NotConcluded(Unavailable):
    """The conclusion was not there in time; it still will be, ask for it later."""

    def __init__(self, task: str, timeout_ms: int) -> None:
        super().__init__(f"task {task} was not concluded within {timeout_ms} ms; ask again later", task=task)


class StoredTask(Struct, frozen=True):
    """A task that is stored and will be concluded. `output_cut` is how many bytes of its output were left out."""

    session: str
    task: str
    output_cut: int = 0


class Tasks:
    """The tasks of one client."""

    def __init__(self, connection: Connection, calls: Calls, identity: str, pool: str, subjects: Subjects) -> None:
        self._connection = connection
        self._calls = calls
        self._identity = identity
        self._pool = pool
        self._subjects = subjects

    async def finish(
        self, session: str, task: Task, *, pool: str, start: StartRecord | None, timeout_ms: int
    ) -> StoredTask:
        """Tell that a task ended; see `TurnClient.finish_task`."""
        bounded = bound(task)
        pool = pool or self._pool
        message = t.TaskFinished(session, self._identity, pool, bounded, start)
        t.check_finished(message)
        body = codec.encode(message)
        if len(body) > self._connection.body_limit:
            raise PayloadTooLarge(f"task {task.id}", len(body), self._connection.body_limit)
        known = Stored.NOT_STORED

        def note(stored: Stored) -> None:
            nonlocal known
            known = stored

        subject = self._subjects.task_finished(pool, self._identity, session)
        span = Span("turngate.finish", tracing.current(), "producer", session=session, task=task.id)
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                with span:
                    head = block({SCHEMA: SCHEMAS[t.TaskFinished], **tracing.headers()})
                    patience_s = max(0, timeout_ms / 1000 - RETRY_S)
                    await self._calls.publish_until_stored(subject, body, head, note, patience_s)
        except TimeoutError:
            raise TaskNotStored(task.id, known, timeout_ms) from None
        return StoredTask(session, task.id, byte_length(task.output) - byte_length(bounded.output))

    async def serve_stat(self, roots: Iterable[str | Path]) -> StatService:
        """Answer for the files of this host; see `TurnClient.serve_stat`."""
        service = StatService(self._connection, self._subjects, self._identity, roots)
        await service.start()
        return service

    async def get(self, session: str, task: str, *, wait_ms: int = 0) -> t.ConclusionFound:
        """Return what is known of a task; see `TurnClient.conclusion`."""
        request = t.GetConclusion(check_id("session", session), check_id("task", task))
        loop = asyncio.get_running_loop()
        deadline = loop.time() + wait_ms / 1000
        tries = 0
        while True:
            try:
                found = await self._calls.call("conclusion.get", request, t.ConclusionFound)
            except Refusal as error:
                if error.code is not ErrorCode.NOT_FOUND or not wait_ms:
                    raise
            else:
                if not wait_ms or found.state.phase is not ConclusionPhase.RECEIVED:
                    return found
            pause = POLL_S[min(tries, len(POLL_S) - 1)]
            if loop.time() + pause > deadline:
                raise NotConcluded(task, wait_ms)
            tries += 1
            await asyncio.sleep(pause)

    async def page(
        self, cursor: int = 0, limit: int = 100, session: str = "", *, newest: bool = False
    ) -> t.ConclusionsPage:
        """Return a page of conclusions; see `TurnClient.conclusions`."""
        if session:
            check_id("session", session)
        request = t.ListConclusions(cursor, limit, session, newest)
        return await self._calls.call("conclusion.list", request, t.ConclusionsPage)


class FinishesTasks:
    """What a `TurnClient` does with delegated tasks."""

    tasks: Tasks

    async def finish_task(
        self,
        session: str,
        task: Task,
        *,
        pool: str = "",
        start: StartRecord | None = None,
        timeout_ms: int = TIMEOUT_MS,
    ) -> StoredTask:
        """Tell that a delegated task ended, and return once that is stored. Telling it again is harmless.

        A long output is bounded here: its end is kept, where the closing block is.

        Args:
            session: the session that delegated the task; its parent is told of the conclusion.
            task: the record: its state is completed, failed or cancelled; its facts come from the host.
            pool: the pool of that session, one of this identity's; the one it connected with by default.
            start: what was noted before the task began (`turngate.evidence.start_record`), for strict checking.
            timeout_ms: how long to try.

        Raises:
            TaskNotTerminal, InvalidId, IdentityMismatch, InvalidMessage, PayloadTooLarge: it was not sent.
            Overloaded: the intake was full all the time; `retry_after_ms` says when to try again.
            TaskNotStored: it could not be stored in time.
            ClientClosed: the client was closed.
        """
        return await self.tasks.finish(session, task, pool=pool, start=start, timeout_ms=timeout_ms)

    async def serve_stat(self, roots: Iterable[str | Path]) -> StatService:
        """Answer, until the client is closed, which files of this host exist: the gate asks for those that are cited.

        Args:
            roots: absolute paths of the directories that tasks work in; nothing is said of any file outside of them.

        Raises:
            RootUnusable: one of them is relative or no directory.
        """
        return await self.tasks.serve_stat(roots)

    async def conclusion(self, session: str, task: str, *, wait_ms: int = 0) -> t.ConclusionFound:
        """Return what is known of a task that ended.

        Args:
            session: the session that delegated it.
            task: its id.
            wait_ms: how long to wait until it is judged; 0 returns what is known now.

        Raises:
            Refusal: not_found, when nobody told that it ended and nothing is waited for.
            NotConcluded: it was not judged in time.
            Unavailable: nobody answered.
        """
        return await self.tasks.get(session, task, wait_ms=wait_ms)

    async def conclusions(
        self, cursor: int = 0, limit: int = 100, session: str = "", *, newest: bool = False
    ) -> t.ConclusionsPage:
        """Return a page of conclusions, the longest unchanged first, or with `newest` the last changed first.

        Go on with its `cursor` while it has `more`.
        """
        return await self.tasks.page(cursor, limit, session, newest=newest)


def bound(task: Task) -> Task:
    """Return `task` with its long texts within their limits, as they are and as JSON writes them.

    The ends of the outputs are kept, because the closing block comes last, and the starts of prompt and error. Other
    texts are left as they are: a name that is over its limit is a mistake, which is told.
    """
    texts: dict[str, Any] = {
        "prompt": cut_bytes(task.prompt, BYTE_LIMITS["prompt"]),
        "error": cut_bytes(task.error, BYTE_LIMITS["error"]),
        "output": _end(task.output, MAX_OUTPUT_BYTES),
        "output_tail": _end(task.output_tail, MAX_TAIL_BYTES),
    }
    return replace(task, **{name: carriable(text) for name, text in texts.items()})


def _end(text: str, limit: int) -> str:
    """Return the end of a text that has at most `limit` bytes, also with JSON's escapes."""
    kept = keep_end(carriable(text[-limit:]), limit)
    # Control characters take six bytes each; each round cuts by what the last one was over.
    while (size := len(codec.encode(kept)) - 2) > limit:
        kept = keep_end(kept, byte_length(kept) * limit // size)
    return kept
