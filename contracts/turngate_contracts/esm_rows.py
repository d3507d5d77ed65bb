"""The rows of long objectives, which `catalogue` has in its tables."""

from typing import Final

from turngate_contracts.beats import Beat, BeatAnswer, ListRunners, RunnerPresence, RunnersPage
from turngate_contracts.errors import ErrorCode
from turngate_contracts.esm import (
    ClaimRole,
    ClearObjective,
    ConfigureObjective,
    CreateObjective,
    EditObjective,
    GetHistory,
    GetObjective,
    GuideObjective,
    HistoryPage,
    ListObjectives,
    ObjectiveDue,
    ObjectiveFound,
    ObjectivesPage,
    ObjectiveStands,
    PauseObjective,
    ReleaseRole,
    ResumeObjective,
    RoleCancelled,
    RoleClaimed,
    RoleEnded,
    RoleOffer,
    RoleReleased,
    RunObjective,
    StartObjective,
    UpdateObjective,
)
from turngate_contracts.progress import PROGRESSED, RoleProgressed
from turngate_contracts.rows import EVERYBODY, Caller, Intake, Mail, Presence, Progress, Request, State, Timer, Work
from turngate_contracts.subjects import Subjects
from turngate_contracts.topology import SUPERVISOR
from turngate_protocol.esm.inputs import TimerKind
from turngate_protocol.esm.objective import OBJECTIVE_BYTES
from turngate_protocol.esm.role_reports import RESPONSE_BYTES
from turngate_protocol.esm.state import CauseType, EsmState

EVENT_PREFIX: Final = "objective."
"""What stands before the type of a cause in the type of its event."""

_COMMANDERS: Final = (Caller.PERSON, Caller.SERVICE)
_STANDS: Final = (ErrorCode.NOT_FOUND, ErrorCode.INVALID_TRANSITION)

ESM_INTAKE: Final = (
    Intake(
        "esm.result",
        RoleEnded,
        Subjects.esm_result,
        ("runner", "session"),
        "esm",
        SUPERVISOR,
        "Say how a role run ended. It is applied once, and only while its claim holds the role run; however it is"
        f" published, it can't do harm. An answer of more than {RESPONSE_BYTES // 1024} KiB holds no report.",
    ),
    Intake(
        "esm.start",
        StartObjective,
        Subjects.esm_start,
        ("session",),
        "esm",
        SUPERVISOR,
        "Have the next continuation of a session started, from a service that does not wait for an answer.",
    ),
)
"""What runners publish, and services without waiting."""

ESM_REQUESTS: Final = (
    Request(
        "esm.create",
        CreateObjective,
        ObjectiveStands,
        SUPERVISOR,
        _COMMANDERS,
        f"Give a session an objective of at most {OBJECTIVE_BYTES // 1024} KiB; its first run is wanted at once.",
        (ErrorCode.INVALID_OBJECTIVE, ErrorCode.OBJECTIVE_EXISTS, ErrorCode.INVALID_ARGUMENT),
    ),
    Request(
        "esm.edit",
        EditObjective,
        ObjectiveStands,
        SUPERVISOR,
        _COMMANDERS,
        "Give an objective a new text. What runs for the old one is stopped and can't complete it.",
        (ErrorCode.INVALID_OBJECTIVE, *_STANDS),
    ),
    Request(
        "esm.pause",
        PauseObjective,
        ObjectiveStands,
        SUPERVISOR,
        _COMMANDERS,
        "Stop an objective until it is resumed.",
        _STANDS,
    ),
    Request(
        "esm.resume",
        ResumeObjective,
        ObjectiveStands,
        SUPERVISOR,
        _COMMANDERS,
        "Let an objective go on that is paused, blocked or limited.",
        _STANDS,
    ),
    Request(
        "esm.clear",
        ClearObjective,
        ObjectiveStands,
        SUPERVISOR,
        _COMMANDERS,
        "Take a session's objective away; its guidance and its history stay.",
    ),
    Request(
        "esm.guide",
        GuideObjective,
        ObjectiveStands,
        SUPERVISOR,
        _COMMANDERS,
        "Say something to whoever works on the objective next; it waits until a role run that carried it was applied.",
        (ErrorCode.NOT_FOUND, ErrorCode.INVALID_ARGUMENT),
    ),
    Request(
        "esm.run",
        RunObjective,
        ObjectiveStands,
        SUPERVISOR,
        _COMMANDERS,
        "Have the next continuation started now. Nothing happens while one is under way, or none may run.",
        (ErrorCode.NOT_FOUND, ErrorCode.INVALID_ARGUMENT),
    ),
    Request(
        "esm.configure",
        ConfigureObjective,
        ObjectiveStands,
        SUPERVISOR,
        _COMMANDERS,
        "Choose the pool, work directory and mode of a session's agents.",
        (ErrorCode.NOT_FOUND, ErrorCode.INVALID_ARGUMENT),
    ),
    Request(
        "esm.update",
        UpdateObjective,
        ObjectiveStands,
        SUPERVISOR,
        (Caller.RUNNER,),
        "Record what a model says with its tool: complete, which is then challenged, or blocked.",
        (*_STANDS, ErrorCode.INVALID_ARGUMENT, ErrorCode.STALE_RUN, ErrorCode.POOL_MISMATCH),
        by_pool=True,
    ),
    Request(
        "esm.get",
        GetObjective,
        ObjectiveFound,
        SUPERVISOR,
        EVERYBODY,
        "Get what is known of a session's objective, and what is going on.",
        (ErrorCode.NOT_FOUND,),
    ),
    Request(
        "esm.list",
        ListObjectives,
        ObjectivesPage,
        SUPERVISOR,
        EVERYBODY,
        "List objectives by session, a page at a time.",
    ),
    Request(
        "esm.history",
        GetHistory,
        HistoryPage,
        SUPERVISOR,
        EVERYBODY,
        "Read what happened to a session's objectives, oldest first, a page at a time.",
    ),
    Request(
        "runner.beat",
        Beat,
        BeatAnswer,
        SUPERVISOR,
        (Caller.RUNNER,),
        "Say that a runner is alive and which role runs it holds, every 5 s. The answer says what to do about each.",
    ),
    Request(
        "runner.list",
        ListRunners,
        RunnersPage,
        SUPERVISOR,
        EVERYBODY,
        "List the runners that are alive and what each of them does.",
    ),
    Request(
        "role.claim",
        ClaimRole,
        RoleClaimed,
        SUPERVISOR,
        (Caller.RUNNER,),
        "Claim a role run that was offered. One claim wins; start no agent without.",
        (ErrorCode.CLAIM_REFUSED,),
        by_pool=True,
    ),
    Request(
        "role.release",
        ReleaseRole,
        RoleReleased,
        SUPERVISOR,
        (Caller.RUNNER,),
        "Give a claimed role run back, so that it is offered again.",
    ),
)
"""What can be asked for about objectives, roles and runners."""

ESM_MAILBOX: Final = (
    Mail("cancel", RoleCancelled, "A role run that the runner holds was given up: it is to stop.", "runner.beat"),
)
"""What a runner is told about its role runs."""

ESM_WORK: Final = (
    Work(
        "role",
        RoleOffer,
        Subjects.role_offer,
        ("pool", "role", "role_run"),
        "work",
        "A role run that wants a runner. Claim it (`role.claim`) before anything is started; when the claim is"
        " refused, acknowledge it and forget it. Acknowledge it once the result is stored.",
    ),
)
"""What pools get to run."""

ESM_STATES: Final = (
    State(
        "objectives",
        EsmState,
        ("session",),
        "A session's objective, its continuation and its guidance, whole in each revision.",
        (*(f"{EVENT_PREFIX}{kind.value}" for kind in CauseType), "objective.inbox_cleared"),
        EVENT_PREFIX,
    ),
)
"""What the bucket of objectives holds."""

ESM_TIMERS: Final = (
    Timer(TimerKind.CONTINUATION.value, ObjectiveDue, "The next continuation of an objective is due."),
    Timer(TimerKind.WATCHDOG.value, ObjectiveDue, "It is time to look after the role run that is under way."),
)
"""What the server brings back at a time."""

ESM_PROGRESS: Final = Progress(
    RoleProgressed,
    PROGRESSED,
    "What an agent says while it works, at most once a second for each role run; gone after some minutes.",
)
"""What is told of running agents."""

ESM_PRESENCE: Final = Presence(
    RunnerPresence, "presence", "A runner that is alive and what it holds; gone when it was not heard of for 30 s."
)
"""Who is alive."""
