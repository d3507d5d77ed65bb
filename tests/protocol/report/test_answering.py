"""Answering a card: one answer wins; held prompts are released by an answer, a dismissal or the next turn."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.protocol.report.gate import NOW, attempt, card, good, refused, run
from turngate_protocol.report.answering import (
    Changed,
    Pick,
    Unchanged,
    answer,
    answer_of,
    dismiss,
    enqueue,
    prompt_id,
    settled,
    wants,
    wants_something,
)
from turngate_protocol.report.lookup import RefusalCode, Refused
from turngate_protocol.report.session import MAX_HELD, PROMPT_BYTES, Prompt, SessionTurns


def changed(result: Changed | Unchanged | Refused) -> SessionTurns:
    assert isinstance(result, Changed), result
    return result.state


def prompt(name: str = "x", text: str = "go on") -> Prompt:
    return Prompt(name, "s", text, "service", NOW)


def waiting() -> SessionTurns:
    return run(attempt(1, card()))


def test_a_dispatch_option_sends_its_instruction_as_the_next_prompt():
    state = changed(answer(waiting(), Pick(1, "ann", 1), NOW))
    assert [p.text for p in state.outgoing] == ["Do it now"]
    assert state.current.answer is not None
    assert state.current.answer.prompt == state.outgoing[0].id == prompt_id("s", 1, "answer")


def test_text_beside_a_dispatch_option_follows_its_instruction():
    state = changed(answer(waiting(), Pick(1, "ann", 1, text="but gently"), NOW))
    assert state.outgoing[0].text == "Do it now\n\nbut gently"


def test_a_collect_option_gives_a_text_to_edit_and_starts_nothing():
    state = changed(answer(waiting(), Pick(1, "ann", 2, text="rather so"), NOW))
    assert state.current.answer is not None
    assert state.current.answer.editor_text == "Word it\n\nrather so"
    assert state.outgoing == ()


def test_a_resolve_option_records_a_stop():
    state = changed(answer(waiting(), Pick(1, "ann", 3), NOW))
    assert not state.waiting
    assert state.outgoing == ()


def test_an_option_may_be_named_by_its_ids():
    state = changed(answer(waiting(), Pick(1, "ann", block="d", option="stop"), NOW))
    assert state.current.answer is not None
    assert state.current.answer.number == 3


def test_a_second_answer_loses_and_learns_who_won():
    state = changed(answer(waiting(), Pick(1, "ann", 1, op="one"), NOW))
    loser = refused(answer(state, Pick(1, "bob", 2, op="two"), NOW))
    assert loser.code is RefusalCode.ALREADY_ANSWERED
    assert loser.details["actor"] == "ann"
    assert loser.details["option"] == "go"


def test_the_same_operation_again_gets_the_same_answer():
    state = changed(answer(waiting(), Pick(1, "ann", 1, op="one"), NOW))
    assert isinstance(answer(state, Pick(1, "ann", 1, op="one"), NOW + 1), Unchanged)


def test_the_same_operation_gets_its_answer_even_after_the_next_turn_began():
    answered = changed(answer(waiting(), Pick(1, "ann", 1, op="one"), NOW))
    later = run(attempt(1, good(), turn=2), state=answered)
    assert isinstance(answer(later, Pick(1, "ann", 1, op="one"), NOW), Unchanged)
    assert refused(answer(later, Pick(1, "bob", 1, op="two"), NOW)).code is RefusalCode.SUPERSEDED
    standing = answer_of(later, 1)
    assert standing is not None
    assert standing.actor == "ann"


@pytest.mark.parametrize(
    ("pick", "code"),
    [
        (Pick(1, "ann", 4), RefusalCode.OPTION_UNKNOWN),
        (Pick(1, "ann", -1), RefusalCode.OPTION_UNKNOWN),
        (Pick(1, "ann"), RefusalCode.OPTION_UNKNOWN),
        (Pick(1, "ann", option="nope"), RefusalCode.OPTION_UNKNOWN),
        (Pick(1, "ann", block="v", option="go"), RefusalCode.OPTION_UNKNOWN),
        (Pick(2, "ann", 1), RefusalCode.TURN_UNKNOWN),
        (Pick(1, "ann", 1, text="x" * (PROMPT_BYTES + 1)), RefusalCode.INVALID),
        (Pick(1, "ann", 1, text="\ud800"), RefusalCode.INVALID),
    ],
)
def test_an_answer_that_does_not_fit_is_refused(pick: Pick, code: RefusalCode):
    assert refused(answer(waiting(), pick, NOW)).code is code


def test_a_turn_that_asks_nothing_has_no_card():
    assert refused(answer(run(attempt(1, good())), Pick(1, "ann", 1), NOW)).code is RefusalCode.NO_CARD


def test_a_card_that_a_newer_turn_replaced_can_not_be_answered():
    state = run(attempt(1, card()), attempt(1, good(), turn=2))
    assert refused(answer(state, Pick(1, "ann", 1), NOW)).code is RefusalCode.SUPERSEDED


def test_an_unknown_session_has_no_turn():
    assert refused(answer(None, Pick(1, "ann", 1), NOW)).code is RefusalCode.TURN_UNKNOWN


def test_a_dismissed_card_takes_no_answer_and_an_answered_one_no_dismissal():
    dismissed = changed(dismiss(waiting(), 1, "ann", NOW))
    assert refused(answer(dismissed, Pick(1, "bob", 1), NOW)).code is RefusalCode.ALREADY_DISMISSED
    assert isinstance(dismiss(dismissed, 1, "bob", NOW), Unchanged)
    answered = changed(answer(waiting(), Pick(1, "ann", 1), NOW))
    assert refused(dismiss(answered, 1, "bob", NOW)).code is RefusalCode.ALREADY_ANSWERED


def test_a_prompt_is_held_while_a_card_waits_and_goes_out_at_once_otherwise():
    assert changed(enqueue(waiting(), prompt(), NOW)).held == (prompt(),)
    assert changed(enqueue(run(attempt(1, good())), prompt(), NOW)).outgoing == (prompt(),)


def test_the_same_prompt_is_taken_once():
    held = changed(enqueue(waiting(), prompt(), NOW))
    assert isinstance(enqueue(held, prompt(), NOW), Unchanged)


@pytest.mark.parametrize(
    "release",
    [
        lambda s: changed(answer(s, Pick(1, "ann", 1), NOW)),
        lambda s: changed(answer(s, Pick(1, "ann", 3), NOW)),
        lambda s: changed(dismiss(s, 1, "ann", NOW)),
        lambda s: run(attempt(1, good(), turn=2), state=s),
    ],
)
def test_held_prompts_are_released_behind_the_answers_own(release: Callable[[SessionTurns], SessionTurns]):
    state = release(changed(enqueue(waiting(), prompt("held"), NOW)))
    assert state.held == ()
    assert state.outgoing[-1].id == "held"


@pytest.mark.parametrize("text", ["", "  ", "\ud800", "x" * (PROMPT_BYTES + 1)])
def test_a_prompt_that_no_agent_could_read_is_refused(text: str):
    assert refused(enqueue(waiting(), prompt(text=text), NOW)).code is RefusalCode.INVALID


def test_held_prompts_are_bounded():
    state = waiting()
    for number in range(MAX_HELD):
        state = changed(enqueue(state, prompt(f"p{number}"), NOW))
    assert refused(enqueue(state, prompt("more"), NOW)).code is RefusalCode.OVERLOADED


def test_a_waiting_card_wants_its_place_in_the_inbox():
    wanted = wants(waiting())
    assert wanted.inbox is not None
    assert (wanted.inbox.title, wanted.inbox.options, wanted.inbox.turn) == ("Pick one of three", 3, 1)
    assert not wanted.clears_inbox


def test_an_answered_card_wants_its_prompt_sent_and_its_place_cleared_and_then_nothing():
    state = changed(answer(waiting(), Pick(1, "ann", 1), NOW))
    wanted = wants(state)
    assert wanted.clears_inbox
    done = settled(state, wanted, NOW)
    assert done is not None
    assert not wants_something(done)
    assert settled(done, wanted, NOW) is None


def test_a_report_that_asks_nothing_wants_nothing():
    assert not wants_something(run(attempt(1, good())))


def test_what_came_in_while_effects_were_done_stays_wanted():
    state = changed(answer(waiting(), Pick(1, "ann", 1), NOW))
    wanted = wants(state)
    later = changed(enqueue(state, prompt("late"), NOW))
    done = settled(later, wanted, NOW)
    assert done is not None
    assert [p.id for p in done.outgoing] == ["late"]


def test_a_new_card_is_not_cleared_by_effects_of_the_old_one():
    answered = changed(answer(waiting(), Pick(1, "ann", 3), NOW))
    wanted = wants(answered)
    again = run(attempt(1, card(), turn=2), state=answered)
    after = settled(again, wanted, NOW)
    assert (after or again).listed


@given(st.lists(st.sampled_from(["answer1", "answer3", "dismiss", "prompt", "settle", "turn"]), max_size=30))
def test_no_prompt_is_lost_or_sent_twice_and_a_card_has_one_end(steps: list[str]):
    state, turn, number = waiting(), 1, 0
    sent: list[str] = []
    asked: list[str] = []
    for step in steps:
        result: Changed | Unchanged | Refused | None = None
        if step.startswith("answer"):
            result = answer(state, Pick(turn, "ann", int(step[-1])), NOW)
            if isinstance(result, Changed) and step == "answer1":
                asked.append(prompt_id("s", turn, "answer"))
        elif step == "dismiss":
            result = dismiss(state, turn, "ann", NOW)
        elif step == "prompt":
            number += 1
            result = enqueue(state, prompt(f"n{number}"), NOW)
            asked.append(f"n{number}")
        elif step == "settle":
            wanted = wants(state)
            sent += [p.id for p in wanted.prompts]
            state = settled(state, wanted, NOW) or state
        else:
            turn += 1
            state = run(attempt(1, card(), turn=turn), state=state)
        if isinstance(result, Changed):
            state = result.state
    waiting_now = [p.id for p in (*state.outgoing, *state.held)]
    assert sorted(sent + waiting_now) == sorted(asked)
