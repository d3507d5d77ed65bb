"""What scripted agents do in the tests of objectives, as a YAML file has it."""

import json
from pathlib import Path
from typing import Any, Final

from tests.services.cli.samples import ESCAPES

DONE: Final = {"status": "complete_candidate", "summary": "All tests pass", "evidence": ["make test"]}
PASS: Final = {
    "verdict": "pass",
    "review": "It holds",
    "requirements_checked": ["tests"],
    "evidence": ["make test"],
}
FAIL: Final = {"verdict": "fail", "review": "The docs are missing", "missing_work": ["docs"]}
GOES_ON: Final = {
    "status": "continue",
    "summary": "Half of it works",
    "evidence": ["make test"],
    "remaining_work": ["the other half"],
}

COMPLETES: Final = [
    {"worker": {"response": GOES_ON, "tools": ["edit", "bash"], "tokens": 1200}},
    {
        "worker": {"response": DONE, "tools": ["bash"], "tokens": 300},
        "critic": {"response": PASS, "tools": ["read"]},
        "audit": {"response": PASS, "tools": ["read"]},
    },
]
REJECTED: Final = [
    {"worker": {"response": DONE, "tools": ["bash"]}, "critic": {"response": FAIL, "tools": ["read"]}},
    *COMPLETES,
]
LIMITED: Final = [{"worker": {"failure": {"kind": "error", "message": "429 too many requests, usage limit reached"}}}]
HANGS: Final = [{"worker": {"delay_ms": 600_000, "progress": ["reading the parser"], "tools": ["read"]}}]
HOSTILE: Final = [
    {
        "worker": {
            "response": {"status": "continue", "summary": f"{ESCAPES}\nok", "remaining_work": [ESCAPES]},
            "tools": 1,
        }
    },
    {"worker": {"failure": {"kind": "error", "message": ESCAPES}}},
]


def scenario_file(directory: Path, **scenarios: Any) -> Path:
    """Write scenarios as a file; JSON is YAML. A name that ends in `_` stands for all sessions that begin so."""
    named = {f"{name[:-1]}*" if name.endswith("_") else name: value for name, value in scenarios.items()}
    path = directory / "scenario.yaml"
    path.write_text(json.dumps(named))
    return path
