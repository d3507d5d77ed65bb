"""Any interleaving of commands, claims, results, duplicates and crashes gives what the serial rules give."""

import json
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule

from tests.protocol.esm.oracle import Oracle, saved, sound
from tests.protocol.esm.scenes import (
    BLOCKER,
    CLAIM,
    CONTINUE,
    FAIL,
    NOW,
    OBSERVED_BLOCKER,
    PASS,
    RESUME,
)
from turngate_protocol.esm import (
    Claim,
    Clear,
    Configure,
    Create,
    Edit,
    EsmError,
    EsmState,
    Evidence,
    FailureKind,
    Guide,
    Input,
    Pause,
    Release,
    Resume,
    RoleFailed,
    RoleReported,
    Start,
    Timer,
    TimerKind,
    Update,
    advance,
    row_of,
)

ANSWERS = [
    CLAIM,
    CLAIM,
    CLAIM,
    PASS,
    PASS,
    PASS,
    CONTINUE,
    BLOCKER,
    BLOCKER | {"blockers": ["No Steel"]},
    FAIL,
    RESUME,
    OBSERVED_BLOCKER,
    CLAIM | {"remaining_work": ["paint"]},
    {"verdict": "pass", "review": "unseen"},
]
RUNNERS = st.sampled_from(["r1", "r2"])
IDS = st.sampled_from(["", "", "", "k1", "k2"])
TEXTS = st.sampled_from(["a bridge", "a tunnel"])
USAGE = st.sampled_from([-1, 0, 1, 1000])
EVIDENCE = st.sampled_from([Evidence(2, {}, 0), Evidence(2, {}, 1), Evidence(), Evidence(1, {}, 1)])

Ticket = tuple[str, int]
Agent = dict[str, Any]


class Machine(RuleBasedStateMachine):
    tickets = Bundle("tickets")
    agents = Bundle("agents")
    messages = Bundle("messages")
    timers = Bundle("timers")

    def __init__(self) -> None:
        super().__init__()
        self.state = EsmState("s1")
        self.oracle = Oracle()
        self.claims = 0
        self.objectives = 0
        self.accepted: set[str] = set()

    def tell(self, told: Input) -> bool:
        """Advance both; return whether the machine accepted."""
        before, row = self.state, row_of(self.state, told, NOW).name
        self.oracle.rests = row == "pause of what a person paused"
        try:
            after = advance(before, told, NOW)
        except EsmError:
            assert not isinstance(told, RoleReported | RoleFailed | Timer | Release), "only commands and claims raise"
            return False
        assert advance(before, told, NOW) == after, "the machine is a function of its arguments"
        if after is not before:
            assert after.revision == before.revision + 1
        self.state = after
        if row == "a command comes again":
            assert after is before
            assert getattr(told, "id", "") in self.accepted
            return True
        self.accepted.add(getattr(told, "id", ""))
        self.oracle.follow(told, after, NOW)
        return True

    @rule(text=TEXTS, command=IDS)
    def create(self, text: str, command: str) -> None:
        self.objectives += 1
        self.tell(Create(text=text, esm_id=f"e{self.objectives}", id=command))

    @rule(text=TEXTS)
    def edit(self, text: str) -> None:
        self.tell(Edit(text=text))

    @rule(command=st.sampled_from([Pause(), Resume(), Resume(), Clear(), Configure(pool="gpu")]))
    def command(self, command: Input) -> None:
        self.tell(command)

    @rule(text=TEXTS, command=IDS)
    def guide(self, text: str, command: str) -> None:
        self.tell(Guide(text=text, id=command))

    @rule(status=st.sampled_from(["complete", "blocked", "done"]), whose=st.sampled_from(["", "other", "ours", "old"]))
    def update(self, status: str, whose: str) -> None:
        run = self.state.continuation.role_run.id if whose == "ours" and self.state.continuation else whose
        run = f"e{self.objectives}-0-worker" if whose == "old" else run
        self.tell(Update(status=status, reason="no steel", run_id=run))

    @rule(target=tickets, run_id=st.sampled_from([None, "mine"]))
    def start(self, run_id: str | None) -> Any:
        """A name that is used twice is against the rules; the generation keeps its runs apart all the same."""
        self.tell(Start(run_id=run_id))
        return self.ticket()

    @rule(target=timers)
    def set_timers(self) -> Any:
        """The reconciler sets the timers of this state; they may fire at any time from now on."""
        found = []
        if self.state.next_at is not None:
            found.append((TimerKind.CONTINUATION, self.state.generation, self.state.next_at))
        if self.state.continuation is not None:
            check_at = self.state.continuation.role_run.check_at
            found.append((TimerKind.WATCHDOG, self.state.generation, check_at))
        return multiple(*found)

    @rule(target=tickets, timer=timers, present=st.booleans())
    def fire(self, timer: tuple[TimerKind, int, int], present: bool) -> Any:
        kind, generation, at = timer
        self.tell(Timer(kind=kind, generation=generation, at=at, runner_present=present))
        return self.ticket()

    @rule(target=tickets)
    def dispatch(self) -> Any:
        return self.ticket()

    @rule(target=agents, ticket=tickets, runner=RUNNERS)
    def claim(self, ticket: Ticket, runner: str) -> Any:
        """Any runner may try any ticket at any time; a granted claim is an agent that runs."""
        self.claims += 1
        facts: Agent = {
            "role_run_id": ticket[0],
            "generation": ticket[1],
            "claim_id": f"c{self.claims}",
            "runner": runner,
        }
        if not self.tell(Claim(**facts)):
            return multiple()
        assert self.tell(Claim(**facts)), "a claim that was granted is granted again"
        return facts

    @rule(agent=consumes(agents))
    def release(self, agent: Agent) -> None:
        self.tell(Release(**agent))

    @rule(
        target=messages,
        agent=consumes(agents),
        answer=st.sampled_from(ANSWERS),
        tokens=USAGE,
        evidence=EVIDENCE,
    )
    def finish(self, agent: Agent, answer: dict[str, Any], tokens: int, evidence: Evidence) -> RoleReported:
        response = json.dumps(answer)
        return RoleReported(**agent, response=response, tokens=tokens, duration_ms=tokens, evidence=evidence)

    @rule(target=messages, agent=consumes(agents), kind=st.sampled_from(list(FailureKind)), tokens=USAGE)
    def fail(self, agent: Agent, kind: FailureKind, tokens: int) -> RoleFailed:
        return RoleFailed(**agent, kind=kind, tokens=tokens, message="it broke")

    @rule(target=tickets, message=messages)
    def deliver(self, message: Input) -> Any:
        """Any message comes in any order and as often as it likes."""
        self.tell(message)
        return self.ticket()

    @rule(
        good=st.booleans(),
        answer=st.sampled_from(ANSWERS),
        meanwhile=st.sampled_from(["", "", "", "guide", "update", "edit", "pause", "clear", "lose", "forge"]),
        times=st.sampled_from([1, 1, 2]),
    )
    def run_a_role(self, good: bool, answer: dict[str, Any], meanwhile: str, times: int) -> None:
        """One role from offer to result, with something in between, so that the deep states are reached."""
        if self.state.continuation is None:
            self.tell(Start())
        if self.state.continuation is None or self.state.continuation.role_run.claim_id:
            return
        run, agent = self.state.continuation.role_run, self.agent()
        self.forge(agent, "", "")
        self.tell(Claim(**agent))
        self.meanwhile(meanwhile, agent)
        fitting = {"worker": CLAIM, "recovery": RESUME}.get(run.role.value, PASS)
        response = json.dumps(fitting if good else answer)
        for _ in range(times):
            self.tell(RoleReported(**agent, response=response, evidence=Evidence(1, {}, 0), tokens=5))

    def meanwhile(self, what: str, agent: Agent) -> None:
        match what:
            case "guide":
                self.tell(Guide(text="mind the gap"))
            case "update":
                self.tell(Update(status="complete", reason="done", run_id=agent["role_run_id"]))
            case "edit":
                self.tell(Edit(text="a ferry"))
            case "pause":
                self.tell(Pause())
            case "clear":
                self.tell(Clear())
                self.create("a ferry", "")
            case "lose":
                assert self.state.continuation is not None
                at = self.state.continuation.role_run.check_at
                timer = Timer(kind=TimerKind.WATCHDOG, generation=self.state.generation, at=at, runner_present=False)
                self.tell(timer)
            case "forge":
                self.forge(agent, "forged", "intruder")

    @rule(agent=agents, claim_id=st.sampled_from(["", "c1", "forged"]), runner=st.sampled_from(["", "r1", "intruder"]))
    def forge(self, agent: Agent, claim_id: str, runner: str) -> None:
        """A result under a claim that was never granted to this runner changes nothing at all."""
        known = {(gone.claim_id, gone.runner) for gone in self.state.abandoned}
        if self.state.continuation is not None:
            known.add((self.state.continuation.role_run.claim_id or "nobody", self.state.continuation.role_run.runner))
        if (claim_id, runner) in known:
            return
        role_run_id, generation = agent["role_run_id"], agent["generation"]
        if self.state.continuation is not None and claim_id == "":
            role_run_id, generation = self.state.continuation.role_run.id, self.state.generation
        facts: Agent = {"role_run_id": role_run_id, "generation": generation, "claim_id": claim_id, "runner": runner}
        before = self.state.objective
        self.tell(RoleReported(**facts, response=json.dumps(PASS), tokens=10**6))
        assert self.state.objective == before

    def agent(self) -> Agent:
        """An agent that is about to claim what is wanted."""
        assert self.state.continuation is not None
        self.claims += 1
        run = self.state.continuation.role_run
        return {
            "role_run_id": run.id,
            "generation": self.state.generation,
            "claim_id": f"c{self.claims}",
            "runner": "r1",
        }

    @rule()
    def crash(self) -> None:
        """A process dies before it saves; another one reads what is saved."""
        self.state = saved(self.state)

    @invariant()
    def the_state_is_the_serial_one(self) -> None:
        self.oracle.agrees(self.state)

    @invariant()
    def the_state_is_sound(self) -> None:
        sound(self.state)

    def ticket(self) -> Any:
        if self.state.continuation is None:
            return multiple()
        return (self.state.continuation.role_run.id, self.state.generation)


TestMachine = Machine.TestCase
TestMachine.settings = settings(max_examples=200, stateful_step_count=50, deadline=None)
