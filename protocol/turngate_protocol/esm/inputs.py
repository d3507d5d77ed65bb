"""What the machine can be told: each a fact or a wish that some message carried, as data.

The edge has checked ids against their alphabet and sizes against their limits. Times and ids come with the message or
from the caller; a runner's name comes from the subject it was allowed to publish on, never from the message. Nothing
here decides anything: `continuation` has the table of what follows.
"""

from enum import StrEnum

from msgspec import Struct

from turngate_protocol.esm.classify import FailureKind
from turngate_protocol.esm.evidence import Evidence


class TimerKind(StrEnum):
    """What a timer is for."""

    CONTINUATION = "continuation"
    WATCHDOG = "watchdog"


class Start(Struct, frozen=True, kw_only=True):
    """Somebody wants the next continuation now, whatever delay is running.

    Attributes:
        run_id: the base run id, never one that was used before; None to have it counted from the objective's id.
        id: the id of the command.
        actor: who wants it.
    """

    run_id: str | None = None
    id: str = ""
    actor: str = ""


class Claim(Struct, frozen=True, kw_only=True):
    """A runner asks whether it may start a role run.

    Attributes:
        role_run_id: the role run that it was offered.
        generation: the generation of the offer.
        claim_id: an id of its own for this attempt.
        runner: the runner.
        pool: the pool that the offer came from, empty when it does not matter.
    """

    role_run_id: str
    generation: int
    claim_id: str
    runner: str
    pool: str = ""


class Release(Struct, frozen=True, kw_only=True):
    """A runner gives back a role run whose agent it has not started."""

    role_run_id: str
    generation: int
    claim_id: str
    runner: str


class RoleReported(Struct, frozen=True, kw_only=True):
    """A role run ended with a final answer.

    Attributes:
        role_run_id: the role run.
        generation: its generation.
        claim_id: the claim under which it ran.
        runner: who ran it.
        response: the final answer.
        tokens: what it used.
        duration_ms: how long it took.
        evidence: the tool calls that the runner saw.
    """

    role_run_id: str
    generation: int
    claim_id: str
    runner: str
    response: str
    tokens: int = 0
    duration_ms: int = 0
    evidence: Evidence = Evidence()


class RoleFailed(Struct, frozen=True, kw_only=True):
    """A role run ended without one; the attributes are those of `RoleReported`, and how and why it failed."""

    role_run_id: str
    generation: int
    claim_id: str
    runner: str
    kind: FailureKind
    message: str = ""
    tokens: int = 0
    duration_ms: int = 0
    evidence: Evidence = Evidence()


class Timer(Struct, frozen=True, kw_only=True):
    """A timer that the machine wanted is due.

    Attributes:
        kind: which one.
        generation: the generation that it was set in.
        at: when it was set for, in milliseconds since the epoch. With the generation it tells this timer from others.
        runner_present: for the watchdog, whether the runner that holds the role run was lately heard to hold it. A
            runner that started again under the same name is there, and does not hold it any more.
    """

    kind: TimerKind
    generation: int
    at: int
    runner_present: bool = True


class Create(Struct, frozen=True, kw_only=True):
    """A person gives the session an objective.

    Attributes:
        text: what is to be achieved.
        esm_id: the id of the objective, never one that was used before, at most 100 characters.
        pool: the pool to prefer, empty to keep the session's.
        work_dir: where the agents work, empty to keep the session's.
        mode: the mode that they are run in, empty to keep the session's.
        id: the id of the command.
        actor: who commands it.
    """

    text: str
    esm_id: str
    pool: str = ""
    work_dir: str = ""
    mode: str = ""
    id: str = ""
    actor: str = ""


class Edit(Struct, frozen=True, kw_only=True):
    """A person gives the objective a new text."""

    text: str
    id: str = ""
    actor: str = ""


class Pause(Struct, frozen=True, kw_only=True):
    """A person stops the objective for now."""

    id: str = ""
    actor: str = ""


class Resume(Struct, frozen=True, kw_only=True):
    """A person lets a stopped objective go on."""

    id: str = ""
    actor: str = ""


class Clear(Struct, frozen=True, kw_only=True):
    """A person takes the objective away."""

    id: str = ""
    actor: str = ""


class Guide(Struct, frozen=True, kw_only=True):
    """A person says something to whoever works on the objective next."""

    text: str
    id: str = ""
    actor: str = ""


class Configure(Struct, frozen=True, kw_only=True):
    """A person chooses where and how the agents run; what is empty stays as it is."""

    pool: str = ""
    work_dir: str = ""
    mode: str = ""
    id: str = ""
    actor: str = ""


class Update(Struct, frozen=True, kw_only=True):
    """A model says, with its tool, that the objective is complete or blocked.

    Attributes:
        status: `complete` or `blocked`.
        reason: why.
        run_id: the run that it is part of: a base run id, a role run id, or the id of some other agent's run.
        generation: the generation of its role run, None when it is no role run of ours.
        id: the id of the command.
        actor: who it is.
    """

    status: str
    reason: str
    run_id: str = ""
    generation: int | None = None
    id: str = ""
    actor: str = ""


Command = Create | Edit | Pause | Resume | Clear | Guide | Configure | Update
Input = Start | Claim | Release | RoleReported | RoleFailed | Timer | Command
