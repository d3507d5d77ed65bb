"""Tasks as runners tell them, and what became of them."""

import json
from pathlib import Path
from typing import Any

from tests.running import System
from tests.waiting import wait_until
from turngate.jetstream.direct import read_page
from turngate.runner import TurnClient
from turngate_contracts import codec
from turngate_contracts.dead import DeadLetter
from turngate_contracts.errors import Refusal
from turngate_contracts.messages import Refusal as RefusalMail
from turngate_protocol.conclusion import Conclusion, GateResult, Task
from turngate_protocol.conclusion.record import ConclusionPhase, TaskConclusion


def block(body: str) -> str:
    """An agent's closing block."""
    return f"<pando:conclusion>\n{body}\n</pando:conclusion>\n"


def success(*artifacts: str, memory_refs: tuple[str, ...] = (), summary: str = "It works") -> str:
    """The output of an agent that claims success and cites its evidence."""
    body = {"status": "success", "summary": summary, "artifacts": artifacts, "memory_refs": memory_refs}
    # JSON is YAML, and says exactly what is meant.
    return "I have done it all.\n" + block("\n".join(f"{name}: {json.dumps(value)}" for name, value in body.items()))


def finished(task: str, output: str, work_dir: Path | str = "", **fields: Any) -> Task:
    """A completed task with an output."""
    given = {"status": "completed", "engine": "engine-1", "exit_code": 0, "tool_calls": 3, **fields}
    return Task(id=task, output=output, work_dir=str(work_dir), **given)


async def concluded(client: TurnClient, task: str = "t1", session: str = "parent") -> TaskConclusion:
    """Wait until a task is judged and its parent was told."""

    async def settled() -> TaskConclusion | None:
        try:
            state = (await client.conclusion(session, task)).state
        except Refusal:
            return None
        return state if state.phase is ConclusionPhase.SETTLED else None

    found = await wait_until(settled, 30, f"task {task} is settled")
    assert found is not None
    return found


def judged(state: TaskConclusion) -> tuple[Conclusion, GateResult]:
    """The conclusion of a task and what the gate found; both are there."""
    assert state.conclusion is not None
    assert state.gate is not None
    return state.conclusion, state.gate


async def prompts_of(system: System, pool: str = "pool-1") -> list[dict[str, Any]]:
    """The prompts that were put out for a pool."""
    stream = system.subjects.stream("work")
    found, _ = await read_page(system.requester, stream, 0, 256, system.subjects.prompts(pool))
    return [json.loads(message.body) for message in found]


async def dead_letters(system: System) -> list[DeadLetter]:
    """What nothing could be done with."""
    stream = system.subjects.stream("dead")
    found, _ = await read_page(system.requester, stream, 0, 256, f"{system.settings.namespace}.dead.>")
    return [codec.decode(message.body, DeadLetter, "a DeadLetter") for message in found]


class Mail:
    """What arrives in a runner's mailbox as refusals."""

    def __init__(self) -> None:
        self.refusals: list[RefusalMail] = []

    @classmethod
    async def of(cls, system: System, runner: str = "runner-1") -> "Mail":
        """Listen to a runner's mailbox."""
        mail = cls()
        await system.connection.listen(system.subjects.mailbox(runner, "refused"), mail.on_mail)
        return mail

    def on_mail(self, _subject: bytes, _reply: bytes, body: bytes, _head: bytes) -> None:
        """Take one down."""
        self.refusals.append(codec.decode(body, RefusalMail, "a Refusal"))
