"""The messages of long objectives: what people command, what runners claim and report, what timers bring.

As those of `messages`: frozen, growing only by fields with defaults, times in ms since the epoch. A runner is named by
the subject that it may publish on and never by a body. What an objective and a role run are is the protocol's to say:
its Structs travel as they are. Who is alive is in `beats`.
"""

from typing import Final

from msgspec import Struct

from turngate_contracts.beats import BEAT_SCHEMAS
from turngate_protocol.esm.activity import Activity
from turngate_protocol.esm.classify import FailureKind
from turngate_protocol.esm.evidence import Evidence
from turngate_protocol.esm.inputs import TimerKind
from turngate_protocol.esm.objective import Objective, Role, Status
from turngate_protocol.esm.roles import RoleRequest
from turngate_protocol.esm.state import Cause, EsmState

MAX_PATH: Final = 4_096
"""Longest work directory, in UTF-8 bytes."""
MAX_RUN_ID: Final = 110
"""Longest base run id, in characters: the id of a role run has its role behind it and is still an id."""
MAX_PAGE: Final = 1_000
"""Most entries of one page."""

# What runners are offered, claim, and report


class RoleOffer(Struct, frozen=True, omit_defaults=True):
    """A role run that wants a runner: a ticket to claim, without its prompt. A newer `revision` replaces an older."""

    session: str
    role_run: str
    role: Role
    generation: int
    pool: str
    wanted_at: int
    revision: int = 0


class ClaimRole(Struct, frozen=True, omit_defaults=True):
    """Ask whether this runner may start a role run. The same `claim` again gets the same answer.

    The pool of the offer stands in the subject.
    """

    session: str
    role_run: str
    generation: int
    claim: str


class RoleClaimed(Struct, frozen=True):
    """The runner holds the role run now, and this is all that it needs to run it."""

    request: RoleRequest


class ReleaseRole(Struct, frozen=True):
    """Give a role run back, so that it is offered again: its agent was not started, or was stopped with the runner."""

    session: str
    role_run: str
    generation: int
    claim: str


class RoleReleased(Struct, frozen=True):
    """The role run is not held by that claim, whether it was `released` just now or had been given up before."""

    released: bool


class RoleEnded(Struct, frozen=True, omit_defaults=True):
    """How a role run ended: with the agent's final answer, or with a `failure`. Numbers come from the runner."""

    session: str
    runner: str
    role_run: str
    generation: int
    claim: str
    response: str = ""
    failure: FailureKind | None = None
    message: str = ""
    tokens: int = 0
    duration_ms: int = 0
    evidence: Evidence = Evidence()


class StartObjective(Struct, frozen=True, omit_defaults=True):
    """Have the next continuation of a session started now; `run_id` where its base id matters."""

    session: str
    actor: str
    op: str
    run_id: str = ""


class RoleCancelled(Struct, frozen=True):
    """A role run was given up: stop it. The answer to the next beat says the same."""

    session: str
    role_run: str
    generation: int
    claim: str
    reason: str


class ObjectiveDue(Struct, frozen=True):
    """What a timer of an objective says; the state decides whether it still means anything."""

    session: str
    kind: TimerKind
    generation: int
    at: int


# What people, services and models command


class CreateObjective(Struct, frozen=True, omit_defaults=True):
    """Give a session an objective. What is empty of `pool`, `work_dir` and `mode` stays the session's."""

    session: str
    text: str
    pool: str = ""
    work_dir: str = ""
    mode: str = ""
    op: str = ""


class EditObjective(Struct, frozen=True, omit_defaults=True):
    """Give the objective a new text; what ran for the old one can't complete it any more."""

    session: str
    text: str
    op: str = ""


class PauseObjective(Struct, frozen=True, omit_defaults=True):
    """Stop the objective for now."""

    session: str
    op: str = ""


class ResumeObjective(Struct, frozen=True, omit_defaults=True):
    """Let a stopped objective go on."""

    session: str
    op: str = ""


class ClearObjective(Struct, frozen=True, omit_defaults=True):
    """Take the objective away."""

    session: str
    op: str = ""


class GuideObjective(Struct, frozen=True, omit_defaults=True):
    """Say something to whoever works on the objective next."""

    session: str
    text: str
    op: str = ""


class RunObjective(Struct, frozen=True, omit_defaults=True):
    """Have the next continuation started now, whatever delay is running; `run_id` where its base id matters."""

    session: str
    run_id: str = ""
    op: str = ""


class ConfigureObjective(Struct, frozen=True, omit_defaults=True):
    """Choose where and how the agents run; what is empty stays as it is."""

    session: str
    pool: str = ""
    work_dir: str = ""
    mode: str = ""
    op: str = ""


class UpdateObjective(Struct, frozen=True, omit_defaults=True):
    """What a model says with its tool: the objective is `complete` or `blocked`.

    `run` and `generation` are those of the role run that the model works for, if it does for one.
    """

    session: str
    status: str
    reason: str
    run: str = ""
    generation: int | None = None
    op: str = ""


class ObjectiveStands(Struct, frozen=True, omit_defaults=True):
    """Where the objective stands after a command; `repeated` when this very command had been taken before."""

    session: str
    revision: int
    activity: Activity
    objective: Objective | None = None
    repeated: bool = False


class GetObjective(Struct, frozen=True):
    """Ask what is known of a session's objective."""

    session: str


class ObjectiveFound(Struct, frozen=True, omit_defaults=True):
    """What is known, at `revision`. `runners` could take the role that is wanted or runs; 0 and it waits for one."""

    state: EsmState
    revision: int
    activity: Activity
    text: str
    runners: int = 0


class ListObjectives(Struct, frozen=True, omit_defaults=True):
    """Ask for objectives by session; `cursor` is the last page's, `status` one status only.

    `unattended`: only those whose role waits for a runner while no live one takes it.
    """

    cursor: str = ""
    limit: int = 100
    status: Status | None = None
    unattended: bool = False


class ObjectiveEntry(Struct, frozen=True, omit_defaults=True):
    """What a list shows of an objective; `title` is the start of its text, `runners` as for ObjectiveFound."""

    session: str
    revision: int
    activity: Activity
    status: Status
    phase: str
    title: str
    pool: str = ""
    at: int = 0
    runs: int = 0
    tokens_used: int = 0
    time_used_ms: int = 0
    blocked_count: int = 0
    rejection_count: int = 0
    recovery_count: int = 0
    remaining: int = 0
    guidance: int = 0
    runners: int = 0


class ObjectivesPage(Struct, frozen=True, omit_defaults=True):
    """A page of objectives, which may hold fewer than asked for. Ask again with `cursor` while `more`."""

    entries: tuple[ObjectiveEntry, ...]
    cursor: str = ""
    more: bool = False


class GetHistory(Struct, frozen=True, omit_defaults=True):
    """Ask what happened to a session's objectives, oldest first; `cursor` is the last page's.

    `before`: instead, ask for the last things that happened before this change of the session, in the same order; one
    more than the state's `revision` gives the newest. The page's first entry says by its revision where to go on.
    """

    session: str
    cursor: str = ""
    limit: int = 100
    before: int = 0


class HistoryPage(Struct, frozen=True, omit_defaults=True):
    """A page of what happened. Ask again with `cursor` while `more`; later too, to learn what is new.

    A page before a change has no cursor; its `more` says that there is something older.
    """

    entries: tuple[Cause, ...]
    cursor: str = ""
    more: bool = False


ESM_SCHEMAS: Final[dict[type[Struct], str]] = {
    RoleOffer: "role_offer.v1",
    ClaimRole: "claim_role.v1",
    RoleClaimed: "role_claimed.v1",
    ReleaseRole: "release_role.v1",
    RoleReleased: "role_released.v1",
    RoleEnded: "role_ended.v1",
    StartObjective: "start_objective.v1",
    RoleCancelled: "role_cancelled.v1",
    ObjectiveDue: "objective_due.v1",
    **BEAT_SCHEMAS,
    CreateObjective: "create_objective.v1",
    EditObjective: "edit_objective.v1",
    PauseObjective: "pause_objective.v1",
    ResumeObjective: "resume_objective.v1",
    ClearObjective: "clear_objective.v1",
    GuideObjective: "guide_objective.v1",
    RunObjective: "run_objective.v1",
    ConfigureObjective: "configure_objective.v1",
    UpdateObjective: "update_objective.v1",
    ObjectiveStands: "objective_stands.v1",
    GetObjective: "get_objective.v1",
    ObjectiveFound: "objective_found.v1",
    ListObjectives: "list_objectives.v1",
    ObjectivesPage: "objectives_page.v1",
    GetHistory: "get_history.v1",
    HistoryPage: "history_page.v1",
    EsmState: "objective_state.v1",
}
"""The name and version of every message of objectives; `messages.SCHEMAS` holds them too."""
