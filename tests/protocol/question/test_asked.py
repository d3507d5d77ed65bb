"""The life of a question, row by row of its table."""

import pytest
from msgspec.structs import replace

from tests.protocol.question.samples import (
    NOW,
    answers,
    asked,
    called,
    chat,
    command,
    decided,
    freeform,
    picks,
    refused,
    stepped,
    structured,
    waiting,
)
from turngate_protocol.question import (
    Answer,
    AnswerAfter,
    DecidedBy,
    ExpireAfter,
    Lineage,
    OutcomeKind,
    RefusalKind,
    WaitForEver,
    ask,
    cancel,
    expire,
    find_outcome,
    resolve,
)

REQUEST = structured()
OTHER = structured("q-2")
KEY = (REQUEST.id, REQUEST.schema_digest)
GOOD = answers(REQUEST, picks("Disk"), picks("A"))
WAITING_STEP = asked(REQUEST)
WAITING = WAITING_STEP.state
TIMED = asked(REQUEST, policy=ExpireAfter(2000)).state
DEFAULTED = asked(REQUEST, policy=AnswerAfter(2000, GOOD.answers)).state
ANSWERED = stepped(resolve(WAITING, GOOD, actor="ann", op="op-1", now=NOW + 5)).state
CANCELLED = stepped(cancel(WAITING, *KEY, actor="ann", op="op-1", now=NOW + 5)).state
EXPIRED = stepped(expire(TIMED, *KEY, NOW + 2000)).state
DECIDED = {"answered": ANSWERED, "cancelled": CANCELLED, "expired": EXPIRED}


def answer(state, resolution=GOOD, actor="bob", op="op-2", now=NOW + 9):
    return resolve(state, resolution, actor=actor, op=op, now=now)


def drop(state, request_id=REQUEST.id, digest=REQUEST.schema_digest, actor="bob", op="op-2"):
    return cancel(state, request_id, digest, actor=actor, op=op, now=NOW + 9)


class TestAsking:
    def test_a_new_session_waits_for_its_first_question(self):
        lineage = Lineage("parent", "task-1")

        step = asked(REQUEST, lineage=lineage, turn=4, policy=ExpireAfter(2000))

        pending = waiting(step)
        assert step.changed
        assert step.state.pending == pending
        assert (pending.request, pending.runner, pending.asked_at) == (REQUEST, "r1", NOW)
        assert (pending.expires_at, pending.lineage, pending.turn) == (NOW + 2000, lineage, 4)
        assert (step.state.session, step.state.pool) == ("s1", "pool")

    def test_a_question_waits_for_ever_unless_told_otherwise(self):
        assert (waiting(WAITING_STEP).policy, waiting(WAITING_STEP).expires_at) == (WaitForEver(), None)

    def test_the_identical_question_still_waits(self):
        step = stepped(ask(TIMED, command(REQUEST, policy=WaitForEver()), NOW + 60))

        assert not step.changed
        assert step.state is TIMED
        assert step.pending == TIMED.pending

    def test_the_identical_question_of_another_runner_moves_the_outcome_there(self):
        step = stepped(ask(TIMED, command(REQUEST, runner="r2"), NOW + 60))

        assert step.changed
        assert TIMED.pending is not None
        assert waiting(step) == step.state.pending == replace(TIMED.pending, runner="r2")

    def test_another_question_is_denied_with_the_identity_of_the_one_that_waits(self):
        refusal = refused(ask(WAITING, command(OTHER), NOW + 60))

        assert refusal.kind is RefusalKind.ANOTHER_PENDING
        assert refusal.details == {
            "request_id": REQUEST.id,
            "schema_digest": REQUEST.schema_digest,
            "tool_call_id": REQUEST.tool_call_id,
            "tool": "ask_user",
            "runner": "r1",
            "asked_at": NOW,
        }

    def test_another_question_under_the_same_id_is_denied_too(self):
        refusal = refused(ask(WAITING, command(freeform(REQUEST.id)), NOW + 60))

        assert refusal.kind is RefusalKind.ANOTHER_PENDING

    @pytest.mark.parametrize("state", DECIDED.values(), ids=DECIDED)
    def test_the_identical_question_gets_its_recorded_outcome(self, state):
        step = stepped(ask(state, command(REQUEST, runner="r2"), NOW + 60))

        assert not step.changed
        assert step.pending is None
        assert step.outcome == state.outcomes[-1]

    def test_a_recorded_outcome_is_found_while_another_question_waits(self):
        state = stepped(ask(ANSWERED, command(OTHER), NOW + 60)).state

        assert decided(ask(state, command(REQUEST), NOW + 70)) == ANSWERED.outcomes[-1]

    def test_a_decided_id_can_not_stand_for_another_question(self):
        refusal = refused(ask(ANSWERED, command(freeform(REQUEST.id)), NOW + 60))

        assert refusal.kind is RefusalKind.MISMATCH

    def test_the_next_question_waits_once_the_first_is_decided(self):
        step = stepped(ask(ANSWERED, command(OTHER), NOW + 60))

        assert waiting(step).request == OTHER
        assert step.state.outcomes == ANSWERED.outcomes

    def test_a_runner_of_another_pool_can_not_ask(self):
        for request in (REQUEST, OTHER):
            refusal = refused(ask(WAITING, command(request, pool="other"), NOW))

            assert (refusal.kind, refusal.details["pool"]) == (RefusalKind.POOL_MISMATCH, "pool")

    @pytest.mark.parametrize(
        ("changes", "field"),
        [
            ({"session": ""}, "session"),
            ({"session": "a.b"}, "session"),
            ({"session": ">"}, "session"),
            ({"session": "s1\n"}, "session"),
            ({"session": "é"}, "session"),
            ({"session": "x" * 129}, "session"),
            ({"pool": "*"}, "pool"),
            ({"runner": "r 1"}, "runner"),
            ({"lineage": Lineage("a.b")}, "lineage.parent_session"),
            ({"lineage": Lineage("a", "\ud800")}, "lineage.task"),
        ],
    )
    def test_an_id_that_is_none_is_refused(self, changes, field):
        refusal = refused(ask(None, command(REQUEST, **changes), NOW))

        assert (refusal.kind, refusal.details) == (RefusalKind.INVALID_ID, {"field": field})

    @pytest.mark.parametrize(
        ("request_", "changes", "path"),
        [
            (replace(REQUEST, schema_digest="0" * 64), {}, "schema_digest"),
            (replace(REQUEST, questions=()), {}, "questions"),
            (REQUEST, {"turn": 0}, "turn"),
            (REQUEST, {"policy": ExpireAfter(0)}, "policy.after_ms"),
            (REQUEST, {"policy": AnswerAfter(1, (picks("Tape"),))}, "policy.answers"),
        ],
    )
    def test_a_question_that_breaks_a_rule_is_refused(self, request_, changes, path):
        refusal = refused(ask(None, command(request_, **changes), NOW))

        assert (refusal.kind, refusal.details) == (RefusalKind.INVALID, {"path": path})


class TestResolving:
    @pytest.mark.parametrize(
        ("resolution", "kind"),
        [
            (GOOD, OutcomeKind.ANSWERED),
            (answers(REQUEST, Answer(custom="mine"), picks("A")), OutcomeKind.ANSWERED),
            (chat(REQUEST), OutcomeKind.CHAT),
        ],
    )
    def test_an_answer_decides_the_question(self, resolution, kind):
        state = asked(REQUEST, lineage=Lineage("parent"), turn=2).state

        step = stepped(answer(state, resolution))

        outcome = decided(step)
        assert step.changed
        assert step.pending is None
        assert step.state.pending is None
        assert find_outcome(step.state, REQUEST.id) == outcome
        assert (outcome.kind, outcome.resolution, outcome.request) == (kind, resolution, REQUEST)
        assert (outcome.by, outcome.op, outcome.decided_by) == ("bob", "op-2", DecidedBy.PERSON)
        assert (outcome.asked_at, outcome.at, outcome.runner) == (NOW, NOW + 9, "r1")
        assert (outcome.lineage, outcome.turn) == (Lineage("parent"), 2)
        assert (outcome.tool, outcome.tool_call_id) == ("ask_user", REQUEST.tool_call_id)

    def test_the_outcome_goes_to_the_runner_that_asked_last(self):
        state = stepped(ask(WAITING, command(REQUEST, runner="r2"), NOW)).state

        assert decided(answer(state)).runner == "r2"

    def test_an_answer_counts_until_the_expiry_is_recorded(self):
        assert decided(answer(TIMED, now=NOW + 99_999)).kind is OutcomeKind.ANSWERED

    @pytest.mark.parametrize(
        "resolution", [chat(REQUEST, " \t\u2003"), answers(REQUEST, Answer(custom=" "), picks("A"))]
    )
    def test_a_blank_answer_answers_nothing(self, resolution):
        assert refused(answer(WAITING, resolution)).kind is RefusalKind.BLANK_ANSWER

    @pytest.mark.parametrize(
        ("resolution", "kind"),
        [
            (answers(REQUEST), RefusalKind.INVALID),
            (answers(REQUEST, picks("Disk")), RefusalKind.INVALID),
            (answers(REQUEST, picks("Disk"), picks("C", "A")), RefusalKind.INVALID),
            (answers(REQUEST, picks("Tape"), picks("A")), RefusalKind.INVALID),
            (chat(REQUEST, "\ud800"), RefusalKind.INVALID),
            (chat(OTHER), RefusalKind.MISMATCH),
            (replace(GOOD, schema_digest="0" * 64), RefusalKind.MISMATCH),
        ],
    )
    def test_an_answer_that_does_not_fit_leaves_the_question_waiting(self, resolution, kind):
        assert refused(answer(WAITING, resolution)).kind is kind

    @pytest.mark.parametrize(
        ("actor", "op"), [("", ""), ("a\nb", ""), ("ann", "a\0"), ("ann", "x" * 513), ("\ud800", "")]
    )
    def test_an_answer_has_an_author(self, actor, op):
        for result in (answer(WAITING, actor=actor, op=op), drop(WAITING, actor=actor, op=op)):
            assert refused(result).kind is RefusalKind.INVALID

    def test_nothing_waits_in_an_unknown_session(self):
        refusal = refused(answer(None))

        assert (refusal.kind, refusal.details) == (RefusalKind.NO_PENDING, {"request_id": REQUEST.id})

    def test_a_question_that_was_never_asked_does_not_wait(self):
        assert refused(answer(ANSWERED, chat(OTHER))).kind is RefusalKind.NO_PENDING

    def test_a_stale_digest_of_a_decided_question_is_a_mismatch(self):
        assert refused(answer(ANSWERED, replace(GOOD, schema_digest="0" * 64))).kind is RefusalKind.MISMATCH

    @pytest.mark.parametrize(
        ("state", "kind", "decided_by", "by"),
        [
            (ANSWERED, "answered", "person", "ann"),
            (CANCELLED, "cancelled", "person", "ann"),
            (EXPIRED, "expired", "policy", ""),
        ],
    )
    def test_a_second_answer_loses_and_learns_who_won(self, state, kind, decided_by, by):
        refusal = refused(answer(state))

        assert refusal.kind is RefusalKind.ALREADY_RESOLVED
        assert refusal.details == {
            "request_id": REQUEST.id,
            "kind": kind,
            "decided_by": decided_by,
            "by": by,
            "at": state.outcomes[-1].at,
        }

    def test_the_same_operation_again_gets_the_recorded_outcome(self):
        step = stepped(answer(ANSWERED, actor="ann", op="op-1"))

        assert not step.changed
        assert step.outcome == ANSWERED.outcomes[-1]

    @pytest.mark.parametrize(("actor", "op"), [("bob", "op-1"), ("ann", "op-2"), ("ann", "")])
    def test_another_operation_is_not_the_same(self, actor, op):
        assert refused(answer(ANSWERED, actor=actor, op=op)).kind is RefusalKind.ALREADY_RESOLVED

    def test_two_answers_without_operation_are_two(self):
        state = stepped(answer(WAITING, actor="ann", op="")).state

        assert refused(answer(state, actor="ann", op="")).kind is RefusalKind.ALREADY_RESOLVED


class TestCancelling:
    def test_a_cancelled_question_has_no_answer(self):
        step = stepped(drop(WAITING))

        outcome = decided(step)
        assert step.state.pending is None
        assert (outcome.kind, outcome.resolution, outcome.by) == (OutcomeKind.CANCELLED, None, "bob")
        assert outcome.decided_by is DecidedBy.PERSON

    @pytest.mark.parametrize(
        ("state", "request_id", "digest", "kind"),
        [
            (None, REQUEST.id, REQUEST.schema_digest, RefusalKind.NO_PENDING),
            (WAITING, "q-2", REQUEST.schema_digest, RefusalKind.MISMATCH),
            (WAITING, REQUEST.id, "0" * 64, RefusalKind.MISMATCH),
            (WAITING, "\ud800" * 9999, "\0", RefusalKind.MISMATCH),
            (ANSWERED, REQUEST.id, REQUEST.schema_digest, RefusalKind.ALREADY_RESOLVED),
            (EXPIRED, REQUEST.id, REQUEST.schema_digest, RefusalKind.ALREADY_RESOLVED),
            (CANCELLED, "q-2", REQUEST.schema_digest, RefusalKind.NO_PENDING),
        ],
    )
    def test_what_does_not_wait_can_not_be_cancelled(self, state, request_id, digest, kind):
        assert refused(drop(state, request_id, digest)).kind is kind

    def test_the_same_cancellation_again_gets_the_recorded_outcome(self):
        assert decided(drop(CANCELLED, actor="ann", op="op-1")) == CANCELLED.outcomes[-1]

    def test_a_cancellation_is_not_the_retry_of_an_answer_nor_the_other_way_round(self):
        assert refused(drop(ANSWERED, actor="ann", op="op-1")).kind is RefusalKind.ALREADY_RESOLVED
        assert refused(answer(CANCELLED, actor="ann", op="op-1")).kind is RefusalKind.ALREADY_RESOLVED


class TestExpiring:
    def test_a_question_expires_when_its_time_has_come(self):
        step = stepped(expire(TIMED, *KEY, NOW + 2000))

        outcome = decided(step)
        assert step.changed
        assert step.state.pending is None
        assert (outcome.kind, outcome.decided_by, outcome.by) == (OutcomeKind.EXPIRED, DecidedBy.POLICY, "")
        assert (outcome.resolution, outcome.at) == (None, NOW + 2000)

    @pytest.mark.parametrize(
        ("policy", "resolution", "kind"),
        [
            (AnswerAfter(2000, GOOD.answers), GOOD, OutcomeKind.ANSWERED),
            (AnswerAfter(2000, chat="No."), chat(REQUEST, "No."), OutcomeKind.CHAT),
        ],
    )
    def test_a_default_answer_is_recorded_as_decided_by_policy(self, policy, resolution, kind):
        outcome = decided(expire(asked(REQUEST, policy=policy).state, *KEY, NOW + 9999))

        assert (outcome.kind, outcome.resolution) == (kind, resolution)
        assert (outcome.decided_by, outcome.by) == (DecidedBy.POLICY, "")

    @pytest.mark.parametrize(
        ("state", "now", "due"), [(TIMED, NOW + 1999, NOW + 2000), (TIMED, 0, NOW + 2000), (WAITING, NOW * 9, None)]
    )
    def test_a_question_does_not_expire_before_its_time(self, state, now, due):
        refusal = refused(expire(state, *KEY, now))

        assert (refusal.kind, refusal.details["expires_at"]) == (RefusalKind.NOT_DUE, due)

    @pytest.mark.parametrize("state", DECIDED.values(), ids=DECIDED)
    def test_a_decided_question_does_not_expire_again(self, state):
        assert refused(expire(state, *KEY, NOW + 9999)).kind is RefusalKind.ALREADY_RESOLVED

    def test_the_timer_of_one_question_does_not_expire_the_next(self):
        state = stepped(ask(ANSWERED, command(OTHER, policy=ExpireAfter(1)), NOW)).state

        assert refused(expire(state, *KEY, NOW + 9999)).kind is RefusalKind.ALREADY_RESOLVED
        assert refused(expire(state, "q-0", "0" * 64, NOW + 9999)).kind is RefusalKind.MISMATCH
        assert refused(expire(None, *KEY, NOW)).kind is RefusalKind.NO_PENDING


def test_a_call_older_than_the_memory_is_a_new_question():
    state = None
    for number in range(17):
        request = called(f"call-{number}")
        state = stepped(ask(state, command(request), NOW)).state
        state = stepped(answer(state, chat(request))).state

    assert stepped(ask(state, command(called("call-1")), NOW)).outcome is not None
    assert stepped(ask(state, command(called("call-0")), NOW)).pending is not None
