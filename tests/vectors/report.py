"""How the report's vectors reach the package: every input goes through the bytes, as on the wire."""

import json
from typing import Any

import msgspec

from turngate_protocol.report import (
    RenderOptions,
    Report,
    Rules,
    buried_proposal_hint,
    choices,
    decode,
    hidden_not_run_count,
    normalise,
    order,
    validate,
)


def run(op: str, given: dict[str, Any]) -> Any:
    report = _report(given["report"])
    match op:
        case "validate":
            problems = validate(report, Rules(**given["rules"]))
            return {"problems": [{"code": problem.code, "path": problem.path} for problem in problems]}
        case "normalize":
            assert report is not None
            return {"report": json.loads(msgspec.json.encode(normalise(report)))}
        case "order":
            return {"order": order(report)}
        case "choices":
            return {"choices": msgspec.to_builtins(choices(report))}
        case "buried_proposal_hint":
            return {"hint": buried_proposal_hint(report)}
        case "hidden_not_run":
            return {"n": hidden_not_run_count(report, msgspec.convert(given["options"], RenderOptions))}
    raise ValueError(op)


def _report(value: dict[str, Any] | None) -> Report | None:
    if value is None:
        return None
    report = decode(json.dumps(value).encode())
    assert isinstance(report, Report), report
    return report
