"""Material for the tests of the turn gate: reports as bytes, and short forms of its messages."""

import json
from typing import Any

from turngate_protocol.report.lookup import Refused
from turngate_protocol.report.session import SessionTurns
from turngate_protocol.report.turn import Attempt, Ended, GateRules, Judged, TurnEnd, end, submit

RULES = GateRules()
NOW = 1_700_000_000_000


def good() -> bytes:
    return json.dumps(
        {
            "task_status": "completed",
            "headline": "Done",
            "blocks": [{"type": "verification", "id": "v", "summary": "Tests ran", "status": "passed"}],
        }
    ).encode()


def bad() -> bytes:
    return b'{"task_status": "completed", "headline": ""}'


def card(*options: dict[str, Any]) -> bytes:
    offered = options or (
        {"id": "go", "label": "Do it", "effect": "dispatch", "instruction": "Do it now"},
        {"id": "edit", "label": "Word it", "effect": "collect"},
        {"id": "stop", "label": "Stop", "effect": "resolve"},
    )
    return json.dumps(
        {
            "task_status": "needs_action",
            "headline": "Pick one of three",
            "blocks": [
                {"type": "verification", "id": "v", "summary": "Tests ran", "status": "passed"},
                {
                    "type": "decision",
                    "id": "d",
                    "summary": "What next",
                    "options": list(offered),
                    "recommendation": offered[0]["id"],
                    "recommendation_reason": "It is ready",
                    "response_type": "single",
                },
            ],
        }
    ).encode()


def attempt(number: int = 1, report: bytes | None = None, *, turn: int = 1, **facts: Any) -> Attempt:
    facts.setdefault("mutated", True)
    return Attempt("s", facts.pop("pool", "p"), "r", turn, number, good() if report is None else report, **facts)


def ending(number: int = 1, *, turn: int = 1, **facts: Any) -> TurnEnd:
    return TurnEnd("s", facts.pop("pool", "p"), "r", turn, number, **facts)


def judged(result: Judged | Refused) -> Judged:
    assert isinstance(result, Judged), result
    return result


def refused(result: object) -> Refused:
    assert isinstance(result, Refused), result
    return result


def ended(result: Ended | Refused) -> Ended:
    assert isinstance(result, Ended), result
    return result


def run(*messages: Attempt | TurnEnd, state: SessionTurns | None = None, rules: GateRules = RULES) -> SessionTurns:
    """Apply messages one after the other and return the last state; none of them may be refused."""
    for at, message in enumerate(messages):
        result: Judged | Ended
        if isinstance(message, Attempt):
            result = judged(submit(state, message, rules, NOW + at))
        else:
            result = ended(end(state, message, rules, NOW + at))
        state = result.state or state
    assert state is not None
    return state
