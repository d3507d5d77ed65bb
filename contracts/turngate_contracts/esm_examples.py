"""The examples of objectives: the story's session gets one, a worker of its pool holds it, and a person guides it.

As in `examples`, the states are what the machine itself makes of the story.
"""

from typing import Final

from msgspec import Struct

from turngate_contracts import esm as m
from turngate_contracts.beats import Beat, BeatAnswer, HeldAnswer, HeldRole, ListRunners, RunnerPresence, RunnersPage
from turngate_contracts.progress import RoleProgressed
from turngate_contracts.question_examples import Story
from turngate_protocol.esm.activity import activity_of
from turngate_protocol.esm.continuation import advance, settle
from turngate_protocol.esm.evidence import Evidence
from turngate_protocol.esm.inputs import Claim, Create, Guide, Input, RoleReported, TimerKind
from turngate_protocol.esm.objective import Role
from turngate_protocol.esm.present import format_objective
from turngate_protocol.esm.roles import RoleRequest, role_request
from turngate_protocol.esm.state import EsmState, RoleRun, causes
from turngate_protocol.esm.steering import beat

_ESM_ID: Final = "7d41c09a2b6e4f18"
_CLAIM: Final = "b81f3c2d-17"
_INCARNATION: Final = "b81f3c2d"
_WORK_DIR: Final = "/srv/orders"
_TEXT: Final = "Archive the orders that are older than ten years, and prove that no report misses them."
_GUIDANCE: Final = "The finance team reads report 14 on Mondays: test it first."
_ANSWER: Final = (
    '{"status":"continue","summary":"412,000 of 1,204,331 orders are archived","evidence":["make archive-status"],'
    '"remaining_work":["archive the rest","compare report 14"],"blockers":[]}'
)
_PROGRESS: Final = "archives the orders of 2011"
_MINUTE: Final = 60_000


def of_objectives(story: Story) -> tuple[Struct, ...]:
    """Return an example of every message of objectives."""
    created = _step(EsmState(story.session), _create(story), story.began)
    offered = settle(created, story.began)
    claimed = _step(offered, _claim(story, offered), story.began + 900)
    guided = _step(claimed, Guide(text=_GUIDANCE, id=story.op, actor=story.person), story.began + _MINUTE)
    reported = _step(guided, _report(story, guided), story.began + 9 * _MINUTE)
    return (
        *_of_roles(story, offered, claimed),
        *_of_runners(story, guided),
        *_of_commands(story, guided),
        *_of_reads(story, guided, reported),
        guided,
    )


def _of_roles(story: Story, offered: EsmState, claimed: EsmState) -> tuple[Struct, ...]:
    run = _run(offered)
    session, generation = story.session, offered.generation
    return (
        m.RoleOffer(session, run.id, run.role, generation, offered.pool, run.wanted_at, offered.revision),
        m.ClaimRole(session, run.id, generation, _CLAIM),
        m.RoleClaimed(_request(claimed)),
        m.ReleaseRole(session, run.id, generation, _CLAIM),
        m.RoleReleased(released=True),
        m.RoleEnded(
            session,
            story.runner,
            run.id,
            generation,
            _CLAIM,
            _ANSWER,
            tokens=48_211,
            duration_ms=8 * _MINUTE,
            evidence=Evidence(31, {"bash": 24, "read": 7}, 2),
        ),
        m.StartObjective(session, story.person, story.op),
        m.RoleCancelled(session, run.id, generation, _CLAIM, "edited"),
        m.ObjectiveDue(session, TimerKind.WATCHDOG, generation, _run(claimed).check_at),
    )


def _of_runners(story: Story, state: EsmState) -> tuple[Struct, ...]:
    run, at = _run(state), story.began + 2 * _MINUTE
    held = HeldRole(
        story.session, run.id, run.role, state.generation, _CLAIM, run.claimed_at, run.version, _PROGRESS, 12
    )
    pools, roles = (story.pool,), (Role.WORKER, Role.RECOVERY)
    reply = beat(state, run.id, state.generation, _CLAIM, story.runner, run.version)
    presence = RunnerPresence(story.runner, at, _INCARNATION, pools, roles, 4, (held,), story.began - _MINUTE)
    return (
        Beat(_INCARNATION, pools, roles, 4, (held,), story.began - _MINUTE),
        BeatAnswer((HeldAnswer(run.id, _CLAIM, reply.action, reply.message, reply.version),)),
        presence,
        ListRunners(pool=story.pool),
        RunnersPage((presence,), cursor=story.runner),
        RoleProgressed(
            story.session,
            run.id,
            run.role,
            story.runner,
            at,
            held.progress or "runs the tests",
            held.tool_calls,
            held.since,
        ),
    )


def _of_commands(story: Story, state: EsmState) -> tuple[Struct, ...]:
    session, op = story.session, story.op
    return (
        m.CreateObjective(session, _TEXT, story.pool, _WORK_DIR, op=op),
        m.EditObjective(session, f"{_TEXT} Keep the last order of each customer.", op),
        m.PauseObjective(session, op),
        m.ResumeObjective(session, op),
        m.ClearObjective(session, op),
        m.GuideObjective(session, _GUIDANCE, op),
        m.RunObjective(session, op=op),
        m.ConfigureObjective(session, pool="backend-big", op=op),
        m.UpdateObjective(session, "blocked", "The archive has no space left.", _run(state).id, state.generation, op),
        m.ObjectiveStands(session, story.revision, activity_of(state), state.objective),
    )


def _of_reads(story: Story, state: EsmState, reported: EsmState) -> tuple[Struct, ...]:
    objective, activity = state.objective, activity_of(state)
    if objective is None:
        raise TypeError("the story goes another way: there is no objective")
    entry = m.ObjectiveEntry(
        story.session,
        story.revision,
        activity,
        objective.status,
        objective.phase.value,
        objective.text,
        state.pool,
        objective.updated_at,
        state.runs,
        guidance=len(state.guidance),
        runners=1,
    )
    return (
        m.GetObjective(story.session),
        m.ObjectiveFound(state, story.revision, activity, format_objective(objective), 1),
        m.ListObjectives(limit=50),
        m.ObjectivesPage((entry,), cursor=story.session),
        m.GetHistory(story.session, limit=50),
        m.HistoryPage(causes(reported), cursor=f"b.{story.revision + 1}.{reported.revision}"),
    )


def _create(story: Story) -> Create:
    return Create(
        text=_TEXT, esm_id=_ESM_ID, pool=story.pool, work_dir=_WORK_DIR, id=f"{story.op}-1", actor=story.person
    )


def _claim(story: Story, state: EsmState) -> Claim:
    run = _run(state)
    return Claim(role_run_id=run.id, generation=state.generation, claim_id=_CLAIM, runner=story.runner, pool=story.pool)


def _report(story: Story, state: EsmState) -> RoleReported:
    return RoleReported(
        role_run_id=_run(state).id,
        generation=state.generation,
        claim_id=_CLAIM,
        runner=story.runner,
        response=_ANSWER,
        tokens=48_211,
        duration_ms=8 * _MINUTE,
        evidence=Evidence(31, {"bash": 24, "read": 7}, 2),
    )


def _step(state: EsmState, told: Input, now: int) -> EsmState:
    after = advance(state, told, now)
    if after is state:
        raise TypeError(f"the story goes another way: nothing follows from {told}")
    return after


def _run(state: EsmState) -> RoleRun:
    if state.continuation is None:
        raise TypeError("the story goes another way: nothing runs")
    return state.continuation.role_run


def _request(state: EsmState) -> RoleRequest:
    request = role_request(state)
    if request is None:
        raise TypeError("the story goes another way: nobody holds the role run")
    return request
