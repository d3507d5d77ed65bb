"""A runner as a process of its own, whose agents each ask one question and stop until they have its outcome.

    python -m tests.system.asking_runner URL NAMESPACE IDENTITY RECORD SESSION…

What a host keeps durably is a file here: a line for each tool call that has its result. Killed and started again, the
runner finds what still waits from the calls without one, as `reconcile` is meant to be used.
"""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

from turngate.runner import TurnClient
from turngate_protocol.question import Outcome, ToolCall, tool_result

POOL = "pool-1"


def call_of(session: str) -> ToolCall:
    """The tool call that the agent of a session made; the host has it in its durable record."""
    return ToolCall("ask_user_text", f"call-of-{session}", json.dumps({"question": f"How shall {session} go on?"}))


class Record:
    """The results that the host has given to its agents."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def results(self) -> list[dict[str, Any]]:
        """Every result, in the order in which they came."""
        if not self._path.exists():
            return []
        return [json.loads(line) for line in self._path.read_text().splitlines()]

    def add(self, session: str, outcome: Outcome) -> None:
        """Give an agent its result."""
        line = {"session": session, "request_id": outcome.request_id, "result": tool_result(outcome).content}
        with self._path.open("a") as file:
            file.write(json.dumps(line) + "\n")
            file.flush()
            os.fsync(file.fileno())


async def agent(client: TurnClient, session: str, record: Record) -> None:
    """Ask what the session's agent asks, or find it again, and wait for the outcome."""
    found = await client.reconcile([call_of(session)], session, timeout_ms=60_000)
    if found is None or found.denied is not None:
        raise RuntimeError(f"{session} could not ask: {found}")
    outcome = found.outcome
    if outcome is None and found.pending is not None:
        outcome = await client.wait(found.pending.request, session)
    if outcome is None:
        raise RuntimeError(f"{session} neither waits nor is decided: {found}")
    record.add(session, outcome)


async def main(url: str, namespace: str, identity: str, path: str, *sessions: str) -> None:
    """Run the agents that have no result yet."""
    record = Record(Path(path))
    done = {result["session"] for result in record.results()}
    client = await TurnClient.connect(identity, pool=POOL, url=url, namespace=namespace)
    async with client, asyncio.TaskGroup() as group:
        for session in sessions:
            if session not in done:
                group.create_task(agent(client, session, record))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
