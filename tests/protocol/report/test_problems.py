"""What a model reads of its problems."""

import pytest

from tests.protocol.report.samples import block, option, report
from turngate_protocol.report import MARKER, Problem, format_problems, validate
from turngate_protocol.report.problems import listed, quote


def problem(number: int) -> Problem:
    return Problem(f"/blocks/{number}/id", "block_id_invalid", f"Sentence {number}.")


def test_a_rejection_has_the_marker_the_count_a_line_each_and_what_to_do():
    assert format_problems([problem(0), problem(1)]).split("\n") == [
        "REPORT_REJECTED: 2 problems",
        "- /blocks/0/id: Sentence 0.",
        "- /blocks/1/id: Sentence 1.",
        "Correct each of these and send the whole report again; the paths are JSON Pointers into it.",
    ]


def test_one_problem_is_one_problem():
    assert format_problems([problem(0)]).startswith(f"{MARKER}1 problem\n")


def test_without_a_problem_there_is_nothing_to_say():
    assert format_problems([]) == ""


def test_more_problems_than_are_shown_are_counted():
    lines = format_problems([problem(number) for number in range(300)]).split("\n")

    assert lines[0] == "REPORT_REJECTED: 300 problems"
    assert lines[-3:-1] == ["- /blocks/199/id: Sentence 199.", "- and 100 more that are not listed"]


@pytest.mark.parametrize(
    ("value", "quoted"),
    [
        ("", '""'),
        ("a b", '"a b"'),
        ("a" * 60, f'"{"a" * 60}"'),
        ("a" * 61, f'"{"a" * 60}…"'),
        ("\x1b[2J\n\u202e", '"\\x1b[2J\\n\\u202e"'),
    ],
)
def test_a_quoted_value_is_cut_and_shows_its_control_characters(value: str, quoted: str):
    assert quote(value) == quoted


def test_a_list_in_a_sentence_ends_with_or():
    assert listed(["a"]) == "a"
    assert listed(["a", "b", "c"]) == "a, b or c"


def test_no_message_grows_with_what_was_sent():
    long = "x\x1b" * 20_000
    options = [
        option(id=long, label=long, description=long, consequence=long, preview=long, effect=long, instruction=long)
    ] * 2
    given = report(
        block(
            "decision", id=long, summary=long, details=long, options=options, response_type=long, recommendation=long
        ),
        block("finding", importance=long),
        block(long),
        status=long,
        headline=long,
    )

    messages = [found.message for found in validate(given)]

    assert len(messages) > 20
    assert max(map(len, messages)) < 500
    assert all(message.isprintable() for message in messages)
