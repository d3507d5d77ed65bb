"""What can be wrong with an operation on an objective, as a closed set of typed errors.

Every error carries a kind, one sentence that names the value and the way out, and the facts as attributes and as
`details` ready for JSON. Text of a model or a person gets into a sentence only cut short and with its control
characters made visible. A role's report that is invalid is an error here and data to the machine that asked for it.
"""

from typing import Any, ClassVar, Final

from turngate_protocol.esm.objective import Objective, Status
from turngate_protocol.text import visible

_SHOWN_CHARACTERS: Final = 60

_WAITS: Final = "it waits until a person resumes it"
_REMEDIES: Final[dict[Status, str]] = {
    Status.ACTIVE: "it is being worked on",
    Status.PAUSED: _WAITS,
    Status.BLOCKED: _WAITS,
    Status.USAGE_LIMITED: _WAITS,
    Status.COMPLETE_CANDIDATE: "its claim is being reviewed and it goes on by itself",
    Status.COMPLETE: "it is done, create the next one",
}
"""What to know about an objective that something can't be done to."""


class EsmError(Exception):
    """The base of every error of this package.

    Attributes:
        kind: which kind it is, the same for every error of a class.
        message: one sentence that names the value and the way out.
        details: the facts, ready for JSON.
    """

    kind: ClassVar[str] = "error"

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.details = details


class NotFoundError(EsmError):
    """The session has no objective."""

    kind = "not_found"

    def __init__(self) -> None:
        super().__init__("This session has no objective: create one first.")


class ObjectiveExistsError(EsmError):
    """The session already has an objective that is not complete.

    Attributes:
        objective: that objective.
    """

    kind = "objective_exists"

    def __init__(self, objective: Objective) -> None:
        super().__init__(
            f"This session already has an objective that is {objective.status}: edit it, or clear it first.",
            esm_id=objective.esm_id,
            status=objective.status.value,
        )
        self.objective = objective


class InvalidObjectiveError(EsmError):
    """The text of an objective is blank, too long, or no text that could be sent.

    Attributes:
        problem: what is wrong with it, to be read after "The text of an objective".
        remedy: what to do about it.
        size: its length in UTF-8 bytes.
    """

    kind = "invalid_objective"

    def __init__(self, problem: str, remedy: str, size: int) -> None:
        super().__init__(f"The text of an objective {problem}: {remedy}.", size=size)
        self.problem = problem
        self.remedy = remedy
        self.size = size


class InvalidTransitionError(EsmError):
    """The operation is not allowed from where the objective stands.

    Attributes:
        operation: what was asked for.
        objective: the current objective, unchanged.
    """

    kind = "invalid_transition"

    def __init__(self, operation: str, objective: Objective) -> None:
        super().__init__(
            f"{operation} is not allowed while the objective is {objective.status}: {_REMEDIES[objective.status]}.",
            operation=operation,
            status=objective.status.value,
            phase=objective.phase.value,
            version=objective.version,
        )
        self.operation = operation
        self.objective = objective


class InvalidArgumentError(EsmError):
    """An argument of an operation can't be used.

    Attributes:
        field: which argument.
        value: what was given, cut short.
        remedy: what to give instead.
    """

    kind = "invalid_argument"

    def __init__(self, field: str, value: str, remedy: str) -> None:
        super().__init__(f"{field} can't be {shown(value)}: {remedy}.", field=field, value=shown(value))
        self.field = field
        self.value = value
        self.remedy = remedy


class StaleRunError(EsmError):
    """A run that is not the current one any more wants to change the objective.

    Attributes:
        run_id: the run that asked.
        current_run_id: the run that may, empty when none is under way.
    """

    kind = "stale_run"

    def __init__(self, run_id: str, current_run_id: str) -> None:
        now = f"run {shown(current_run_id)} is" if current_run_id else "no run is"
        super().__init__(
            f"Run {shown(run_id)} may not change the objective any more, {now} under way: stop this run.",
            run_id=shown(run_id),
            current_run_id=current_run_id,
        )
        self.run_id = run_id
        self.current_run_id = current_run_id


class ClaimRefusedError(EsmError):
    """A runner may not start the role run that it asked for.

    Attributes:
        role_run_id: the role run.
        reason: `not_wanted` (over, fenced or never given out), `taken` (another claim has it) or `wrong_pool`.
    """

    kind = "claim_refused"

    def __init__(self, role_run_id: str, reason: str) -> None:
        super().__init__(
            f"Role run {shown(role_run_id)} can't be claimed ({reason}): drop it and take the next one.",
            role_run_id=shown(role_run_id),
            reason=reason,
        )
        self.role_run_id = role_run_id
        self.reason = reason


class InvalidReportError(EsmError):
    """The final answer of a role holds no report that could be used.

    Attributes:
        problem: what is wrong, as a sentence without its full stop.
    """

    kind = "invalid_report"

    def __init__(self, problem: str) -> None:
        super().__init__(f"{problem}: end with one JSON object of the shape that the task asks for.")
        self.problem = problem


def shown(text: str) -> str:
    """Return `text` in quotes, safe to show and short enough for a sentence."""
    cut = text[:_SHOWN_CHARACTERS]
    return f'"{visible(cut)}{"…" if len(text) > len(cut) else ""}"'
