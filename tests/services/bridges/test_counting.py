"""How turns are counted for agents that count none: one case for each sentence of the rules."""

import pytest
from msgspec.structs import replace

from turngate.bridges.counting import (
    QUESTIONS_KEPT,
    LastReport,
    Ledger,
    TurnExhausted,
    current_turn,
    note_answer,
    note_ending,
    note_verdict,
    place_ending,
    place_question,
    place_report,
    reconcile,
)
from turngate.bridges.toollog import Seen
from turngate_protocol.report.session import AttemptVerdict, Ending, EndingOutcome, Outcome, Phase, Turn

NOTHING = Seen(mutated=False, used_tools=False, end=0)
LOOKED = Seen(mutated=False, used_tools=True, end=10)
CHANGED = Seen(mutated=True, used_tools=True, end=20)


def reported(ledger: Ledger, digest: str, outcome: Outcome, *, by: str = "one", seen: Seen = NOTHING) -> Ledger:
    """A report that was placed, judged and told."""
    ledger, placed = place_report(ledger, digest, by, seen)
    return note_verdict(ledger, placed, outcome, seen.end)


def ended(ledger: Ledger, outcome: EndingOutcome, seen: Seen = NOTHING) -> Ledger:
    """An ending that was placed and judged."""
    ledger, turn, _ = place_ending(ledger, seen)
    return note_ending(ledger, turn, outcome, seen.end)


ACCEPTED = reported(Ledger(), "a", Outcome.ACCEPTED)
REJECTED = reported(Ledger(), "a", Outcome.REJECTED)
SETTLED = ended(ACCEPTED, EndingOutcome.SETTLED)


def numbers(placed: tuple[Ledger, LastReport]) -> tuple[int, int]:
    return placed[1].turn, placed[1].attempt


def test_the_first_report_is_attempt_1_of_turn_1():
    assert numbers(place_report(Ledger(), "a", "one", NOTHING)) == (1, 1)


@pytest.mark.parametrize(
    ("before", "digest", "by", "seen", "wanted"),
    [
        (REJECTED, "b", "one", NOTHING, (1, 2)),
        (REJECTED, "a", "one", NOTHING, (1, 2)),
        (REJECTED, "a", "other", NOTHING, (1, 1)),
        (place_report(Ledger(), "a", "one", NOTHING)[0], "a", "one", NOTHING, (1, 1)),
        (ACCEPTED, "a", "one", NOTHING, (1, 1)),
        (ACCEPTED, "a", "other", LOOKED, (1, 1)),
        (ACCEPTED, "a", "one", CHANGED, (2, 1)),
        (ACCEPTED, "b", "one", NOTHING, (2, 1)),
        (SETTLED, "a", "one", NOTHING, (2, 1)),
        (ended(Ledger(), EndingOutcome.SETTLED), "a", "one", NOTHING, (2, 1)),
        (ended(REJECTED, EndingOutcome.REMINDER), "b", "one", NOTHING, (1, 2)),
        (ended(REJECTED, EndingOutcome.UNREPORTED), "b", "one", NOTHING, (2, 1)),
        (reported(Ledger(), "a", Outcome.EXHAUSTED), "b", "one", NOTHING, (2, 1)),
        (reported(Ledger(hooked=True), "a", Outcome.EXHAUSTED), "a", "one", NOTHING, (1, 1)),
    ],
    ids=[
        "a repaired report is the next attempt",
        "the same one from who was told of its rejection too",
        "from another connection it is a repeat",
        "and where nobody was told",
        "an accepted one again is a repeat",
        "also after looking on",
        "but not once something was changed",
        "another one after an accepted one begins a turn",
        "and the same one after the agent stopped",
        "a turn that ended without a report is over",
        "a reminder keeps the turn",
        "an unreported turn is over",
        "without hooks an exhausted turn is over",
        "with hooks its last report is repeated",
    ],
)
def test_a_report_gets_its_numbers(before, digest, by, seen, wanted):
    assert numbers(place_report(before, digest, by, seen)) == wanted


def test_an_exhausted_turn_takes_no_other_report_until_its_agent_stopped():
    exhausted = reported(Ledger(hooked=True), "a", Outcome.EXHAUSTED)

    with pytest.raises(TurnExhausted):
        place_report(exhausted, "b", "one", NOTHING)
    assert numbers(place_report(ended(exhausted, EndingOutcome.UNREPORTED), "b", "one", NOTHING)) == (2, 1)


@pytest.mark.parametrize(
    ("before", "seen", "wanted"),
    [
        (Ledger(), NOTHING, (1, 1)),
        (REJECTED, CHANGED, (1, 1)),
        (ended(REJECTED, EndingOutcome.REMINDER), CHANGED, (1, 2)),
        (ACCEPTED, LOOKED, (1, 1)),
        (ACCEPTED, CHANGED, (2, 1)),
        (SETTLED, NOTHING, (2, 1)),
    ],
    ids=["first", "rejected", "reminded", "accepted", "changed after it", "after a stop"],
)
def test_an_ending_gets_its_numbers(before, seen, wanted):
    _, turn, ending = place_ending(before, seen)

    assert (turn, ending) == wanted


def test_the_evidence_of_the_next_turn_begins_where_a_report_was_accepted_or_the_agent_stopped():
    assert reported(Ledger(), "a", Outcome.ACCEPTED, seen=CHANGED).mark == CHANGED.end
    assert reported(Ledger(), "a", Outcome.REJECTED, seen=CHANGED).mark == 0
    assert ended(Ledger(), EndingOutcome.SETTLED, CHANGED).mark == CHANGED.end
    assert ended(Ledger(), EndingOutcome.REMINDER, CHANGED).mark == 0


def known(turn: int, phase: Phase, *, attempts: int = 0, outcome: EndingOutcome | None = None) -> Turn:
    """A turn as the services have it."""
    return Turn(
        turn,
        0,
        "runner",
        phase,
        attempts=tuple(AttemptVerdict(n, "", Outcome.REJECTED, 0) for n in range(1, attempts + 1)),
        endings=() if outcome is None else (Ending(3, outcome, 0),),
    )


def test_what_the_services_know_of_a_later_turn_wins():
    found = reconcile(REJECTED, known(7, Phase.REJECTED, attempts=2, outcome=EndingOutcome.REMINDER))

    assert (found.turn, found.attempts, found.endings, found.over) == (7, 2, 3, False)
    assert numbers(place_report(found, "b", "one", NOTHING)) == (7, 3)


def test_a_lost_ledger_goes_on_behind_what_is_known():
    accepted = reconcile(Ledger(), known(4, Phase.ACCEPTED, attempts=1))
    stopped = reconcile(Ledger(), known(4, Phase.UNREPORTED, outcome=EndingOutcome.UNREPORTED))

    assert (current_turn(accepted), current_turn(stopped)) == (5, 5)


def test_numbers_that_were_given_but_never_arrived_are_not_given_again():
    ledger, _ = place_report(REJECTED, "b", "one", NOTHING)

    found = reconcile(ledger, known(1, Phase.REJECTED, attempts=1))

    assert numbers(place_report(found, "c", "one", NOTHING)) == (1, 3)


def test_services_that_know_less_change_nothing():
    assert reconcile(SETTLED, None) == SETTLED
    assert reconcile(replace(SETTLED, turn=9), known(1, Phase.OPEN)) == replace(SETTLED, turn=9)


def test_a_question_keeps_its_place_until_its_answer_was_told():
    ledger, first = place_question(Ledger(), "q", "one")
    _, waiting = place_question(ledger, "q", "one")
    told = note_answer(ledger, "q", first, "one")

    assert first == waiting
    assert place_question(told, "q", "other")[1].count == 1
    assert place_question(told, "q", "one")[1].count == 2
    assert place_question(replace(told, turn=1, over=True), "q", "other")[1] == replace(first, turn=2)


def test_a_session_remembers_so_many_questions_and_no_more():
    ledger = Ledger()
    for number in range(QUESTIONS_KEPT + 10):
        ledger, _ = place_question(ledger, f"q{number}", "one")

    assert len(ledger.asked) == QUESTIONS_KEPT
    assert f"q{QUESTIONS_KEPT + 9}" in ledger.asked
