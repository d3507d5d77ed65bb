"""Telling that a delegated task ended with a conclusion that was made by a tool call, and what the gate made of it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from turngate.bridges.toollog import ToolUse
from turngate.runner import NotConcluded, TurnClient
from turngate.runner.tasks import bound
from turngate_contracts.tasks import ConclusionFound
from turngate_protocol.conclusion.model import TASK_COMPLETED, Conclusion, Task
from turngate_protocol.conclusion.record import content_digest
from turngate_protocol.conclusion.tools import block_of

JUDGED_MS: Final = 10_000
"""How long the gate may take before the agent is told that it is still looking."""
_NAMED: Final = 10


async def tell(
    client: TurnClient,
    session: str,
    task: str,
    conclusion: Conclusion,
    *,
    directory: Path,
    roots: Sequence[Path] = (),
    uses: Sequence[ToolUse] = (),
) -> str:
    """Tell that a task ended, answer for its files until it is judged, and return what the agent should read.

    Args:
        client: the runner's client.
        session: the session that delegated the task.
        task: the task's id.
        conclusion: what it ends with.
        directory: where it worked, resolved: relative paths start there, and files below it are answered for.
        roots: further directories whose files are answered for.
        uses: the tools that its hooks saw it use; none where it has no hooks.

    Raises:
        TurngateError: it was not stored; telling the same again is harmless.
    """
    record = Task(
        task,
        TASK_COMPLETED,
        work_dir=str(directory),
        project_path=str(directory),
        output=block_of(conclusion),
        tool_calls=len(uses) or None,
        tool_errors=sum(not use.ok for use in uses) if uses else None,
    )
    stat = await client.serve_stat([directory, *roots])
    try:
        await client.finish_task(session, record)
        found = await client.conclusion(session, task, wait_ms=JUDGED_MS)
    except NotConcluded:
        return "Your conclusion is recorded; its files are still being looked for. Stop here, and write nothing more."
    finally:
        await stat.stop()
    return _text(found, content_digest(bound(record)))


def _text(found: ConclusionFound, told: str) -> str:
    state = found.state
    status = state.conclusion.status if state.conclusion is not None else "none"
    text = f"Your conclusion is recorded as {status}."
    if state.gate is not None and state.gate.downgraded:
        missing = (*state.gate.missing_artifacts, *state.gate.unproven_artifacts, *state.gate.missing_memory_refs)
        text += f" Not found or unchanged: {', '.join(map(repr, missing[:_NAMED]))}."
    # Known by its content: that this ending is one too many may be written down only after it was asked for.
    if state.digest != told:
        text += " The task was concluded before with other content, which stands."
    return f"{text} Stop here, and write nothing more."
