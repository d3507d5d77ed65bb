"""A small world around the pure machine: supervisors, runners, a person and a transport that misbehaves, from one seed.

Every process is a generator that gives way wherever a real one could die. A seeded scheduler picks who goes on, who
crashes there, which message is delivered next and how often, and which answer is lost on its way. Nothing waits: time
is a number that moves to the next timer when it likes. After the storm nothing fails any more, the roles do their
work, and the objective has to reach its end. The same seed gives the same history, step by step.
"""

import json
import random
from collections import Counter
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any

from tests.protocol.esm.oracle import Oracle, saved, sound
from tests.protocol.esm.scenes import BLOCKER, CLAIM, CONTINUE, FAIL, NOW, OBSERVED_BLOCKER, PASS, RESUME
from turngate_protocol.esm import (
    BeatAction,
    CancelRole,
    Claim,
    ClaimRefusedError,
    Clear,
    Configure,
    Create,
    DispatchRole,
    Edit,
    Effect,
    EsmError,
    EsmState,
    Evidence,
    FailureKind,
    Guide,
    Input,
    OpenInbox,
    Pause,
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
    advance,
    beat,
    can_auto_run,
    causes,
    role_request,
    row_of,
    settle,
    wants,
)

STORM = 300
"""Steps in which everything may fail."""

HOUR = 3_600_000

CALM = 4_000
"""Steps after which an objective that nothing disturbs any more must have reached its end."""

GOOD = {Role.WORKER: CLAIM, Role.CRITIC: PASS, Role.AUDIT: PASS, Role.RECOVERY: RESUME}
ANSWERS: dict[Role, list[Any]] = {
    Role.WORKER: [CLAIM, CLAIM, CLAIM, CONTINUE, BLOCKER, CLAIM | {"blockers": ["no wood"]}, "prose"],
    Role.CRITIC: [PASS, PASS, FAIL, "prose"],
    Role.AUDIT: [PASS, FAIL, "prose"],
    Role.RECOVERY: [RESUME, OBSERVED_BLOCKER, "prose"],
}
FAILURES = [FailureKind.INCOMPLETE, FailureKind.DEADLINE, FailureKind.TRANSPORT, FailureKind.USAGE_LIMIT]
WITH_TOOLS = Evidence(1, {"read": 1}, 0)
SETTLING = ("role_finished", "role_failed", "recovery_finished", "recovery_failed")

Process = Generator[bool, None, None]
"""Yields True when it had nothing to do."""


@dataclass(eq=False)
class Message:
    """A message of the work queue: delivered at least once, gone when acknowledged."""

    told: Input
    holders: int = 0


@dataclass(eq=False)
class Ticket:
    """An offer in the stream of work: one a subject, for ever."""

    offer: DispatchRole
    holders: int = 0
    done: bool = False


@dataclass
class World:
    seed: int
    now: int = NOW
    state: EsmState = field(default_factory=lambda: EsmState("s1"))
    stormy: bool = True

    def __post_init__(self) -> None:
        self.dice = random.Random(self.seed)
        self.oracle = Oracle()
        self.queue: list[Message] = []
        self.unseen = False
        self.work: dict[str, Ticket] = {}
        self.timers: dict[TimerKind, SetTimer] = {}
        self.inbox: OpenInbox | None = None
        self.holding: dict[str, Claim] = {}
        self.starts: Counter[str] = Counter()
        self.settled: Counter[str] = Counter()
        self.history: list[str] = []
        self.ids = 0
        makers: list[Callable[[], Process]] = [
            self.handler, self.handler, self.reconciler, self.reconciler, self.clock, self.person,
            lambda: self.runner("r1"), lambda: self.runner("r2"), lambda: self.runner("r3"),
        ]  # fmt: skip
        self.processes = [(maker, maker()) for maker in makers]

    # --- the scheduler ------------------------------------------------------------------------------------------------

    def run(self) -> "World":
        for _ in range(STORM):
            index = self.dice.randrange(len(self.processes))
            maker, process = self.processes[index]
            if self.chance(0.06):
                process.close()
                self.processes[index] = (maker, maker())
                self.unseen = True  # a reconciler may have died; whatever it had not acknowledged is given out again
            else:
                next(process)
        self.stormy = False
        for _ in range(CALM):
            idle = [next(process) for _, process in self.processes]
            if all(idle) and self.at_rest():
                return self
        raise AssertionError(f"the objective did not reach its end: {self.state}")

    def at_rest(self) -> bool:
        return (
            self.state.objective is not None
            and self.state.objective.status is Status.COMPLETE
            and not self.queue
            and not self.unseen
        )

    def chance(self, probability: float) -> bool:
        return self.dice.random() < probability

    def misfortune(self, probability: float) -> bool:
        return self.stormy and self.chance(probability)

    def new_id(self) -> str:
        self.ids += 1
        return f"id{self.ids}"

    # --- the bucket ---------------------------------------------------------------------------------------------------

    def change(self, told: Input) -> Generator[bool, None, EsmState]:
        """Load, advance, save with a compare-and-set, again while it conflicts; raises what the machine raises."""
        while True:
            # Clocks of different processes may be an hour apart.
            state, now = self.state, self.now + (self.dice.choice([-HOUR, HOUR]) if self.misfortune(0.1) else 0)
            yield False
            after = advance(state, told, now)
            if after is state:
                return state
            steps = [(told, after)]
            if self.chance(0.5) and (settled := settle(after, now)) is not after:
                assert after.next_at is not None
                timer = Timer(kind=TimerKind.CONTINUATION, generation=after.generation, at=after.next_at)
                steps.append((timer, settled))
            yield False
            if self.state is state:
                self.save(state, steps, now)
                if not self.misfortune(0.1):
                    mine = self.state
                    yield from self.nudge(mine)
                    return mine
                # Saved, and the answer is lost: whoever saved has to try again, with the same message.

    def save(self, before: EsmState, steps: list[tuple[Input, EsmState]], now: int) -> None:
        for told, after in steps:
            assert after.revision == before.revision + 1
            sound(after)
            self.oracle.rests = row_of(before, told, now).name == "pause of what a person paused"
            self.oracle.follow(told, after, now)
            self.oracle.agrees(after)
            cause = causes(after)[-1]
            if cause.type.value in SETTLING:
                self.settled[f"{cause.role_run_id} {cause.generation}"] += 1
            self.history.append(f"{cause.revision} {cause.type} {cause.role_run_id} {cause.verdict} {cause.reason}")
            before = after
        self.state = saved(before) if self.chance(0.1) else before
        self.unseen = True

    def nudge(self, mine: EsmState) -> Process:
        """Whoever saved may dispatch at once, before any reconciler, or late: the state may have moved on since."""
        if self.chance(0.7):
            yield False
            for effect in wants(mine):
                if isinstance(effect, DispatchRole):
                    self.perform(effect)

    # --- the supervisors ----------------------------------------------------------------------------------------------

    def handler(self) -> Process:
        while True:
            message = self.pull()
            if message is None:
                yield True
                continue
            message.holders += 1
            try:
                yield False
                told = message.told
                if isinstance(told, Timer) and told.kind is TimerKind.WATCHDOG:
                    told = self.look(told)
                yield from self.change(told)
                yield False
                if message in self.queue and not self.misfortune(0.1):
                    self.queue.remove(message)
            finally:
                message.holders -= 1

    def pull(self) -> Message | None:
        """Any message may come next; one that another handler is at may be delivered again."""
        free = [message for message in self.queue if not message.holders or self.misfortune(0.05)]
        return self.dice.choice(free) if free else None

    def look(self, told: Timer) -> Timer:
        run = self.state.continuation.role_run if self.state.continuation else None
        held = run is not None and any(claim.claim_id == run.claim_id for claim in self.holding.values())
        present = held and not self.misfortune(0.1)
        return Timer(kind=told.kind, generation=told.generation, at=told.at, runner_present=present)

    def reconciler(self) -> Process:
        """Perform what the newest state wants; what was performed for an older one may have replaced a newer timer."""
        while True:
            if not self.unseen:
                yield True
                continue
            done = None
            while done is not self.state:
                done = self.state
                yield False
                for effect in wants(done):
                    self.perform(effect)
                    yield False
                    if self.misfortune(0.1):
                        self.perform(effect)
            self.unseen = False

    def perform(self, effect: Effect) -> None:
        match effect:
            case SetTimer():
                self.timers[effect.kind] = effect
            case DispatchRole():
                self.work.setdefault(effect.role_run_id, Ticket(effect))
            case OpenInbox():
                self.inbox = effect
            case CancelRole():
                pass  # a nudge, which may always be lost: the beat is what counts
            case _:
                self.inbox = None

    def clock(self) -> Process:
        while True:
            yield not self.timers
            if self.timers and self.chance(0.3 if self.stormy else 0.1):
                kind = min(self.timers, key=lambda each: self.timers[each].at)
                timer = self.timers.pop(kind)
                self.now = max(self.now, timer.at)
                told = Timer(kind=kind, generation=timer.generation, at=timer.at)
                self.queue += [Message(told) for _ in range(1 + self.misfortune(0.2))]

    # --- the runners --------------------------------------------------------------------------------------------------

    def runner(self, name: str) -> Process:
        self.holding.pop(name, None)  # it has just started: it holds nothing any more
        while True:
            free = [ticket for ticket in self.work.values() if not ticket.done and not ticket.holders]
            if not free:
                yield True
                continue
            ticket = self.dice.choice(free)
            ticket.holders += 1
            try:
                yield False
                ticket.done = yield from self.work_on(name, ticket.offer)
            finally:
                ticket.holders -= 1

    def work_on(self, name: str, offer: DispatchRole) -> Generator[bool, None, bool]:
        """Return whether the ticket is done with."""
        ids: dict[str, Any] = {"role_run_id": offer.role_run_id, "generation": offer.generation}
        ids |= {"claim_id": self.new_id(), "runner": name}
        try:
            state = yield from self.change(Claim(**ids))
        except ClaimRefusedError as refused:
            yield False
            return refused.reason != "taken"
        if not self.is_mine(ids):
            return False
        self.holding[name] = Claim(**ids)
        request = role_request(state)
        yield False
        if self.misfortune(0.05):
            yield from self.change(Release(**ids))
            del self.holding[name]
            return False
        key = f"{offer.role_run_id} {offer.generation}"
        self.starts[key] += 1
        assert self.starts[key] == 1, f"{key} was started twice"
        assert request is not None
        yield from self.run_agent(ids, offer.role)
        del self.holding[name]
        return True

    def is_mine(self, ids: dict[str, Any]) -> bool:
        return beat(self.state, **ids).action is not BeatAction.CANCEL

    def run_agent(self, ids: dict[str, Any], role: Role) -> Process:
        for _ in range(self.dice.randrange(4)):
            yield False
            if self.stormy and role is Role.WORKER and self.chance(0.05):
                yield from self.command(Update(status="complete", reason="done", run_id=ids["role_run_id"]))
        self.queue += [Message(self.result(ids, role)) for _ in range(1 + self.misfortune(0.3))]
        # It holds on until the answer to its beat says that the result was applied, or is not wanted.
        while self.is_mine(ids):
            yield True

    def result(self, ids: dict[str, Any], role: Role) -> Input:
        usage: dict[str, Any] = {"tokens": self.dice.randrange(100), "duration_ms": 5, "evidence": WITH_TOOLS}
        if self.misfortune(0.2):
            return RoleFailed(**ids, **usage, kind=self.dice.choice(FAILURES), message="it broke")
        answer = self.dice.choice(ANSWERS[role]) if self.stormy else GOOD[role]
        return RoleReported(**ids, **usage, response=answer if isinstance(answer, str) else json.dumps(answer))

    # --- the person ---------------------------------------------------------------------------------------------------

    def person(self) -> Process:
        while True:
            yield True
            if self.state.objective is None:
                command: Input = Create(text="a bridge", esm_id=self.new_id(), id=self.new_id())
            elif self.state.objective.status is not Status.COMPLETE and not can_auto_run(self.state.objective):
                command = Resume(id=self.new_id())
            elif self.stormy and self.chance(0.5):
                command = self.whim()
            else:
                continue
            yield from self.command(command)

    def whim(self) -> Input:
        command_id = self.new_id()
        whims: list[Input] = [
            Edit(text=f"bridge {command_id}", id=command_id),
            Pause(id=command_id),
            Clear(id=command_id),
            Guide(text=f"mind {command_id}", id=command_id),
            Guide(text=f"mind {command_id}", id=command_id),
            Start(id=command_id),
            Configure(work_dir=f"/{command_id}", id=command_id),
            Update(status="blocked", reason="no steel", run_id="chat", id=command_id),
            Create(text="another bridge", esm_id=self.new_id(), id=command_id),
        ]
        return self.dice.choice(whims)

    def command(self, command: Input) -> Process:
        for _ in range(1 + self.misfortune(0.2)):  # the answer is lost, so the command is given again
            try:
                yield from self.change(command)
            except EsmError:
                return
