"""States to start a test from, and the shortest ways to bring one about.

Time stands still at NOW unless a test moves it; every id is counted.
"""

import json
from typing import Any

from turngate_protocol.esm import (
    Cause,
    Claim,
    Create,
    EsmState,
    Evidence,
    FailureKind,
    Input,
    RoleFailed,
    RoleReported,
    RoleRun,
    Start,
    Timer,
    TimerKind,
    advance,
)
from turngate_protocol.esm.objective import Objective, Status

NOW = 1_700_000_000_000
TEXT = "Build the bridge."
WITH_TOOLS = Evidence(tool_calls=2, tool_names={"read": 2})

CONTINUE = {"status": "continue", "summary": "one pier stands", "evidence": [], "remaining_work": ["the deck"]}
CLAIM = {"status": "complete_candidate", "summary": "it stands", "evidence": ["walked over it"]}
BLOCKER = {"status": "blocked_candidate", "summary": "stuck", "blockers": ["no steel"]}
PASS = {"verdict": "pass", "review": "sound", "requirements_checked": ["it stands"], "evidence": ["measured it"]}
FAIL = {"verdict": "fail", "review": "no railing", "missing_work": ["the railing"]}
RESUME = {"decision": "resume", "summary": "half a pier", "remaining_work": ["the other half"]}
OBSERVED_BLOCKER = {"decision": "blocked", "summary": "nothing there", "blockers": ["no steel"]}


def empty() -> EsmState:
    return EsmState("s1")


def created(**fields: Any) -> EsmState:
    return advance(empty(), Create(text=TEXT, esm_id="e1", **fields), NOW)


def waiting() -> EsmState:
    """The first worker is offered and nobody has claimed it."""
    return advance(created(), Start(), NOW)


def held() -> EsmState:
    """The first worker runs."""
    return claimed(waiting())


def critic() -> EsmState:
    """The critic of the first run runs."""
    return claimed(told(held(), CLAIM))


def audit() -> EsmState:
    """The audit of the first run runs."""
    return claimed(told(critic(), PASS))


def observer() -> EsmState:
    """The observer of the first worker, which met a deadline, runs."""
    return claimed(advance(held(), failure(held(), FailureKind.DEADLINE), NOW))


def complete() -> EsmState:
    return told(audit(), PASS)


def objective_of(state: EsmState) -> Objective:
    assert state.objective is not None
    return state.objective


def status_of(state: EsmState) -> Status:
    return objective_of(state).status


def run_of(state: EsmState) -> RoleRun:
    assert state.continuation is not None
    return state.continuation.role_run


def cause_of(state: EsmState) -> Cause:
    assert state.cause is not None
    return state.cause


def holder(state: EsmState) -> dict[str, Any]:
    run = run_of(state)
    return {
        "role_run_id": run.id,
        "generation": state.generation,
        "claim_id": run.claim_id,
        "runner": run.runner,
    }


def claim(state: EsmState, claim_id: str = "c1", runner: str = "r1", **fields: Any) -> Claim:
    return Claim(role_run_id=run_of(state).id, generation=state.generation, claim_id=claim_id, runner=runner, **fields)


def claimed(state: EsmState, claim_id: str = "c1", runner: str = "r1") -> EsmState:
    return advance(state, claim(state, claim_id, runner), NOW)


def report(state: EsmState, answer: dict[str, Any] | str, **fields: Any) -> RoleReported:
    """What the holder of the role run under way reports."""
    response = answer if isinstance(answer, str) else json.dumps(answer)
    return RoleReported(**(holder(state) | {"response": response, "evidence": WITH_TOOLS} | fields))


def failure(state: EsmState, kind: FailureKind, message: str = "", **fields: Any) -> RoleFailed:
    return RoleFailed(**(holder(state) | {"kind": kind, "message": message} | fields))


def told(state: EsmState, answer: dict[str, Any] | str, now: int = NOW, **fields: Any) -> EsmState:
    return advance(state, report(state, answer, **fields), now)


def unchanged(state: EsmState, told: Input, now: int = NOW) -> bool:
    return advance(state, told, now) is state


def timer(state: EsmState, kind: TimerKind, **fields: Any) -> Timer:
    at = state.next_at if kind is TimerKind.CONTINUATION else run_of(state).check_at
    assert at is not None
    facts: dict[str, Any] = {"kind": kind, "generation": state.generation, "at": at}
    return Timer(**(facts | fields))
