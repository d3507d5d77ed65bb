"""What agents of tests answer: reports of every role, as the JSON that they end with."""

import json
from typing import Any


def worker(status: str = "continue", summary: str = "some of it", **more: Any) -> str:
    report = {"status": status, "summary": summary, "evidence": ["make test"], "remaining_work": [], "blockers": []}
    if status == "continue":
        report["remaining_work"] = ["the rest"]
    return json.dumps(report | more)


def review(verdict: str = "pass", text: str = "looked at all of it", **more: Any) -> str:
    report = {
        "verdict": verdict,
        "review": text,
        "requirements_checked": ["all"],
        "missing_work": [],
        "evidence": ["ls"],
    }
    return json.dumps(report | more)


def observer(decision: str = "resume", summary: str = "half of it is there", **more: Any) -> str:
    report = {"decision": decision, "summary": summary, "evidence": ["ls"], "remaining_work": ["go on"], "blockers": []}
    return json.dumps(report | more)


CONTINUE = worker()
CANDIDATE = worker("complete_candidate", "all of it")
BLOCKED = worker("blocked_candidate", "no key", blockers=["there is no key"])
PASS = review()
FAIL = review("fail", "a test is missing", missing_work=["write the test"])
RESUME = observer()

Role = dict[str, Any]
WORKS: Role = {"response": CONTINUE, "tools": 2, "tokens": 10}
CLAIMS: Role = {"response": CANDIDATE, "tools": 2, "tokens": 10}
BLOCKS: Role = {"response": BLOCKED, "tools": 1, "tokens": 10}
PASSES: Role = {"response": PASS, "tools": 1, "tokens": 5}
FAILS: Role = {"response": FAIL, "tools": 1, "tokens": 5}
RESUMES: Role = {"response": RESUME, "tools": 1, "tokens": 3}
HANGS: Role = {"hangs": True, "tools": 1}

COMPLETES: Role = {"worker": CLAIMS, "critic": PASSES, "audit": PASSES, "recovery": RESUMES}
"""A run that proves that all is done."""
GOES_ON: Role = {"worker": WORKS, "critic": PASSES, "audit": PASSES, "recovery": RESUMES}
"""A run that gets on."""
