"""The turn gate: each attempt and each ending gets one outcome, whatever order and however often they arrive."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.protocol.report.gate import NOW, RULES, attempt, bad, card, ended, ending, good, judged, refused, run
from turngate_protocol.report.lookup import RefusalCode, Refused, find_attempt
from turngate_protocol.report.session import (
    HISTORY_TURNS,
    MAX_ENDINGS,
    EndingOutcome,
    Mode,
    Outcome,
    PastAttempt,
    Phase,
    SessionTurns,
)
from turngate_protocol.report.turn import Attempt, Ended, GateRules, Judged, TurnEnd, content_digest, end, submit


def test_a_good_report_is_accepted_and_its_bytes_are_kept_as_they_came():
    state = run(attempt(1, good()))
    assert state.current.phase is Phase.ACCEPTED
    assert bytes(state.current.report) == good()


def test_a_report_that_normalising_changes_is_stored_normalised():
    report = good().replace(b'"Done"', b'"  Done  "')
    state = run(attempt(1, report))
    assert msgspec.json.decode(state.current.report)["headline"] == "Done"


def test_a_rejected_report_may_be_repaired_three_times_and_the_fourth_rejection_exhausts():
    state = None
    outcomes = []
    for number in range(1, 5):
        result = judged(submit(state, attempt(number, bad()), RULES, NOW))
        outcomes.append(result.verdict.outcome)
        state = result.state
    assert outcomes == [Outcome.REJECTED] * 3 + [Outcome.EXHAUSTED]
    assert refused(submit(state, attempt(5, good()), RULES, NOW)).code is RefusalCode.TURN_DECIDED


def test_a_repaired_report_is_accepted_and_both_verdicts_are_kept():
    state = run(attempt(1, bad()), attempt(2, good()))
    assert [v.outcome for v in state.current.attempts] == [Outcome.REJECTED, Outcome.ACCEPTED]


@pytest.mark.parametrize("report", [None, b"", b"null", b"{", b"\xff", b"7", b'"x"', b"[" * 10_000])
def test_what_is_no_report_is_rejected_and_recorded(report: bytes | None):
    result = judged(submit(None, Attempt("s", "p", "r", 1, 1, report), RULES, NOW))
    assert result.verdict.outcome is Outcome.REJECTED
    assert result.state is not None


def test_the_same_attempt_again_gets_the_same_verdict_and_changes_nothing():
    state = run(attempt(1, bad()))
    again = judged(submit(state, attempt(1, bad()), RULES, NOW + 3_600_000))
    assert again.state is None
    assert again.verdict == state.current.attempts[0]


@pytest.mark.parametrize(
    "other", [attempt(1, good()), attempt(1, bad(), mutated=False), attempt(1, bad(), used_tools=True)]
)
def test_the_same_attempt_with_other_content_is_a_conflict(other: Attempt):
    state = run(attempt(1, bad()))
    assert refused(submit(state, other, RULES, NOW)).code is RefusalCode.ATTEMPT_CONFLICT


def test_an_unknown_attempt_before_the_newest_one_is_superseded():
    state = run(attempt(2, bad()))
    assert refused(submit(state, attempt(1, good()), RULES, NOW)).code is RefusalCode.SUPERSEDED


def test_an_older_turn_is_superseded_unless_its_verdict_is_known():
    state = run(attempt(1, bad()), attempt(1, good(), turn=3))
    known = judged(submit(state, attempt(1, bad()), RULES, NOW))
    assert isinstance(known.verdict, PastAttempt)
    assert known.verdict.outcome is Outcome.REJECTED
    assert refused(submit(state, attempt(1, good(), turn=2), RULES, NOW)).code is RefusalCode.SUPERSEDED


def test_a_session_remembers_the_verdicts_of_its_last_turns():
    state = run(*(attempt(1, good(), turn=t) for t in range(1, 30)))
    assert [p.turn for p in state.history] == list(range(29 - HISTORY_TURNS, 29))
    assert refused(submit(state, attempt(1, good()), RULES, NOW)).code is RefusalCode.SUPERSEDED


def test_a_runner_of_another_pool_is_refused():
    state = run(attempt())
    assert refused(submit(state, attempt(1, good(), turn=2, pool="q"), RULES, NOW)).code is RefusalCode.POOL_MISMATCH
    assert refused(end(state, ending(1, turn=2, pool="q"), RULES, NOW)).code is RefusalCode.POOL_MISMATCH


def test_problems_are_bounded_and_counted():
    report = msgspec.json.encode({"task_status": "x", "headline": "", "blocks": [{"type": "?"}] * 400})
    verdict = judged(submit(None, attempt(1, report), GateRules(max_blocks=500), NOW)).verdict
    assert len(verdict.problems) == 200
    assert verdict.problem_count > 200


def test_a_buried_proposal_is_hinted_at():
    report = b'{"task_status":"nope","headline":"h","blocks":[{"type":"change","id":"c","summary":"Shall I go on"}]}'
    assert judged(submit(None, attempt(1, report), RULES, NOW)).verdict.buried_proposal


@pytest.mark.parametrize(
    ("mode", "mutated", "used_tools", "owes"),
    [
        (Mode.OFF, True, True, False),
        (Mode.MUTATING, False, True, False),
        (Mode.MUTATING, True, False, True),
        (Mode.TOOLS, False, True, True),
        (Mode.TOOLS, False, False, False),
        (Mode.TOOLS, True, False, True),
        (Mode.ALWAYS, False, False, True),
    ],
)
def test_which_turns_owe_a_report(mode: Mode, mutated: bool, used_tools: bool, owes: bool):
    result = ended(end(None, ending(mutated=mutated, used_tools=used_tools), GateRules(mode), NOW))
    assert (result.ending.outcome is EndingOutcome.REMINDER) is owes


def test_a_turn_that_owes_is_reminded_twice_and_then_ends_unreported():
    state: SessionTurns | None = None
    outcomes = []
    for number in range(1, 5):
        result = ended(end(state, ending(number, mutated=True), RULES, NOW))
        outcomes.append(result.ending.outcome.value)
        state = result.state or state
    assert outcomes == ["reminder", "reminder", "unreported", "unreported"]
    assert state is not None
    assert state.current.phase is Phase.UNREPORTED


def test_an_ending_that_is_repeated_counts_once():
    state = run(ending(1, mutated=True), ending(1, mutated=True), ending(1, mutated=True))
    assert state.current.reminders == 1


def test_a_turn_that_reported_settles_and_an_exhausted_one_is_unreported():
    accepted = run(attempt())
    assert ended(end(accepted, ending(mutated=True), RULES, NOW)).ending.outcome is EndingOutcome.SETTLED
    exhausted = run(*(attempt(n, bad()) for n in range(1, 5)))
    result = ended(end(exhausted, ending(mutated=True), RULES, NOW))
    assert result.ending.outcome is EndingOutcome.UNREPORTED


def test_a_report_after_a_reminder_is_accepted():
    state = run(ending(1, mutated=True), attempt(1, good()), ending(2, mutated=True))
    assert state.current.phase is Phase.ACCEPTED
    assert [e.outcome.value for e in state.current.endings] == ["reminder", "settled"]


def test_what_an_attempt_said_about_the_turn_counts_at_its_end():
    state = run(attempt(1, bad(), mutated=True))
    assert ended(end(state, ending(mutated=False), RULES, NOW)).ending.outcome is EndingOutcome.REMINDER


def test_a_turn_that_mutated_needs_a_verification_even_if_a_later_attempt_denies_it():
    no_check = b'{"task_status":"completed","headline":"h","blocks":[{"type":"change","id":"c","summary":"s"}]}'
    state = run(attempt(1, bad(), mutated=True))
    assert judged(submit(state, attempt(2, no_check, mutated=False), RULES, NOW)).verdict.outcome is Outcome.REJECTED


def test_a_later_turn_begins_with_the_first_message_that_names_it_and_drops_the_card():
    state = run(attempt(1, card()), ending(1, turn=2))
    assert state.current.turn == 2
    assert not state.waiting
    assert state.listed, "the inbox entry must still be taken away"


def test_looking_up_an_attempt_of_a_turn_to_come_finds_nothing():
    assert find_attempt(run(attempt()), 2, 1) is None


def test_the_digest_tells_content_and_facts_apart():
    seen = {
        content_digest(attempt(1, report, mutated=m, used_tools=u))
        for report in (good(), bad())
        for m in (False, True)
        for u in (False, True)
    }
    assert len(seen) == 8


messages = st.one_of(
    st.builds(
        attempt,
        st.integers(1, 5),
        st.sampled_from([good(), bad(), card()]),
        turn=st.integers(1, 4),
        mutated=st.just(True),
    ),
    st.builds(ending, st.integers(1, 4), turn=st.integers(1, 4), mutated=st.booleans()),
)


def apply(state: SessionTurns | None, message: Attempt | TurnEnd, now: int) -> Judged | Ended | Refused:
    if isinstance(message, Attempt):
        return submit(state, message, RULES, now)
    return end(state, message, RULES, now)


@given(st.lists(messages, max_size=30), st.randoms(use_true_random=False))
def test_whatever_arrives_again_in_any_order_keeps_its_first_outcome(sent: list[Attempt | TurnEnd], random):
    arriving = sent * 3
    random.shuffle(arriving)
    state: SessionTurns | None = None
    first: dict[object, object] = {}
    for now, message in enumerate(arriving):
        result = apply(state, message, now)
        if isinstance(result, Refused):
            continue
        kind = type(message).__name__
        number = message.attempt if isinstance(message, Attempt) else message.ending
        outcome = result.verdict.outcome if isinstance(result, Judged) else result.ending.outcome
        at = result.verdict.at if isinstance(result, Judged) else result.ending.at
        assert first.setdefault((kind, message.turn, number), (outcome, at)) == (outcome, at)
        state = result.state or state
        if state is not None:
            assert state.current.rejections <= 4
            assert state.current.reminders <= 2
            assert len({v.attempt for v in state.current.attempts}) == len(state.current.attempts)


@given(st.lists(messages, max_size=20))
def test_every_state_survives_a_round_trip_over_the_wire(sent: list[Attempt | TurnEnd]):
    state: SessionTurns | None = None
    for now, message in enumerate(sent):
        result = apply(state, message, now)
        if not isinstance(result, Refused) and result.state is not None:
            state = result.state
            encoded = msgspec.json.encode(state)
            assert msgspec.json.encode(msgspec.json.decode(encoded, type=SessionTurns)) == encoded


@pytest.mark.parametrize(
    "report",
    [
        b'{"blocks":[' + b"{}," * 50_000 + b"{}]}",
        b'{"blocks":[{"type":"decision","options":[' + b"{}," * 50_000 + b"{}]}]}",
    ],
)
def test_an_absurdly_long_report_is_rejected_without_naming_every_part_of_it(report: bytes):
    verdict = judged(submit(None, attempt(1, report), RULES, NOW)).verdict
    assert verdict.outcome is Outcome.REJECTED
    assert verdict.problem_count < 10_000


def test_a_turn_takes_a_bounded_number_of_endings():
    state = run(*(ending(n) for n in range(1, MAX_ENDINGS + 1)))
    assert refused(end(state, ending(MAX_ENDINGS + 1), RULES, NOW)).code is RefusalCode.TURN_DECIDED
    assert ended(end(state, ending(MAX_ENDINGS), RULES, NOW)).state is None
