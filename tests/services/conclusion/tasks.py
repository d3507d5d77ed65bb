"""Tasks as runners tell them, and what reached the parents' pools."""

import json
from pathlib import Path
from typing import Any

from tests.running import System
from turngate.jetstream.direct import read_page
from turngate_protocol.conclusion import Task


def success(*artifacts: str, memory_refs: tuple[str, ...] = ()) -> str:
    """The output of an agent that claims success and cites its evidence."""
    cited = "".join(f"  - {json.dumps(ref)}\n" for ref in artifacts)
    remembered = "".join(f"  - {json.dumps(ref)}\n" for ref in memory_refs)
    return (
        "I have done it all.\n<pando:conclusion>\nstatus: success\nsummary: It works\n"
        f"{f'artifacts:{chr(10)}{cited}' if cited else ''}"
        f"{f'memory_refs:{chr(10)}{remembered}' if remembered else ''}"
        "confidence: 0.9\n</pando:conclusion>\n"
    )


def finished(task: str, output: str, work_dir: Path | str = "", **fields: Any) -> Task:
    """A completed task with an output."""
    return Task(
        id=task,
        status=fields.pop("status", "completed"),
        engine="engine-1",
        work_dir=str(work_dir),
        output=output,
        exit_code=fields.pop("exit_code", 0),
        tool_calls=fields.pop("tool_calls", 3),
        **fields,
    )


async def prompts_of(system: System, pool: str = "pool-1") -> list[dict[str, Any]]:
    """The prompts that were put out for a pool."""
    stream = system.subjects.stream("work")
    found, _ = await read_page(system.requester, stream, 0, 256, system.subjects.prompts(pool))
    return [json.loads(message.body) for message in found]
