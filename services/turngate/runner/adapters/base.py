"""What an adapter is: a coroutine that runs one role of an objective as an agent and returns how it ended.

The host does everything else. It claims the role run before it calls the adapter, enforces the deadline, tells of
cancels and steering, counts the tool calls that the adapter reports, and publishes the result. Whatever an adapter
raises becomes a failed role, so that a mistake in one never loses a role run.
"""

import asyncio
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from turngate_protocol.esm.classify import FailureKind
from turngate_protocol.esm.evidence import ToolEvent
from turngate_protocol.esm.roles import RoleRequest


class RoleResult(Struct, frozen=True):
    """How one role run ended, as its adapter saw it.

    Attributes:
        response: the agent's final answer, whole and as it is; what it is worth is judged elsewhere.
        tokens: what it used, 0 where that is not known. Also of a run that failed.
        failure: None for an agent that finished; else how it failed. `ERROR` has the message looked at for usage
            limits and broken wires, so an adapter need not know those. `LOST` is never an adapter's to say.
        message: for a failure, what went wrong, for people; the end of an error output for instance.
        duration_ms: how long it took in milliseconds, where the adapter knows better than the host's clock.
    """

    response: str = ""
    tokens: int = 0
    failure: FailureKind | None = None
    message: str = ""
    duration_ms: int | None = None


def failed(message: str, kind: FailureKind = FailureKind.ERROR, *, tokens: int = 0) -> RoleResult:
    """Return the result of a role run that failed."""
    return RoleResult(tokens=tokens, failure=kind, message=message)


class RoleContext(Protocol):
    """What a running adapter may tell and learn. The host makes one for each role run.

    Attributes:
        cancelled: set when the role run must stop: its objective was edited, paused or cleared, the host ends, or the
            deadline has passed. The host also cancels the adapter's task some seconds later; an adapter that starts
            processes ends them in both cases.
        steering: messages for the running agent, at most one for each version of the objective. An adapter that can't
            talk to a running agent leaves them there.
        work_dir: where the agent works: it exists, and lies below the host's roots where those are given.
    """

    cancelled: asyncio.Event
    steering: "asyncio.Queue[str]"
    work_dir: Path

    def tool_event(self, event: ToolEvent) -> None:
        """Take in what the agent does with its tools: the evidence. Call it for each event, in any order."""

    def progress(self, text: str) -> None:
        """Say in one line what the agent is doing; it is shown to people, and lost if nobody looks."""


class Adapter(Protocol):
    """Runs agents; one adapter serves all role runs of a host, any number of them at once."""

    async def run(self, request: RoleRequest, context: RoleContext) -> RoleResult:
        """Run one role to its end.

        Args:
            request: the role, its prompt, its tools and its limits. `deadline_ms` is the host's to enforce.
            context: this role run's own.

        Returns:
            The agent's final answer, or how it failed.

        Raises:
            asyncio.CancelledError: the host cancelled the task; nothing that the adapter started may be left running.
            Exception: taken for a failure of kind `ERROR`, with the exception's text.
        """
