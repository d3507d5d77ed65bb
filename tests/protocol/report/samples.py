"""Material for the tests of the report: a valid block of each type, and short forms to change one thing in it."""

from pathlib import Path
from typing import Any

import msgspec

from turngate_protocol.report import Block, BlockType, Option, Problem, Report

FIXTURES = Path(__file__).parents[3] / "bench" / "fixtures"


def option(**changes: Any) -> Option:
    return Option(**{"id": "stop", "label": "Leave it", "effect": "resolve", **changes})


def dispatch(**changes: Any) -> Option:
    return option(**{"id": "go", "label": "Do it", "effect": "dispatch", "instruction": "Do it now", **changes})


_ASKING: dict[str, Any] = {
    "options": [dispatch(), option()],
    "response_type": "single",
    "recommendation": "go",
    "recommendation_reason": "It is the smaller change",
}
_OWN: dict[str, dict[str, Any]] = {
    "change": {},
    "finding": {"impact": "Files are lost", "importance": "high", "blocks_current_task": False},
    "verification": {"status": "passed"},
    "warning": {"severity": "low", "impact": "It is slower"},
    "decision": _ASKING,
    "question": {"question": "Which one?", **_ASKING},
    "blocked": {"blocker": "No access", "required_action": "Grant it", **_ASKING},
    "next_step": _ASKING,
    "unclassified": {"reason_unclassified": "It fits nowhere"},
}
TYPES = [kind.value for kind in BlockType]


def block(kind: str, **changes: Any) -> Block:
    """A valid block of a type, with fields changed."""
    own = _OWN.get(kind, {})
    return Block(**{"type": kind, "id": kind.replace("_", "-"), "summary": "One sentence", **own, **changes})


def report(*blocks: Block, status: str = "completed", headline: str = "Done") -> Report:
    return Report(status, headline, list(blocks))


def everything() -> Report:
    """A valid report with a block of each type."""
    return report(*map(block, TYPES), status="needs_action")


def places(problems: list[Problem]) -> list[tuple[str, str]]:
    return [(problem.path, problem.code) for problem in problems]


def encoded(value: Any) -> bytes:
    return msgspec.json.encode(value)


def fixture(name: str) -> bytes:
    return (FIXTURES / name).read_bytes()
