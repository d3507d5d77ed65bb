"""One role run on a host: from its claim to its result, with what is told to its agent and what is seen of it.

The agent runs in a task of its own. It is stopped by a cancel of the supervisor, by its deadline, or because the host
ends: first it is told, some seconds later its task is cancelled. Whatever an adapter does, a result comes of it.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from turngate.jetstream.consume import Delivery
from turngate.runner.adapters.base import Adapter, RoleResult, failed
from turngate_contracts.beats import MAX_PROGRESS, HeldRole
from turngate_contracts.esm import RoleOffer
from turngate_protocol.esm.classify import FailureKind
from turngate_protocol.esm.evidence import Evidence, EvidenceTracker, ToolEvent
from turngate_protocol.esm.roles import RoleRequest

log = logging.getLogger(__name__)

STOP_S: Final = 5.0
"""How long an agent may take to end after it was told to, and again after its task was cancelled."""
STEERING_KEPT: Final = 16
"""Messages that wait for an agent that takes none."""

HANDED_BACK: Final = "handed_back"
"""Why an agent is stopped whose role run another runner is to start anew."""


class Context:
    """What an adapter tells and learns; see `adapters.base.RoleContext`."""

    def __init__(self, work_dir: Path, on_progress: Callable[[], None] = lambda: None) -> None:
        self.cancelled = asyncio.Event()
        self.steering: asyncio.Queue[str] = asyncio.Queue(STEERING_KEPT)
        self.work_dir = work_dir
        self.last_progress = ""
        self._on_progress = on_progress
        self._tracker = EvidenceTracker()

    def tool_event(self, event: ToolEvent) -> None:
        """Count a tool event."""
        self._tracker.observe(event)

    def progress(self, text: str) -> None:
        """Keep the last line that the agent said; a beat tells it, soon."""
        line = sendable(" ".join(text.split()))[:MAX_PROGRESS]
        if line != self.last_progress:
            self.last_progress = line
            self._on_progress()

    def steer(self, message: str) -> None:
        """Leave a message for the agent; the oldest that it did not take makes room."""
        if self.steering.full():
            self.steering.get_nowait()
        self.steering.put_nowait(message)

    def evidence(self) -> Evidence:
        """Return the tool calls that were seen so far."""
        return self._tracker.summary()


class RoleRun:
    """One role run that this host has claimed or is claiming."""

    def __init__(self, offer: RoleOffer, claim: str, delivery: Delivery) -> None:
        self.offer = offer
        self.claim = claim
        self.delivery = delivery
        self.request: RoleRequest | None = None
        self.context: Context | None = None
        self.since = 0
        self.version = 0
        self.duration_ms = 0
        self.stop_reason = ""
        self._stop = asyncio.Event()

    def claimed(self, request: RoleRequest, since: int) -> None:
        """Note that the claim was won."""
        self.request = request
        self.since = since
        self.version = request.objective.version

    def stop(self, reason: str) -> None:
        """Have the agent stopped; the first reason is kept."""
        self.stop_reason = self.stop_reason or reason
        self._stop.set()

    def held(self) -> HeldRole:
        """Return what a beat says of it."""
        context = self.context
        return HeldRole(
            self.offer.session,
            self.offer.role_run,
            self.offer.role,
            self.offer.generation,
            self.claim,
            self.since,
            self.version,
            context.last_progress if context else "",
            context.evidence().tool_calls if context else 0,
        )

    async def run(
        self, adapter: Adapter, request: RoleRequest, work_dir: Path, on_progress: Callable[[], None]
    ) -> RoleResult:
        """Run the agent to its end and return how it ended; never raises but for the host's own cancellation."""
        context = self.context = Context(work_dir, on_progress)
        began = time.monotonic()
        agent = asyncio.create_task(_protected(adapter, request, context), name=f"turngate-{request.run_id}")
        try:
            return await self._watched(agent, context, request.deadline_ms)
        finally:
            self.duration_ms = int((time.monotonic() - began) * 1000)
            if not agent.done():
                agent.cancel()

    async def _watched(self, agent: "asyncio.Task[RoleResult]", context: Context, deadline_ms: int) -> RoleResult:
        stop = asyncio.create_task(self._stop.wait())
        try:
            timeout = deadline_ms / 1000 if deadline_ms > 0 else None
            await asyncio.wait({agent, stop}, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stop.cancel()
        if agent.done():
            return agent.result()
        kind, message = FailureKind.DEADLINE, f"it did not end within {deadline_ms} ms"
        if self._stop.is_set():
            kind, message = FailureKind.CANCELLED, f"it was stopped: {self.stop_reason}"
        context.cancelled.set()
        for _ in range(2):
            await asyncio.wait({agent}, timeout=STOP_S)
            if agent.done():
                break
            agent.cancel()
        ended = RoleResult()
        if agent.done() and not agent.cancelled():
            ended = agent.result()
        if ended.response and ended.failure is None and self.stop_reason == HANDED_BACK:
            return ended  # it finished just in time
        return RoleResult(tokens=ended.tokens, failure=kind, message=message)


async def _protected(adapter: Adapter, request: RoleRequest, context: Context) -> RoleResult:
    try:
        result = await adapter.run(request, context)
    except Exception as error:  # an adapter's mistake must not lose the role run
        log.exception("the adapter failed on role run %s", request.run_id)
        return failed(f"{type(error).__name__}: {error}")
    # Only the watchdog can say that a runner is lost.
    if result.failure is FailureKind.LOST:
        return failed(result.message, tokens=result.tokens)
    return result


def find_work_dir(wanted: str, roots: tuple[Path, ...]) -> Path:
    """Return the directory that an agent works in.

    Args:
        wanted: what the objective asks for; empty for the first root, or where the host was started.
        roots: the directories below which agents may work; any, where none are given.

    Raises:
        ValueError: there is no such directory, or it is outside of the roots; the message says so for people.
    """
    path = Path(wanted) if wanted else (roots[0] if roots else Path.cwd())
    resolved = None
    with contextlib.suppress(OSError, RuntimeError, ValueError):
        resolved = path.resolve(strict=True)
    if resolved is None or not resolved.is_dir():
        raise ValueError(f"the work directory {wanted!r} does not exist on this runner's host")
    if roots and not any(resolved.is_relative_to(root.resolve()) for root in roots):
        raise ValueError(f"the work directory {wanted!r} is outside of this runner's roots")
    return resolved


def sendable(text: str) -> str:
    """Return `text` as JSON can carry it: a lone surrogate, which no text can hold, becomes a question mark."""
    return text.encode("utf-8", "replace").decode()
