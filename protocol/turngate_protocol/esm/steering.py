"""What a running agent is told between its steps: stop, go on, or that its objective changed.

A source belongs to one agent run and gives out each version of an objective at most once, and only while the objective
is active: a paused, blocked, limited or complete objective steers nobody. It never starts a run. The message is
injected by the system beside the conversation; the system prompt of the run stays as it was.
"""

from enum import StrEnum

from msgspec import Struct

from turngate_protocol.esm.objective import Objective, Status
from turngate_protocol.esm.prompts import steering_prompt
from turngate_protocol.esm.state import EsmState


class SteeringSource:
    """The steering of one agent run.

    Args:
        seen: the version that the agent was started with, 0 when it knows none.
    """

    def __init__(self, seen: int = 0) -> None:
        self.seen = seen

    def next(self, objective: Objective | None) -> str | None:
        """Return a message when `objective` is active and newer than what the agent knows, else None."""
        if objective is None or objective.status is not Status.ACTIVE or objective.version <= self.seen:
            return None
        self.seen = objective.version
        return steering_prompt(objective)


class BeatAction(StrEnum):
    """What a runner does about a role run that it holds."""

    CONTINUE = "continue"
    CANCEL = "cancel"
    STEER = "steer"


class BeatReply(Struct, frozen=True, omit_defaults=True):
    """The answer to a beat about one role run.

    Attributes:
        action: what to do.
        message: for `steer`, what to tell the agent; for `cancel`, why.
        version: the version of the objective that the agent knows afterwards, to be sent with the next beat.
    """

    action: BeatAction
    message: str = ""
    version: int = 0


def beat(state: EsmState, role_run_id: str, generation: int, claim_id: str, runner: str, seen: int = 0) -> BeatReply:
    """Return what a runner that says it holds a role run should do about it.

    Args:
        state: the newest state of the session.
        role_run_id: the role run that the runner says it holds.
        generation: its generation.
        claim_id: the claim.
        runner: the runner.
        seen: the version that the last reply named, 0 before the first.
    """
    run = state.continuation.role_run if state.continuation else None
    claimed = (role_run_id, generation, claim_id, runner)
    if run is None or not claim_id or claimed != (run.id, state.generation, run.claim_id, run.runner):
        reason = next((gone.reason for gone in state.abandoned if gone.claim_id == claim_id), "not_wanted")
        return BeatReply(BeatAction.CANCEL, reason)
    source = SteeringSource(max(seen, run.version))
    message = source.next(state.objective)
    if message is None:
        return BeatReply(BeatAction.CONTINUE, version=source.seen)
    return BeatReply(BeatAction.STEER, message, source.seen)
