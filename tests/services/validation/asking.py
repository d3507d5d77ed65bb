"""Short forms for tests that ask questions of a running system."""

import json
from typing import Any

from tests.running import System
from turngate.runner import TurnClient
from turngate_contracts import codec
from turngate_protocol.question import Answer, Request, ToolCall

QUESTION: dict[str, Any] = {
    "header": "Store",
    "question": "Where shall the data go?",
    "options": [
        {"label": "Disk", "description": "It survives"},
        {"label": "Memory", "description": "It is fast"},
        {"label": "Both", "description": "It is both", "preview": "disk + memory"},
    ],
}
SINGLE = json.dumps({"questions": [QUESTION]})
MULTIPLE = json.dumps({"questions": [QUESTION, {**QUESTION, "header": "Parts", "multiple": True}]})


def structured(call: str = "call-1", args: str = SINGLE) -> ToolCall:
    return ToolCall("ask_user", call, args)


def freeform(call: str = "call-1", prompt: str = "What now?") -> ToolCall:
    return ToolCall("ask_user_text", call, json.dumps({"question": prompt}))


def picks(*labels: str) -> Answer:
    return Answer(labels)


async def ask(client: TurnClient, session: str = "s", call: ToolCall | None = None, **options: Any) -> Request:
    """Ask, and return the request that waits now."""
    asked = await client.ask(call or structured(), session, **options)
    assert asked.pending is not None, asked
    return asked.pending.request


async def raw(system: System, name: str, body: Any, caller: str = "runner-1") -> bytes:
    """Send a request as it is, typed or not, and return the body of what comes back."""
    data = body if isinstance(body, bytes) else codec.encode(body)
    pool = "pool-1" if name == "question.ask" else ""
    return (await system.requester.request(system.subjects.api(name, caller, pool), data)).body
