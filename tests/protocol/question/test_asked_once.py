"""However commands interleave, a question is decided at most once."""

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tests.protocol.question.samples import NOW, asked, called, chat, command, picks, refused
from turngate_protocol.question import (
    Answer,
    AnswerAfter,
    ExpireAfter,
    Outcome,
    Refusal,
    RefusalKind,
    Resolution,
    SessionQuestions,
    Step,
    WaitForEver,
    ask,
    cancel,
    expire,
    resolve,
)

CALLS = [called(f"call-{number}") for number in range(20)]
POLICIES = [WaitForEver(), ExpireAfter(50), AnswerAfter(50, (picks("A"),)), AnswerAfter(50, chat="later")]

calls = st.sampled_from(CALLS)
people = st.sampled_from(["ann", "bob"])
operations = st.sampled_from(["", "op-1", "op-2"])
replies = st.sampled_from(
    [{"answers": (picks("A"),)}, {"answers": (Answer(custom="mine"),)}, {"chat": "talk"}, {"chat": " "}, {"chat": ""}]
)


class SessionMachine(RuleBasedStateMachine):
    """One session under commands in any order; what was decided is kept beside it and must never change."""

    def __init__(self):
        super().__init__()
        self.state: SessionQuestions | None = None
        self.now = NOW
        self.decided: dict[str, Outcome] = {}
        self.decisions = 0

    def take(self, result):
        if not isinstance(result, Step):
            return
        if not result.changed:
            assert result.state == (self.state or result.state)
            return
        if result.outcome is not None:
            self.decisions += 1
            assert self.state is not None
            assert self.state.pending is not None
            assert result.outcome.request_id == self.state.pending.request.id
            self.decided[result.outcome.request_id] = result.outcome
        self.state = msgspec.json.decode(msgspec.json.encode(result.state), type=SessionQuestions)

    @rule(passed=st.integers(0, 40))
    def time_passes(self, passed):
        self.now += passed

    @rule(request=calls, policy=st.sampled_from(POLICIES), runner=st.sampled_from(["r1", "r2"]))
    def someone_asks(self, request, policy, runner):
        remembered = self.state and any(outcome.request_id == request.id for outcome in self.state.outcomes)
        result = ask(self.state, command(request, policy=policy, runner=runner), self.now)
        if remembered:
            assert isinstance(result, Step)
            assert result.outcome == self.decided[request.id]
        self.take(result)

    @rule(request=calls, reply=replies, actor=people, op=operations)
    def someone_answers(self, request, reply, actor, op):
        resolution = Resolution(request.id, request.schema_digest, **reply)
        self.take(resolve(self.state, resolution, actor=actor, op=op, now=self.now))

    @rule(request=calls, actor=people, op=operations)
    def someone_cancels(self, request, actor, op):
        self.take(cancel(self.state, request.id, request.schema_digest, actor=actor, op=op, now=self.now))

    @rule(request=calls)
    def a_timer_fires(self, request):
        pending = self.state.pending if self.state else None
        result = expire(self.state, request.id, request.schema_digest, self.now)
        if isinstance(result, Step):
            assert pending is not None
            assert pending.expires_at is not None
            assert pending.expires_at <= self.now
        self.take(result)

    @rule(actor=people, op=operations)
    def someone_answers_what_waits(self, actor, op):
        if self.state is not None and self.state.pending is not None:
            self.take(resolve(self.state, chat(self.state.pending.request), actor=actor, op=op, now=self.now))

    @invariant()
    def what_is_decided_stays_decided(self):
        if self.state is None:
            return
        ids = [outcome.request_id for outcome in self.state.outcomes]
        assert len(ids) == len(set(ids)) == min(self.decisions, 16)
        assert self.state.pending is None or self.state.pending.request.id not in ids
        for outcome in self.state.outcomes:
            assert outcome == self.decided[outcome.request_id]

    @invariant()
    def nothing_blank_counts_as_answered(self):
        for outcome in self.state.outcomes if self.state else ():
            resolution = outcome.resolution
            assert (resolution is None) == (outcome.kind in ("cancelled", "expired"))
            assert resolution is None or resolution.chat.strip() or resolution.answers


TestSession = SessionMachine.TestCase
TestSession.settings = settings(max_examples=100, stateful_step_count=60, deadline=None)


REQUEST = CALLS[0]
START = asked(REQUEST, policy=ExpireAfter(1)).state
DECIDERS = {
    "ann": lambda state: resolve(state, chat(REQUEST, "ann"), actor="ann", op="a", now=NOW + 1),
    "bob": lambda state: resolve(state, chat(REQUEST, "bob"), actor="bob", op="b", now=NOW + 2),
    "eve": lambda state: cancel(state, REQUEST.id, REQUEST.schema_digest, actor="eve", op="e", now=NOW + 3),
    "": lambda state: expire(state, REQUEST.id, REQUEST.schema_digest, NOW + 4),
}


@given(st.lists(st.sampled_from(sorted(DECIDERS)), min_size=2, max_size=12))
def test_of_racing_decisions_one_is_saved_and_the_others_learn_who_won(turns):
    """Each client's first turn reads, its second saves with compare-and-set, and on a conflict it starts again."""
    saved, revision = START, 0
    read: dict[str, int] = {}
    results: dict[str, Step | Refusal] = {}
    winners: list[str] = []
    for client in [*turns, *sorted(DECIDERS) * 4]:
        result = results.get(client)
        if result is None:
            read[client], results[client] = revision, DECIDERS[client](saved)
        elif isinstance(result, Step) and client not in winners:
            if read[client] == revision:
                saved, revision = result.state, revision + 1
                winners.append(client)
            else:
                del results[client]

    (outcome,) = saved.outcomes
    assert saved.pending is None
    assert winners == [outcome.by]
    for client in set(DECIDERS) - set(winners):
        refusal = refused(results[client])
        assert refusal.kind is RefusalKind.ALREADY_RESOLVED
        assert refusal.details["by"] == outcome.by
