"""Display order, numbered choices and look-ups."""

import pytest

from tests.protocol.report.samples import TYPES, block, dispatch, everything, option, report
from turngate_protocol.report import (
    Choice,
    Report,
    choice,
    choices,
    chosen,
    first_interactive,
    has_interactive,
    order,
)
from turngate_protocol.report import block as block_of

DISPLAYED = [
    "decision",
    "question",
    "blocked",
    "next_step",
    "warning",
    "change",
    "finding",
    "verification",
    "unclassified",
]


@pytest.mark.parametrize("sent", [TYPES, TYPES[::-1], DISPLAYED])
def test_blocks_are_shown_in_the_order_of_their_types(sent: list[str]):
    given = report(*map(block, sent))

    assert [given.blocks[at].type for at in order(given)] == DISPLAYED


@pytest.mark.parametrize(("kind", "field"), [("warning", "severity"), ("finding", "importance")])
def test_warnings_and_findings_come_most_urgent_first_and_unknown_levels_last(kind: str, field: str):
    levels = ["odd", "low", "critical", "", "medium", "high", "critical"]
    given = report(*(block(kind, **{field: level}) for level in levels))

    assert order(given) == [2, 6, 5, 4, 1, 0, 3]


def test_urgency_means_nothing_in_other_types():
    assert order(report(block("change", severity="low"), block("change", severity="critical"))) == [0, 1]


def test_an_unknown_type_ties_with_unclassified():
    given = report(block("mystery"), block("unclassified"), block(""), block("verification"))

    assert order(given) == [3, 0, 1, 2]


def test_choices_are_numbered_across_blocks_in_display_order():
    given = report(block("next_step"), block("change"), block("question"))

    assert choices(given) == [Choice(2, 0, 1), Choice(2, 1, 2), Choice(0, 0, 3), Choice(0, 1, 4)]


def test_from_the_tenth_choice_on_there_is_no_number():
    six = [option(id=f"o{index}") for index in range(6)]
    given = report(block("decision", options=six), block("decision", options=six))

    assert [found.number for found in choices(given)] == [1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 0, 0]


def test_options_of_a_block_that_asks_nothing_are_no_choices():
    assert choices(report(block("change", options=[option(), dispatch()]))) == []


def test_a_choice_is_found_by_its_number():
    given = everything()

    assert choice(given, 1) == choices(given)[0]
    found = choice(given, 4)
    assert found is not None
    assert chosen(given, found) == given.blocks[found.block].options[found.option]


@pytest.mark.parametrize("number", [0, -1, 9, 10])
def test_a_number_that_no_choice_has_finds_none(number: int):
    assert choice(everything(), number) is None


def test_zero_finds_none_although_later_choices_carry_it():
    six = [option(id=f"o{index}") for index in range(6)]

    assert choice(report(block("decision", options=six), block("decision", options=six)), 0) is None


def test_a_block_is_found_by_its_id():
    given = report(block("change", id="a"), block("finding", id="b"), block("warning", id="b"))

    assert block_of(given, "b") is given.blocks[1]
    assert block_of(given, "c") is None


def test_the_first_block_that_asks_is_the_first_one_shown():
    assert first_interactive(report(block("change"), block("next_step"), block("decision"))) == 2
    assert first_interactive(report(block("change"))) == -1


@pytest.mark.parametrize(
    ("kinds", "asks"), [(["change", "blocked"], True), (["change", "finding"], False), ([], False)]
)
def test_a_report_asks_where_one_of_its_blocks_does(kinds: list[str], asks: bool):
    assert has_interactive(report(*map(block, kinds))) is asks


@pytest.mark.parametrize("given", [None, Report()])
def test_nothing_comes_of_no_report_and_of_one_without_blocks(given: Report | None):
    assert order(given) == []
    assert choices(given) == []
    assert choice(given, 1) is None
    assert block_of(given, "a") is None
    assert first_interactive(given) == -1
    assert has_interactive(given) is False
