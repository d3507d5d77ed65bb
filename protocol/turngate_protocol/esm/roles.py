"""What a host is asked to run: one role as a complete request, with the limits that belong to the role.

A host runs an isolated agent and reports; it makes no decision about the objective. The request is built from the
state after the claim, so that its prompt holds the newest text and exactly the guidance that the run may consume.
Nothing here runs anything.
"""

from typing import Final

from msgspec import Struct

from turngate_protocol.esm.objective import Objective, Role
from turngate_protocol.esm.prompts import role_prompt
from turngate_protocol.esm.state import DEFAULT_POLICY, EsmState, Policy

READ_ONLY_TOOLS: Final = ("read", "grep", "find", "ls")
"""What a critic, an audit and an observer may use."""

UNLIMITED: Final = -1
"""No limit of iterations: a long objective must never be cut into something that looks finished."""

RECOVERY_ITERATIONS: Final = 40
"""Iterations of a recovery observer."""


class RoleRequest(Struct, frozen=True, omit_defaults=True):
    """Everything a host needs to run one role.

    Attributes:
        session_id: the session.
        run_id: the role run.
        base_run_id: the run that it is part of.
        generation: its generation, to be given back with the result.
        claim_id: the claim under which it runs, likewise.
        role: the role.
        prompt: the task.
        objective: the objective as the prompt has it.
        work_dir: where to work, on the host.
        mode: the mode to run the agent in.
        tools: the only tools it may use, None for all.
        max_iterations: how many iterations it may take, -1 for any number.
        deadline_ms: how long it may take in milliseconds, 0 for any time.
        guidance: how many texts of people the prompt carries.
    """

    session_id: str
    run_id: str
    base_run_id: str
    generation: int
    claim_id: str
    role: Role
    prompt: str
    objective: Objective
    work_dir: str = ""
    mode: str = ""
    tools: tuple[str, ...] | None = None
    max_iterations: int = UNLIMITED
    deadline_ms: int = 0
    guidance: int = 0


def role_request(state: EsmState, policy: Policy = DEFAULT_POLICY) -> RoleRequest | None:
    """Return the request for the role run that is held in `state`; None when none is.

    A role run that nobody holds has no request yet: what it carries is fixed by the claim.
    """
    continuation, objective = state.continuation, state.objective
    if continuation is None or objective is None or not continuation.role_run.claim_id:
        return None
    run = continuation.role_run
    carried = tuple(item for item in state.guidance if item.id in run.guidance)
    recovery = run.role is Role.RECOVERY
    prompt = role_prompt(run.role, objective, carried, interrupted=run.interrupted, interruption=run.interruption)
    return RoleRequest(
        session_id=state.session_id,
        run_id=run.id,
        base_run_id=continuation.run_id,
        generation=state.generation,
        claim_id=run.claim_id,
        role=run.role,
        prompt=prompt,
        objective=objective,
        work_dir=state.work_dir,
        mode=state.mode,
        tools=None if run.role is Role.WORKER else READ_ONLY_TOOLS,
        max_iterations=RECOVERY_ITERATIONS if recovery else UNLIMITED,
        deadline_ms=policy.observer_ms if recovery else 0,
        guidance=len(carried),
    )
