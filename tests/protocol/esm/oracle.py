"""The rules told serially: one run after the other, nobody dies, nothing comes twice.

The oracle knows the objective, the guidance and the one role run that may speak, and follows every message with the
plain transitions and judgements. It knows nothing of revisions, timers, causes, delays or effects. Whatever the machine
makes of an interleaving, its objective must be the oracle's. `sound` holds what must be true of every state by itself.
"""

from dataclasses import dataclass

import msgspec

from turngate_protocol.esm import (
    CauseType,
    Claim,
    Clear,
    Configure,
    Create,
    DispatchRole,
    Edit,
    EsmState,
    FailureKind,
    Guidance,
    Guide,
    Input,
    Objective,
    OpenInbox,
    Pause,
    Phase,
    Release,
    Resume,
    Role,
    RoleFailed,
    RoleReported,
    SetTimer,
    Start,
    Status,
    Timer,
    TimerKind,
    Update,
    can_auto_run,
    classify_failure,
    judgement,
    transitions,
    wants,
)
from turngate_protocol.esm.guidance import add_guidance, consume_guidance

SUFFIX = {"worker": "worker", "critic": "critic", "audit": "audit", "recovery": "recovery-observer"}
Result = RoleReported | RoleFailed


@dataclass
class Speaker:
    """The one role run that may speak."""

    base: str
    role: Role
    interruption: str = ""
    holder: tuple[str, str] | None = None
    carried: tuple[str, ...] = ()
    text: str = ""

    @property
    def id(self) -> str:
        return f"{self.base}-{SUFFIX[self.role]}"


class Oracle:
    """What the rules give when they are followed one after the other.

    `rests` says whether the machine holds that a pause changes nothing; whoever drives both sets it.
    """

    def __init__(self) -> None:
        self.objective: Objective | None = None
        self.queue: tuple[Guidance, ...] = ()
        self.speaker: Speaker | None = None
        self.generation = 0
        self.runs = 0
        self.guided = 0
        self.owed: dict[tuple[str, str, str], str] = {}
        self.proven = ""
        self.rests = False

    def follow(self, told: Input, after: EsmState, now: int) -> None:
        """Take in a message that the machine accepted; `after` is what it made of it."""
        match told:
            case Start():
                if can_auto_run(self.objective) and self.speaker is None:
                    self._begin(told.run_id, now)
            case Claim():
                self._claim(told)
            case Release():
                if self._holds(told) and self.speaker:
                    self.owed.pop((told.role_run_id, told.claim_id, told.runner))
                    self.speaker.holder, self.speaker.carried = None, ()
            case RoleReported() | RoleFailed():
                self._result(told, now)
            case Timer():
                self._timer(told, after, now)
            case _:
                self._command(told, now)

    def agrees(self, state: EsmState) -> None:
        """Hold the machine's state against the serial one."""
        assert state.objective == self.objective
        assert state.guidance == self.queue
        assert (state.generation, state.runs) == (self.generation, self.runs)
        run = state.continuation.role_run if state.continuation else None
        assert (run.id if run else None) == (self.speaker.id if self.speaker else None)
        if run is not None and self.speaker is not None:
            assert ((run.claim_id, run.runner) if run.claim_id else None) == self.speaker.holder
            assert run.guidance == self.speaker.carried
        if state.objective is not None and state.objective.status is Status.COMPLETE:
            assert self.proven == state.objective.text

    def _begin(self, run_id: str | None, now: int) -> None:
        assert self.objective is not None
        self.runs += 1
        self.generation += 1
        candidate = self.objective.status is Status.COMPLETE_CANDIDATE
        phase = Phase.CRITIC if candidate else Phase.WORKER
        if self.objective.phase is not phase:
            self.objective = transitions.set_phase(self.objective, phase, now=now)
        base = f"{self.objective.esm_id}-{self.runs}" if run_id is None else run_id
        self.speaker = Speaker(base, Role.CRITIC if candidate else Role.WORKER)

    def _claim(self, told: Claim) -> None:
        assert self.speaker is not None
        assert self.objective is not None
        assert (told.role_run_id, told.generation) == (self.speaker.id, self.generation)
        mine = (told.claim_id, told.runner)
        assert self.speaker.holder in (None, mine), "two claims hold one role run"
        if self.speaker.holder is None:
            self.speaker.holder, self.speaker.text = mine, self.objective.text
            self.owed[told.role_run_id, *mine] = self.objective.esm_id
            if self.speaker.role is not Role.RECOVERY:
                self.speaker.carried = tuple(item.id for item in self.queue[:100])

    def _holds(self, told: Release | Result) -> bool:
        return (
            self.speaker is not None
            and self.speaker.holder is not None
            and (self.speaker.id, self.generation, *self.speaker.holder)
            == (told.role_run_id, told.generation, told.claim_id, told.runner)
        )

    def _result(self, told: Result, now: int) -> None:
        owed = self.owed.pop((told.role_run_id, told.claim_id, told.runner), None)
        if self.objective is not None and owed == self.objective.esm_id:
            self.objective = transitions.account_usage(self.objective, told.tokens, told.duration_ms, now=now)
        if not self._holds(told):
            return
        assert owed is not None, "a result was applied whose usage had been counted before"
        if isinstance(told, RoleReported):
            self._reported(told, now)
        else:
            self._failed(told, now)

    def _reported(self, told: RoleReported, now: int) -> None:
        speaker, objective = self._now_speaking()
        if speaker.role is Role.RECOVERY:
            found = judgement.apply_recovery(
                objective, speaker.base, speaker.interruption, told.response, told.evidence, now=now
            )
            self.objective, self.speaker = found.objective, None
            return
        if speaker.role is Role.WORKER:
            objective = transitions.reopen(objective, now=now)
            outcome = judgement.apply_worker(objective, speaker.base, told.response, told.evidence, now=now)
        else:
            outcome = judgement.apply_review(
                objective, speaker.base, speaker.role, told.response, told.evidence, now=now
            )
        self.objective = outcome.objective
        self.queue = consume_guidance(self.queue, speaker.carried)
        if outcome.completed:
            assert speaker.role is Role.AUDIT
            self.proven = speaker.text
        if self.objective.status is Status.COMPLETE_CANDIDATE:
            self.speaker = Speaker(speaker.base, Role.CRITIC if speaker.role is Role.WORKER else Role.AUDIT)
            return
        self.speaker = None
        if not (outcome.rejected and speaker.role is Role.WORKER):
            self.objective = transitions.finish_run(self.objective, speaker.base, now=now)

    def _failed(self, told: RoleFailed, now: int) -> None:
        speaker, objective = self._now_speaking()
        kind = classify_failure(told.kind, told.message)
        what = judgement.interruption(speaker.role, kind, told.message)
        self.speaker = None
        if speaker.role is Role.RECOVERY:
            self.objective = transitions.record_recovery(objective, speaker.interruption, "", None, now=now)
            return
        if speaker.role is Role.WORKER:
            objective = transitions.reopen(objective, now=now)
        objective = judgement.apply_interruption(objective, speaker.base, speaker.role, kind, told.message, now=now)
        match kind:
            case FailureKind.DEADLINE | FailureKind.LOST:
                self.objective = objective
                self.speaker = Speaker(speaker.base, Role.RECOVERY, what)
            case FailureKind.INCOMPLETE | FailureKind.TRANSPORT:
                self.objective = transitions.record_recovery(objective, what, "", None, now=now)
            case FailureKind.USAGE_LIMIT:
                self.objective = transitions.mark_usage_limited(objective, now=now)
            case _:
                self.objective = transitions.pause(objective, now=now)

    def _timer(self, told: Timer, after: EsmState, now: int) -> None:
        """Which timer is due is the machine's own business; what follows is not."""
        cause = after.cause
        if cause is None or told.generation != self.generation:
            return
        if told.kind is TimerKind.CONTINUATION:
            if self.speaker is None and cause.type is CauseType.CONTINUATION_STARTED:
                self._begin(None, now)
        elif cause.type in (CauseType.ROLE_FAILED, CauseType.RECOVERY_FAILED) and self._silent(cause.claim_id):
            assert self.speaker is not None
            assert self.speaker.holder is not None
            claim_id, runner = self.speaker.holder
            kind = FailureKind(cause.reason)
            message = cause.message.split(": ", 1)[1]
            self._failed(
                RoleFailed(
                    role_run_id=self.speaker.id,
                    generation=self.generation,
                    claim_id=claim_id,
                    runner=runner,
                    kind=kind,
                    message=message,
                ),
                now,
            )

    def _silent(self, claim_id: str) -> bool:
        return self.speaker is not None and self.speaker.holder is not None and self.speaker.holder[0] == claim_id

    def _command(self, told: Input, now: int) -> None:
        match told:
            case Create():
                self.objective = transitions.create(self.objective, "s1", told.esm_id, told.text, now=now)
                self.runs = 0
                self._fence()
            case Edit():
                self.objective = transitions.reopen(transitions.edit(self.objective, told.text, now=now), now=now)
                self._fence()
            case Pause():
                paused_by_person = self.objective is not None and self.objective.status is Status.PAUSED
                if not (paused_by_person and self.speaker is None and self.rests):
                    self.objective = transitions.pause(self.objective, now=now)
                    self._fence()
            case Resume():
                self.objective = transitions.resume(self.objective, now=now)
            case Clear():
                if self.objective is not None:
                    self.objective, self.runs = None, 0
                    self._fence()
            case Guide():
                self.guided += 1
                self.queue = add_guidance(self.queue, self.objective, f"g{self.guided}", told.text, now=now)
            case Update():
                self._update(told, now)
            case Configure():
                pass
            case _:
                raise AssertionError(told)

    def _update(self, told: Update, now: int) -> None:
        speaker = self.speaker
        ours = speaker is not None and told.run_id in (speaker.base, speaker.id)
        run_id = speaker.base if ours and speaker else told.run_id
        if ours and speaker:
            assert (speaker.role, speaker.holder is None) == (Role.WORKER, False), "only a worker that runs may claim"
        elif self.objective is not None:
            assert not told.run_id.startswith(f"{self.objective.esm_id}-"), "a run that is over claimed something"
        self.objective = transitions.update_from_model(self.objective, told.status, told.reason, run_id, now=now)
        status = self.objective.status
        if status is Status.BLOCKED or (status is Status.COMPLETE_CANDIDATE and not ours):
            self._fence()

    def _fence(self) -> None:
        self.generation += 1
        self.speaker = None

    def _now_speaking(self) -> tuple[Speaker, Objective]:
        assert self.speaker is not None
        assert self.objective is not None
        return self.speaker, self.objective


def sound(state: EsmState) -> None:
    """Check what must be true of every state by itself."""
    runs = can_auto_run(state.objective)
    effects = wants(state)
    offers = [effect for effect in effects if isinstance(effect, DispatchRole)]
    timers = [effect for effect in effects if isinstance(effect, SetTimer)]
    if state.continuation is not None:
        assert runs, "a role runs for what can't run"
        assert state.next_at is None
        assert len(offers) == (state.continuation.role_run.claim_id == "")
    else:
        assert not offers
        assert (state.next_at is not None) == runs, "an objective that can run wants its next continuation"
    assert len(timers) == runs, "what can run is never without the timer that moves it on, what can't costs nothing"
    stopped = state.objective is not None and state.objective.status in (Status.BLOCKED, Status.USAGE_LIMITED)
    assert not stopped or state.halt is not None, "what waits for a person says so"
    assert state.halt is None or not runs
    paused = state.objective is not None and state.objective.status is Status.PAUSED
    assert any(isinstance(effect, OpenInbox) for effect in effects) == (state.halt is not None or paused)
    assert len({gone.claim_id for gone in state.abandoned}) == len(state.abandoned)


def saved(state: EsmState) -> EsmState:
    """Return `state` as another process reads it."""
    return msgspec.json.decode(msgspec.json.encode(state), type=EsmState)
