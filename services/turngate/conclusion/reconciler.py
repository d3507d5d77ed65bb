"""What a task's newest state wants outside of it: first that its evidence is looked for, then that its parent is told.

Each may be done twice with the same result. The first verdict that is saved stands, whoever looked; a prompt's id is
its task's, so that the parent's pool gets it once. Killed anywhere, the newest state still says what is to be done.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Final

from turngate import tracing
from turngate.clock import Clock
from turngate.conclusion.files import Files
from turngate.conclusion.handler import Rules
from turngate.conclusion.memory import Memories
from turngate.conclusion.metrics import Counters
from turngate.conclusion.projects import Projects
from turngate.jetstream.awaited import apply
from turngate.jetstream.keyed import Lanes, Save
from turngate.jetstream.request import Requester
from turngate.jetstream.store import Entry, Event
from turngate_contracts import codec
from turngate_contracts.errors import ErrorBody, ErrorCode, Refusal
from turngate_contracts.headers import SCHEMA, block
from turngate_contracts.messages import SCHEMAS, PromptQueued, SendPrompt
from turngate_contracts.subjects import Subjects
from turngate_protocol.conclusion import Project, RefState, RefsToCheck, StatAnswer
from turngate_protocol.conclusion.record import (
    PROMPT_KIND,
    Findings,
    ParentPrompt,
    PromptRefusal,
    TaskConclusion,
    judge,
    key_of,
    project_key,
    told,
    wants,
    wants_something,
)

log = logging.getLogger(__name__)

CALLER: Final = "conclusion"
"""Who this service is to the service that keeps turns."""
PROMPT_MS: Final = 5_000
_HEAD: Final = block({SCHEMA: SCHEMAS[SendPrompt]})
_FINAL: Final = frozenset({ErrorCode.POOL_MISMATCH, ErrorCode.INVALID, ErrorCode.INVALID_ID, ErrorCode.INVALID_MESSAGE})
"""Refusals of a prompt that no later try would change."""


class TaskEffects:
    """Performs what states want; `perform` is the reconcile loop's."""

    def __init__(
        self,
        requester: Requester,
        subjects: Subjects,
        lanes: Lanes[TaskConclusion],
        rules: Rules,
        files: Files,
        clock: Clock,
        counters: Counters,
        *,
        memories: Memories | None = None,
        projects: Projects | None = None,
    ) -> None:
        """Make them.

        Args:
            requester: the connection's requests.
            subjects: the namespace.
            lanes: the works of the bucket.
            rules: the operator's choices.
            files: where to look for files.
            clock: the process's clock.
            counters: what the process counts.
            memories: who knows memory refs; None where nobody was configured.
            projects: the project registry; None where none was configured.
        """
        self._requester = requester
        self._prompt_subject = subjects.api("turn.prompt", CALLER)
        self._lanes = lanes
        self._rules = rules
        self._files = files
        self._clock = clock
        self._counters = counters
        self._memories = memories
        self._projects = projects

    async def perform(self, entry: Entry) -> None:
        """Do what the newest state of a task wants, and record that it was done.

        Raises:
            Exception: something could not be done for now; it is done again later.
        """
        state = codec.decode(entry.value or b"", TaskConclusion, "a task's conclusion")
        wanted = wants(state, self._rules.gate)
        if wanted.look is not None:
            await self._judge(state, await self._look(state, wanted.look))
        elif wanted.prompt is not None:
            await self._told(state, await self._send(wanted.prompt))

    async def _look(self, state: TaskConclusion, refs: RefsToCheck) -> Findings:
        """Look for files, memory refs and the project at once."""
        files, memory, project = await asyncio.gather(
            self._files_of(state, refs.paths), self._memory_of(state, refs.memory_refs), self._project_of(state)
        )
        return Findings(files, memory, project)

    async def _files_of(self, state: TaskConclusion, paths: Sequence[str]) -> Mapping[str, StatAnswer]:
        if not paths:
            return {}
        noted = state.start.files.values() if state.start is not None else ()
        hashes = self._rules.gate.strict and any(answer.hash is not None for answer in noted)
        return await self._files.look(state, paths, hashes)

    async def _memory_of(self, state: TaskConclusion, refs: Sequence[str]) -> Mapping[str, RefState] | None:
        if self._memories is None:
            return None
        return await self._memories.check(state, refs) if refs else {}

    async def _project_of(self, state: TaskConclusion) -> Project | None:
        path = project_key(state.record)
        return await self._projects.find(path) if self._projects is not None and path else None

    async def _judge(self, state: TaskConclusion, findings: Findings) -> None:
        judged: list[TaskConclusion] = []

        def decide(newest: TaskConclusion | None) -> Save[TaskConclusion] | None:
            judged.clear()
            new = None if newest is None else judge(newest, findings, self._clock(), options=self._rules.gate)
            if new is not None:
                judged.append(new)
            return _save(new)

        await apply(self._lanes, key_of(state.session, state.task), decide)
        for new in judged:
            self._counters.count_judged(new)

    async def _send(self, prompt: ParentPrompt) -> PromptRefusal | None:
        """Have the parent's session prompted, held while its card waits; return why not, if it never will be."""
        request = SendPrompt(prompt.session, prompt.pool, prompt.id, prompt.text, PROMPT_KIND)
        head = block({SCHEMA: SCHEMAS[SendPrompt], **tracing.headers()}) if tracing.current() else _HEAD
        reply = await self._requester.request(self._prompt_subject, codec.encode(request), head, PROMPT_MS)
        if b"Nats-Service-Error" not in reply.head:
            codec.decode(reply.body, PromptQueued, "a PromptQueued")
            return None
        error = codec.decode(reply.body, ErrorBody, "an error")
        if error.code not in _FINAL:
            raise Refusal(error.code, error.message, **error.details)
        log.warning("session %s can't be told of its task: %s", prompt.session, error.message)
        return PromptRefusal(error.code.value, error.message)

    async def _told(self, state: TaskConclusion, refusal: PromptRefusal | None) -> None:
        def decide(newest: TaskConclusion | None) -> Save[TaskConclusion] | None:
            return _save(None if newest is None else told(newest, refusal, self._clock()))

        await apply(self._lanes, key_of(state.session, state.task), decide)
        self._counters.prompts["sent" if refusal is None else "refused"] += 1


def _save(new: TaskConclusion | None) -> Save[TaskConclusion] | None:
    return None if new is None else Save(new, Event(new.cause.type, new.cause.at, wants_something(new)))
