"""The vectors of the supervisor protocol: reports, evidence, the transitions of an objective, whole continuations."""

from contextlib import suppress
from typing import Any

import msgspec
from msgspec.structs import replace

from turngate_protocol.esm import guidance, transitions
from turngate_protocol.esm.classify import FailureKind
from turngate_protocol.esm.continuation import advance, wants
from turngate_protocol.esm.effects import DispatchRole
from turngate_protocol.esm.errors import EsmError
from turngate_protocol.esm.evidence import Evidence, EvidenceTracker, ToolEvent
from turngate_protocol.esm.guidance import Guidance
from turngate_protocol.esm.inputs import Claim, Input, RoleFailed, RoleReported, Start
from turngate_protocol.esm.judgement import OBSERVER_LEAD
from turngate_protocol.esm.objective import Objective
from turngate_protocol.esm.role_reports import parse_audit, parse_recovery, parse_worker
from turngate_protocol.esm.roles import role_request
from turngate_protocol.esm.state import EsmState, HaltReason

NOW = 1_700_000_000_000
PARSERS = {"parse_worker": parse_worker, "parse_audit": parse_audit, "parse_recovery": parse_recovery}


def run(op: str, given: dict[str, Any]) -> Any:
    if op in PARSERS:
        try:
            return msgspec.json.decode(msgspec.json.encode(PARSERS[op](given["text"])))
        except EsmError:
            return {"error": True}
    return {"evidence": _evidence, "store_trace": _store_trace, "supervisor_run": _supervisor_run}[op](given)


class Store:
    def __init__(self) -> None:
        self.objective: Objective | None = None
        self.guidance: tuple[Guidance, ...] = ()
        self.count = 0

    def apply(self, step: dict[str, Any]) -> None:
        op = step["op"]
        current, now = self.objective, NOW
        text, reason, summary = step.get("text", ""), step.get("reason", ""), step.get("summary", "")
        review, run_id, missing = step.get("review", ""), step.get("run_id", ""), step.get("missing_work") or []
        remaining, tokens, ms = step.get("remaining_work"), step.get("tokens", 0), step.get("duration_ms", 0)
        self.count += 1
        match op:
            case "create":
                self.objective = transitions.create(current, "s", f"esm-{self.count}", text, now=now)
            case "edit":
                self.objective = transitions.edit(current, text, now=now)
            case "clear":
                self.objective = None
            case "pause" | "resume" | "mark_usage_limited":
                self.objective = getattr(transitions, op)(current, now=now)
            case "set_phase":
                self.objective = transitions.set_phase(current, step.get("phase", ""), now=now)
            case "record_worker_progress":
                self.objective = transitions.record_worker_progress(current, summary, remaining or [], now=now)
            case "record_recovery":
                self.objective = transitions.record_recovery(current, reason, summary, remaining, now=now)
            case "account_usage":
                self.objective = transitions.account_usage(current, tokens, ms, now=now)
            case "update_from_model" | "update_from_model_for_run":
                status = step.get("status", "")
                self.objective = transitions.update_from_model(current, status, reason, run_id, now=now)
            case "mark_complete_from_audit":
                self.objective = transitions.mark_complete_from_audit(current, review, now=now)
            case "reject_completion_candidate":
                self.objective = transitions.reject_completion_candidate(current, review, now=now)
            case "reject_completion_candidate_for_run":
                self.objective = transitions.reject_completion_candidate(
                    current, review, missing, run_id=run_id, now=now
                )
            case "reject_worker_report":
                self.objective = transitions.reject_worker_report(current, run_id, review, remaining or [], now=now)
            case "record_completion_review":
                self.objective = transitions.record_completion_review(current, review, now=now)
            case "finish_run":
                self.objective = transitions.finish_run(current, run_id, now=now)
            case "add_guidance":
                self.guidance = guidance.add_guidance(self.guidance, current, f"g{self.count}", text, now=now)
            case "consume_guidance":
                listed = guidance.pending_guidance(self.guidance)
                ids = [listed[i].id for i in step.get("indexes") or [] if 0 <= i < len(listed)]
                self.guidance = guidance.consume_guidance(self.guidance, ids)
            case "pending_guidance" | "get":
                pass
            case _:
                raise AssertionError(op)


def same(_op: str, expect: Any, actual: Any) -> bool:
    """Compare; a progress summary that the software words itself only has to be where the vector says so."""
    if isinstance(expect, dict) and isinstance(actual, dict):
        return expect.keys() == actual.keys() and all(
            _same_summary(expect[k], actual[k]) if k == "progress_summary" else same(_op, expect[k], actual[k])
            for k in expect
        )
    if isinstance(expect, list) and isinstance(actual, list):
        return len(expect) == len(actual) and all(same(_op, e, a) for e, a in zip(expect, actual, strict=True))
    return bool(expect == actual)


def _same_summary(expect: str, actual: str) -> bool:
    if expect == "<software>":
        return actual == transitions.DEFAULT_RECOVERY_SUMMARY
    return actual == expect.replace("<observer>", OBSERVER_LEAD, 1)


KINDS = {"objective_exists": "exists"}


def _shape(objective: Objective | None) -> Any:
    if objective is None:
        return None
    return {
        "blocked_count": objective.blocked_count,
        "blocked_reason": objective.blocked_reason,
        "blocked_run_id": objective.blocked_run_id,
        "completion_reason": objective.completion_reason,
        "completion_review": bool(objective.completion_review),
        "completion_run_id": objective.completion_run_id,
        "phase": objective.phase.value,
        "progress_summary": objective.progress_summary,
        "recovery_count": objective.recovery_count,
        "rejection_count": objective.rejection_count,
        "rejection_run_id": objective.rejection_run_id,
        "remaining_work": list(objective.remaining_work),
        "status": objective.status.value,
        "time_used_ms": objective.time_used_ms,
        "tokens_used": objective.tokens_used,
    }


def _store_trace(given):
    store = Store()
    out = []
    for step in given["steps"]:
        kind = None
        try:
            store.apply(step)
        except EsmError as error:
            kind = KINDS.get(error.kind, error.kind)
        out.append(
            {
                "error_kind": kind,
                "objective": _shape(store.objective),
                "pending_guidance": len(guidance.pending_guidance(store.guidance)),
            }
        )
    return {"steps": out}


def _evidence(given):
    tracker = EvidenceTracker()
    for event in given["events"]:
        tracker.observe(ToolEvent(event["type"], event["id"], event["name"], event["error"]))
    evidence = tracker.summary()
    names = dict(evidence.tool_names)
    return {"tool_calls": evidence.tool_calls, "tool_names": names, "tool_errors": evidence.tool_errors}


# What a failure is called in the vectors, and what a runner reports for it.
FAILURES = {
    "incomplete": (FailureKind.INCOMPLETE, "stopped before it had finished"),
    "deadline": (FailureKind.DEADLINE, "context deadline exceeded"),
    "transport": (FailureKind.ERROR, "send request: connection refused"),
    "usage": (FailureKind.ERROR, "usage limit reached"),
    "usage_limit": (FailureKind.ERROR, "usage limit reached"),
    "fatal": (FailureKind.ERROR, "something broke"),
}


class Host:
    """Performs the effects of the machine at once: one process, one runner, no transport."""

    def __init__(self) -> None:
        self.store = Store()
        self.state = EsmState("s")

    def steps(self, steps: list[dict[str, Any]]) -> None:
        for step in steps:
            self.store.objective, self.store.guidance = self.state.objective, self.state.guidance
            with suppress(EsmError):
                self.store.apply(step)
            self.state = replace(self.state, objective=self.store.objective, guidance=self.store.guidance)

    def run(self, given: dict[str, Any]) -> dict[str, Any]:
        calls: list[dict[str, Any]] = []
        events: list[dict[str, Any]] = []
        kind = None
        self.steps(given["pre"])
        try:
            self.state = advance(self.state, Start(run_id=given["run_id"]), NOW)
        except EsmError as error:
            kind = error.kind
        while offers := [effect for effect in wants(self.state) if isinstance(effect, DispatchRole)]:
            self.role(offers[0], given["roles"], calls, events)
        if calls and self.state.halt is not None and self.state.halt.reason is HaltReason.FAILED:
            kind = "role_error"
        return {"error_kind": kind, "calls": calls, "events": events, **self.seen()}

    def seen(self) -> dict[str, Any]:
        """What the vectors look at after a run."""
        objective = self.state.objective
        return {
            "returned_status": objective.status.value if objective else None,
            "objective": _shape(objective),
            "pending_guidance": [g.text for g in guidance.pending_guidance(self.state.guidance)],
        }

    def role(self, offer: DispatchRole, scripts: dict[str, Any], calls: list[Any], events: list[Any]) -> None:
        ids: dict[str, Any] = {"role_run_id": offer.role_run_id, "generation": offer.generation}
        ids |= {"claim_id": "c", "runner": "r"}
        self.tell(Claim(**ids), events)
        request = role_request(self.state)
        assert request is not None
        calls.append(
            {
                "role": request.role.value,
                "run_id": request.run_id,
                "status": request.objective.status.value,
                "phase": request.objective.phase.value,
                "guidance": request.guidance,
                "read_only": request.tools is not None,
            }
        )
        script = scripts[offer.role.value]
        self.steps(script.get("during", []))
        evidence = Evidence(script["tool_calls"], {}, script["tool_errors"])
        usage: dict[str, Any] = {"tokens": script["tokens"], "duration_ms": script["duration_ms"], "evidence": evidence}
        if script["error"] == "none":
            self.tell(RoleReported(**ids, response=script["response"], **usage), events)
        else:
            failure, message = FAILURES[script["error"]]
            self.tell(RoleFailed(**ids, kind=failure, message=message, **usage), events)

    def tell(self, told: Input, events: list[dict[str, Any]]) -> None:
        self.state = advance(self.state, told, NOW)
        cause = self.state.cause
        if cause is not None and cause.type in ("role_started", "role_finished", "role_failed"):
            facts = {"type": cause.type.value, "role": cause.role, "status": cause.status, "run_id": cause.role_run_id}
            events.append(facts)


def _supervisor_run(given: dict[str, Any]) -> dict[str, Any]:
    host = Host()
    host.steps(given["setup"])
    return {"runs": [host.run(each) for each in given["runs"]]}
