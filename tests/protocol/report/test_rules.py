"""The rules of the whole report: its head, its number of blocks, and what each status demands of the blocks."""

import pytest
from msgspec.structs import replace

from tests.protocol.report.samples import TYPES, block, everything, places, report
from turngate_protocol.report import Block, Report, Rules, buried_proposal_hint, validate

ASKING = ("decision", "question", "next_step")


def test_a_report_with_a_block_of_each_type_is_accepted():
    assert validate(everything()) == []


def test_no_report_is_a_missing_report():
    assert places(validate(None)) == [("/", "report_missing")]


@pytest.mark.parametrize("status", ["", "done", "Completed", " completed", "completed\n"])
def test_an_unknown_status_is_named_and_demands_no_block(status: str):
    problems = validate(report(status=status), Rules(mutated=True))

    assert places(problems) == [("/task_status", "status_unknown")]
    assert "completed_with_notes" in problems[0].message


@pytest.mark.parametrize(
    ("headline", "codes"),
    [
        ("", ["headline_empty"]),
        ("h" * 160, []),
        ("h" * 161, ["headline_too_long"]),
        ("漢" * 160, []),
        ("😀" * 161, ["headline_too_long"]),
        ("a\nb", ["headline_multiline"]),
        ("a\rb", ["headline_multiline"]),
        ("\n", ["headline_multiline"]),
        ("a\u2028b", []),
        (" ", []),
        ("h" * 160 + "\n", ["headline_too_long", "headline_multiline"]),
    ],
)
def test_a_headline_is_one_line_of_at_most_160_characters(headline: str, codes: list[str]):
    assert [problem.code for problem in validate(report(block("change"), headline=headline))] == codes


@pytest.mark.parametrize(
    ("limit", "blocks", "fits"),
    [(0, 20, True), (0, 21, False), (-5, 20, True), (-5, 21, False), (3, 3, True), (3, 4, False)],
)
def test_the_rules_bound_the_number_of_blocks(limit: int, blocks: int, fits: bool):
    given = report(*(block("change", id=f"b{index}") for index in range(blocks)))

    assert places(validate(given, Rules(limit))) == ([] if fits else [("/blocks", "blocks_too_many")])


def test_every_block_is_looked_at_even_where_there_are_too_many():
    given = report(block("change"), block("change"), block("change", id="c", summary=""))

    assert places(validate(given, Rules(1))) == [
        ("/blocks", "blocks_too_many"),
        ("/blocks/1/id", "block_id_duplicate"),
        ("/blocks/2/summary", "summary_empty"),
    ]


@pytest.mark.parametrize("status", ["completed", "completed_with_notes"])
@pytest.mark.parametrize(
    ("kinds", "mutated", "code"),
    [
        ([], True, "status_needs_verification"),
        (["change"], True, "status_needs_verification"),
        (["verification"], True, None),
        ([], False, "status_needs_block"),
        (["change"], False, None),
    ],
)
def test_done_shows_a_check_if_something_was_changed_else_a_block(
    status: str, kinds: list[str], mutated: bool, code: str | None
):
    problems = validate(report(*map(block, kinds), status=status), Rules(mutated=mutated))

    assert places(problems) == ([("/blocks", code)] if code else [])


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize(
    ("status", "wanted", "code"),
    [
        ("needs_action", ASKING, "status_needs_interaction"),
        ("blocked", ("blocked",), "status_needs_blocked"),
        ("failed", ("finding", "warning", "blocked"), "status_needs_explanation"),
    ],
)
def test_each_other_status_needs_a_block_of_certain_types(status: str, wanted: tuple[str, ...], code: str, kind: str):
    problems = places(validate(report(block(kind), status=status)))

    assert (("/blocks", code) not in problems) is (kind in wanted)


@pytest.mark.parametrize("kind", [*ASKING, "blocked"])
@pytest.mark.parametrize(
    ("status", "fits"),
    [("needs_action", True), ("blocked", True), ("completed", False), ("failed", False), ("odd", False), ("", False)],
)
def test_whoever_asks_must_have_a_status_that_waits(kind: str, status: str, fits: bool):
    problems = places(validate(report(block(kind), status=status)))

    assert (("/task_status", "interaction_needs_status") not in problems) is fits


def test_all_problems_come_at_once_and_in_order():
    given = report(
        block("mystery"), block("decision", response_type=""), block("decision"), status="failed", headline=""
    )

    assert places(validate(given, Rules(2))) == [
        ("/headline", "headline_empty"),
        ("/blocks", "blocks_too_many"),
        ("/blocks/0/type", "block_type_unknown"),
        ("/blocks/1/response_type", "response_type_invalid"),
        ("/blocks/2/id", "block_id_duplicate"),
        ("/blocks", "status_needs_explanation"),
        ("/task_status", "interaction_needs_status"),
    ]


@pytest.mark.parametrize("field", ["summary", "details"])
@pytest.mark.parametrize(
    "phrase",
    [
        "say the word",
        "SAY SO AND I",
        "Just Say",
        "just tell me",
        "Pick One",
        "how to fix",
        "want me to",
        "marshall in",
        "SHALL İ",
        "PIC\u212a ONE",
        "i did not edit",
        "I HAVE NOT EDİTED",
    ],
)
def test_a_proposal_in_the_prose_is_found(phrase: str, field: str):
    assert buried_proposal_hint(report(replace(block("change"), **{field: f"Before {phrase} after"})))


@pytest.mark.parametrize(
    "given",
    [
        None,
        Report(),
        report(headline="pick one"),
        report(Block(evidence="just say", summary="shall  i", details="how to\nfix")),
        report(Block(summary="how to", details="fix")),
        report(Block(summary="pick one"), block("decision")),
    ],
)
def test_no_proposal_is_found_in_other_places_or_where_something_is_asked(given: Report | None):
    assert not buried_proposal_hint(given)
