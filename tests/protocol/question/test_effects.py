"""What a session's newest state wants outside of it, and that doing it leaves nothing to do."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.protocol.question.samples import (
    NOW,
    asked,
    called,
    chat,
    command,
    freeform,
    picks,
    requests,
    stepped,
    structured,
)
from turngate_protocol.cause import Cause
from turngate_protocol.inbox import InboxEntry
from turngate_protocol.question import (
    AnswerAfter,
    ExpireAfter,
    Lineage,
    SessionQuestions,
    Timer,
    WaitForEver,
    Wants,
    ask,
    cancel,
    expire,
    resolve,
    settled,
    timer_id,
    wants,
    wants_something,
)
from turngate_protocol.question.effects import TITLE_BYTES

REQUEST = structured()
KEY = (REQUEST.id, REQUEST.schema_digest)
TIMED = asked(REQUEST, policy=ExpireAfter(2000)).state
TIMER = timer_id("s1", REQUEST.id, NOW + 2000)


def answered(state: SessionQuestions) -> SessionQuestions:
    assert state.pending is not None
    return stepped(resolve(state, chat(state.pending.request), actor="ann", op="op-1", now=NOW + 5)).state


class TestWhileAQuestionWaits:
    def test_it_is_listed_with_its_lineage(self):
        state = asked(REQUEST, lineage=Lineage("parent", "task-1"), turn=4, policy=ExpireAfter(2000)).state

        assert wants(state).inbox == InboxEntry(
            "question",
            "s1",
            "pool",
            NOW,
            "Where shall the data go?",
            4,
            request_id=REQUEST.id,
            questions=2,
            runner="r1",
            expires_at=NOW + 2000,
            parent_session="parent",
            task="task-1",
        )

    def test_a_free_form_question_is_listed_by_its_prompt(self):
        entry = wants(asked(freeform()).state).inbox

        assert entry is not None
        assert (entry.title, entry.questions, entry.expires_at) == ("What now?", 1, 0)

    def test_a_long_question_is_cut_between_characters(self):
        entry = wants(asked(freeform(prompt="é" * 1000)).state).inbox

        assert entry is not None
        assert entry.title == "é" * (TITLE_BYTES // 2)

    def test_it_keeps_its_entry_when_another_runner_goes_on(self):
        moved = stepped(ask(TIMED, command(REQUEST, runner="r2"), NOW + 9)).state

        assert wants(moved) == wants(TIMED)

    @pytest.mark.parametrize("policy", [ExpireAfter(2000), AnswerAfter(2000, chat="go on")])
    def test_one_that_expires_wants_its_timer(self, policy):
        state = asked(REQUEST, policy=policy).state

        assert wants(state).timer == Timer(TIMER, NOW + 2000, *KEY)

    def test_one_that_waits_for_ever_wants_none(self):
        assert wants(asked(REQUEST, policy=WaitForEver()).state).timer is None

    def test_nothing_is_recorded_when_it_is_shown(self):
        assert settled(TIMED, NOW + 1) is None


class TestOnceItIsDecided:
    def test_the_entry_and_the_timer_go(self):
        assert wants(answered(TIMED)) == Wants(clears_inbox=True, cancels=(TIMER,))

    def test_one_without_a_timer_wants_only_its_entry_gone(self):
        assert wants(answered(asked(REQUEST).state)) == Wants(clears_inbox=True)

    def test_nothing_is_wanted_when_that_is_done(self):
        state = answered(TIMED)

        done = settled(state, NOW + 9)

        assert done is not None
        assert not wants_something(done)
        assert wants(done) == Wants()
        assert done.outcomes == state.outcomes
        assert done.cause == Cause("question.settled", "turngate", NOW + 9)
        assert settled(done, NOW + 10) is None

    def test_a_next_question_keeps_the_earlier_timer_to_remove(self):
        state = stepped(ask(answered(TIMED), command(freeform()), NOW + 7)).state

        assert wants(state).cancels == (TIMER,)
        assert wants(state).inbox is not None

    def test_a_next_question_stays_listed_when_the_earlier_timer_is_removed(self):
        state = stepped(ask(answered(TIMED), command(freeform()), NOW + 7)).state

        done = settled(state, NOW + 9)

        assert done is not None
        assert wants(done) == Wants(wants(state).inbox)
        assert settled(done, NOW + 10) is None

    def test_a_question_asked_and_decided_before_the_earlier_one_was_settled_wants_its_entry_gone_too(self):
        state = answered(stepped(ask(answered(TIMED), command(freeform()), NOW + 7)).state)

        assert wants(state) == Wants(clears_inbox=True, cancels=(TIMER,))

    def test_timers_to_remove_do_not_pile_up(self):
        state = TIMED
        for number in range(40):
            state = answered(state)
            state = stepped(ask(state, command(called(f"call-{number}"), policy=ExpireAfter(9)), NOW)).state

        assert len(state.stale_timers) == 16


def test_each_change_says_why_it_is_there():
    moved = stepped(ask(TIMED, command(REQUEST, runner="r2"), NOW + 1)).state
    chatted = answered(TIMED)
    cancelled = stepped(cancel(TIMED, *KEY, actor="bob", op="op-2", now=NOW + 2)).state
    expired = stepped(expire(TIMED, *KEY, NOW + 2000)).state
    by_policy = asked(REQUEST, turn=3, policy=AnswerAfter(9, (picks("Disk"), picks("A")))).state
    by_policy = stepped(expire(by_policy, *KEY, NOW + 9)).state

    assert [state.cause for state in (TIMED, moved, chatted, cancelled, expired, by_policy)] == [
        Cause("question.asked", "r1", NOW, message=REQUEST.id),
        Cause("question.moved", "r2", NOW + 1, message=REQUEST.id),
        Cause("question.chat", "ann", NOW + 5, message=REQUEST.id),
        Cause("question.cancelled", "bob", NOW + 2, message=REQUEST.id),
        Cause("question.expired", "turngate", NOW + 2000, message=REQUEST.id),
        Cause("question.answered", "turngate", NOW + 9, 3, message=REQUEST.id),
    ]


@given(st.text(max_size=40), st.text(max_size=40), st.integers(0, 2**53))
def test_a_timer_s_id_can_be_part_of_a_subject(session, request_id, at):
    assert re.fullmatch("[A-Za-z0-9_-]{1,128}", timer_id(session, request_id, at))


def test_timers_of_different_questions_differ():
    ids = {timer_id(s, r, at) for s in ("a", "b") for r in ("q-1", "q-2") for at in (1, 2)}

    assert len(ids) == 8


@given(requests, st.sampled_from([WaitForEver(), ExpireAfter(5)]), st.booleans())
def test_doing_what_is_wanted_comes_to_an_end(request, policy, decides):
    state = asked(request, policy=policy).state
    if decides:
        state = stepped(cancel(state, request.id, request.schema_digest, actor="ann", op="", now=NOW)).state

    assert wants_something(state)
    state = settled(state, NOW) or state
    assert settled(state, NOW) is None
    assert wants_something(state) != decides
