"""What a role's answer does to the objective: claims are held against the evidence, then recorded.

    role            answer                                            the objective
    --------------  ------------------------------------------------  ------------------------------------------
    worker          no report                                         rejected, active
    worker          continue                                          progress recorded
    worker          complete_candidate, believable                    progress recorded, complete_candidate
    worker          complete_candidate, not believable                progress recorded, rejected, active
    worker          blocked_candidate with a blocker                  progress recorded, the blocker counted
    worker          blocked_candidate without one                     progress recorded, rejected, active
    critic          pass, believable                                  the review recorded, phase audit
    audit           pass, believable                                  complete
    critic, audit   fail, a pass that is not believable, no report    rejected, active
    recovery        resume, with a tool call that succeeded           recovery recorded with what it found
    recovery        blocked, with a tool call that succeeded          the same, and the blocker counted
    recovery        anything else                                     recovery recorded with a sentence of ours

Tool evidence comes from the runner, never from the model's text. Texts are cut to the sizes below before they are
recorded: an objective is saved and prompted with at every step, so it must not grow by whatever a model writes. Nothing
here knows about runners, claims or time limits.
"""

from typing import Any, Final, TypeVar

from msgspec import Struct
from msgspec.structs import asdict

from turngate_protocol.esm import transitions
from turngate_protocol.esm.classify import FailureKind
from turngate_protocol.esm.errors import InvalidReportError
from turngate_protocol.esm.evidence import Evidence
from turngate_protocol.esm.objective import Objective, Role, Status
from turngate_protocol.esm.present import (
    format_audit_review,
    format_observer_blocker,
    format_worker_blocker,
    format_worker_completion,
    worker_continue_message,
    worker_outstanding_work,
)
from turngate_protocol.esm.role_reports import (
    AuditReport,
    Decision,
    RecoveryReport,
    Verdict,
    WorkerReport,
    WorkerStatus,
    parse_audit,
    parse_recovery,
    parse_worker,
)
from turngate_protocol.esm.texts import sendable
from turngate_protocol.text import byte_length, cut_bytes, trim

TEXT_BYTES: Final = 16 * 1024
"""Longest text of a report that is recorded, in UTF-8 bytes."""

ITEM_BYTES: Final = 4 * 1024
"""Longest item of a list that is recorded."""

LIST_BYTES: Final = 32 * 1024
"""Most bytes of a list that are recorded."""

OBSERVER_LEAD: Final = "An observer looked at what the interrupted role left behind: "
"""Stands before what an observer found, in the progress of the objective."""

_Report = TypeVar("_Report", WorkerReport, AuditReport, RecoveryReport)


class Outcome(Struct, frozen=True):
    """What applying one role's answer did.

    Attributes:
        objective: the objective afterwards.
        verdict: what the role said (`continue`, `pass`, `resume`, …), or `invalid` when it said nothing of use.
        message: one line for people.
        reason: why a claim or report was rejected, empty otherwise.
        rejected: whether it was.
        completed: whether the objective is complete now.
    """

    objective: Objective
    verdict: str
    message: str
    reason: str = ""
    rejected: bool = False
    completed: bool = False


def invalid_worker_candidate_reason(report: WorkerReport, evidence: Evidence) -> str:
    """Return why a worker's claim of completion is not believed, empty when it is."""
    if report.remaining_work or report.blockers:
        return "the completion claim lists remaining work or blockers"
    if reason := _without_tools(evidence):
        return f"the completion claim was made {reason}"
    if not report.summary or not report.evidence:
        return "the completion claim has no summary or no evidence"
    return ""


def invalid_pass_reason(report: AuditReport, evidence: Evidence) -> str:
    """Return why a critic's or an audit's pass is not believed, empty when it is."""
    if report.missing_work:
        return "the pass lists missing work"
    if reason := _without_tools(evidence):
        return f"the pass was given {reason}"
    if not report.review or not report.requirements_checked or not report.evidence:
        return "the pass has no review, no requirements checked or no evidence"
    return ""


def apply_worker(objective: Objective, run_id: str, response: str, evidence: Evidence, *, now: int) -> Outcome:
    """Return what a worker's final answer does to an active objective.

    Args:
        objective: the objective, active.
        run_id: the base id of the run, which counts once in every streak.
        response: the final answer.
        evidence: the tool calls that its runner saw.
        now: milliseconds since the epoch.
    """
    try:
        report = _bounded(parse_worker(response))
    except InvalidReportError as error:
        return _worker_rejected(objective, run_id, "invalid", error.message, (), now)
    objective = transitions.record_worker_progress(objective, report.summary, report.remaining_work, now=now)
    verdict = report.status.value
    if report.status is WorkerStatus.CONTINUE:
        objective = transitions.finish_run(objective, run_id, now=now)
        return Outcome(objective, verdict, worker_continue_message(report))
    if report.status is WorkerStatus.COMPLETE_CANDIDATE:
        reason = invalid_worker_candidate_reason(report, evidence)
        claim, said = "complete", format_worker_completion(report)
    else:
        reason = "" if report.blockers else "the report says blocked and names no blocker"
        claim, said = "blocked", format_worker_blocker(report)
    if reason:
        return _worker_rejected(objective, run_id, verdict, reason, worker_outstanding_work(report), now)
    objective = transitions.update_from_model(objective, claim, said, run_id, now=now)
    return Outcome(objective, verdict, said)


def apply_review(
    objective: Objective, run_id: str, role: Role, response: str, evidence: Evidence, *, now: int
) -> Outcome:
    """Return what the final answer of a critic or an audit does to a candidate; the arguments are `apply_worker`'s."""
    try:
        report = _bounded(parse_audit(response))
    except InvalidReportError as error:
        return _candidate_rejected(objective, run_id, "invalid", f"{role}: {error.message}", (), now)
    raw = _cut(sendable(response), TEXT_BYTES)
    verdict, review = report.verdict.value, format_audit_review(report, raw)
    if report.verdict is Verdict.FAIL:
        return _candidate_rejected(objective, run_id, verdict, review, report.missing_work, now)
    if reason := invalid_pass_reason(report, evidence):
        said = f"{role}: {reason}.\n{review}"
        return _candidate_rejected(objective, run_id, verdict, said, report.missing_work, now)
    if role is Role.AUDIT:
        objective = transitions.mark_complete_from_audit(objective, review, now=now)
        return Outcome(objective, verdict, report.review, completed=True)
    objective = transitions.record_completion_review(objective, review, now=now)
    return Outcome(transitions.set_phase(objective, "audit", now=now), verdict, report.review)


def apply_recovery(
    objective: Objective, run_id: str, interruption: str, response: str, evidence: Evidence, *, now: int
) -> Outcome:
    """Return what an observer's final answer does to an active objective; `interruption` is what happened before."""
    try:
        report = _bounded(parse_recovery(response))
    except InvalidReportError as error:
        return _recovered(objective, interruption, error.message, now)
    if reason := _without_tools(evidence):
        return _recovered(objective, interruption, f"the observer answered {reason}", now)
    summary = OBSERVER_LEAD + report.summary
    remaining = report.remaining_work or None  # an observer that lists nothing does not know of anything else
    objective = transitions.record_recovery(objective, interruption, summary, remaining, now=now)
    if report.decision is Decision.BLOCKED:
        blocker = format_observer_blocker(report.blockers)
        objective = transitions.update_from_model(objective, "blocked", blocker, run_id, now=now)
    return Outcome(objective, report.decision.value, report.summary)


def apply_interruption(
    objective: Objective, run_id: str, role: Role, kind: FailureKind, message: str, *, now: int
) -> Objective:
    """Return what the failure of a role does to the objective at once: a candidate under review is rejected."""
    if role not in (Role.CRITIC, Role.AUDIT) or objective.status is not Status.COMPLETE_CANDIDATE:
        return objective
    review = f"The {role} could not finish ({interruption(role, kind, message)}), so the claim is not proven."
    return transitions.reject_completion_candidate(objective, review, run_id=run_id, now=now)


def apply_unobserved_recovery(objective: Objective, interrupted: str, *, now: int) -> Objective:
    """Return the objective after a role that stopped and that nobody looked after."""
    return transitions.record_recovery(objective, interrupted, "", None, now=now)


def interruption(role: Role, kind: FailureKind, message: str) -> str:
    """Return one line about how a role was interrupted."""
    detail = trim(cut_bytes(sendable(message), ITEM_BYTES))
    return f"{role} {kind}: {detail}" if detail else f"{role} {kind}"


def _without_tools(evidence: Evidence) -> str:
    if evidence.tool_calls <= 0:
        return "without a tool call"
    return "with only failed tool calls" if evidence.tool_errors >= evidence.tool_calls else ""


def _worker_rejected(
    objective: Objective, run_id: str, verdict: str, reason: str, remaining: tuple[str, ...], now: int
) -> Outcome:
    review = f"The worker's report was not accepted: {reason}"
    objective = transitions.reject_worker_report(objective, run_id, review, remaining, now=now)
    return Outcome(objective, verdict, review, reason, rejected=True)


def _candidate_rejected(
    objective: Objective, run_id: str, verdict: str, review: str, missing: tuple[str, ...], now: int
) -> Outcome:
    objective = transitions.reject_completion_candidate(objective, review, missing, run_id=run_id, now=now)
    return Outcome(objective, verdict, review, review, rejected=True)


def _recovered(objective: Objective, interrupted: str, reason: str, now: int) -> Outcome:
    objective = apply_unobserved_recovery(objective, interrupted, now=now)
    return Outcome(objective, "invalid", f"Nothing of use came from the observer: {reason}", reason, rejected=True)


def _bounded(report: _Report) -> _Report:
    """Return `report` with its texts cut to what is recorded; what was left out is said."""
    fields: dict[str, Any] = asdict(report)
    for name, value in fields.items():
        if isinstance(value, tuple):
            fields[name] = _bounded_list(value)
        elif type(value) is str:
            fields[name] = _cut(value, TEXT_BYTES)
    return type(report)(**fields)


def _bounded_list(items: tuple[str, ...]) -> tuple[str, ...]:
    kept: list[str] = []
    room = LIST_BYTES
    for item in items:
        cut = _cut(item, ITEM_BYTES)
        room -= byte_length(cut)
        if room < 0:
            return (*kept, f"… and {len(items) - len(kept)} more")
        kept.append(cut)
    return tuple(kept)


def _cut(text: str, limit: int) -> str:
    return text if byte_length(text) <= limit else trim(cut_bytes(text, limit)) + " …"
