"""What a report looks like: its lines, what they belong to, and that hostile text stays text."""

import pytest
from msgspec.structs import fields, replace

from tests.protocol.report.samples import block, dispatch, everything, option, report
from turngate_protocol.report import (
    Block,
    Line,
    LineKind,
    RenderOptions,
    Report,
    glyph,
    hidden_not_run_count,
    plain_text,
    render,
)


def test_a_report_reads_from_its_header_to_its_options():
    given = report(
        block("verification", id="tests", summary="All tests pass", details="12 passed"),
        block(
            "next_step",
            id="merge",
            summary="Merge it",
            options=[
                dispatch(description="Now", consequence="It is live", preview="a\n\tb", instruction="Merge\nand tag"),
                option(effect="collect"),
            ],
        ),
        status="needs_action",
        headline="Ready to merge",
    )

    assert [(line.kind, line.text) for line in render(given)] == [
        ("header", "[needs action] Ready to merge"),
        ("block", "? Next step merge: Merge it"),
        ("field", "    Recommendation: go"),
        ("field", "    Because: It is the smaller change"),
        ("option", "    1. Do it (recommended) [dispatch]"),
        ("field", "        Description: Now"),
        ("field", "        Consequence: It is live"),
        ("field", "        Preview:"),
        ("field", "          a"),
        ("field", "              b"),
        ("instruction", "        Runs:"),
        ("instruction", "          Merge"),
        ("instruction", "          and tag"),
        ("option", "    2. Leave it [collect]"),
        ("block", "✓ Verification tests: All tests pass"),
        ("field", "    Status: passed"),
        ("details", "    Details: 9 bytes in 1 line, not shown"),
    ]


def test_lines_say_what_they_belong_to():
    given = report(block("change", id="a"), block("decision", id="b"), status="needs_action")

    lines = render(given)

    assert lines[0] == Line(LineKind.HEADER, "[needs action] Done", -1, "", 0)
    assert {(line.block, line.block_id) for line in lines[1:]} == {(0, "a"), (1, "b")}
    assert [line.option for line in lines if line.kind is LineKind.OPTION] == [1, 2]
    assert [line.option for line in lines if line.kind is LineKind.INSTRUCTION] == [1]


def test_an_option_without_a_key_is_shown_without_a_number():
    six = [option(id=f"o{index}") for index in range(6)]
    given = report(block("decision", options=six), block("question", options=six))

    lines = [line for line in render(given) if line.kind is LineKind.OPTION]

    assert [line.option for line in lines] == [1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 0, 0]
    assert lines[-1].text == "     · Leave it [resolve]"


@pytest.mark.parametrize(
    ("given", "mark"),
    [
        (block("verification", status="passed"), "✓"),
        (block("verification", status="failed"), "✗"),
        (block("verification", status="partial"), "◐"),
        (block("verification", status="not_run"), "○"),
        (block("verification", status=""), "○"),
        (block("decision"), "?"),
        (block("question"), "?"),
        (block("next_step"), "?"),
        (block("blocked"), "⛔"),
        (block("warning"), "⚠"),
        (block("finding"), "•"),
        (block("change", status="passed"), "Δ"),
        (block("unclassified"), "~"),
        (block("mystery"), "~"),
    ],
)
def test_each_type_has_its_glyph(given: Block, mark: str):
    assert glyph(given) == mark


@pytest.mark.parametrize(
    "options", [RenderOptions(expanded={"a"}), RenderOptions(expanded=frozenset("a")), RenderOptions(expand_all=True)]
)
def test_expanded_details_are_shown_line_by_line(options: RenderOptions):
    given = report(block("change", id="a", details="# Title\r\n\r\n```\n\tx\n```"))

    assert [line.text for line in render(given, options) if line.kind is LineKind.DETAILS] == [
        "    Details:",
        "      # Title",
        "      ",
        "      ```",
        "          x",
        "      ```",
    ]


def test_details_that_are_not_expanded_show_their_size_only():
    given = report(block("change", id="a", details="é\nb"), block("change", id="b"))

    assert [line.text for line in render(given, RenderOptions(expanded={"b"})) if line.kind is LineKind.DETAILS] == [
        "    Details: 4 bytes in 2 lines, not shown"
    ]


NOT_RUN = block("verification", id="v", status="not_run", limitation="No network")


def test_checks_that_were_not_run_fold_into_a_footnote():
    given = report(NOT_RUN, block("change"), NOT_RUN)

    lines = render(given, RenderOptions(hide_not_run=True))

    assert [line.block for line in lines if line.kind is LineKind.BLOCK] == [1]
    assert lines[-1] == Line(LineKind.DETAILS, "2 checks that were not run are not shown")
    assert render(report(NOT_RUN), RenderOptions(hide_not_run=True))[-1].text == "1 check that was not run is not shown"


@pytest.mark.parametrize(
    ("options", "count"),
    [
        (RenderOptions(), 0),
        (RenderOptions(hide_not_run=True), 1),
        (RenderOptions(hide_not_run=True, expand_all=True), 0),
        (RenderOptions(hide_not_run=True, expanded={"v"}), 0),
        (RenderOptions(hide_not_run=True, expanded={"w"}), 1),
    ],
)
def test_the_hidden_count_is_what_the_footnote_counts(options: RenderOptions, count: int):
    given = report(NOT_RUN, block("verification"))

    assert hidden_not_run_count(given, options) == count
    assert sum("not shown" in line.text for line in render(given, options)) == count


def test_no_report_hides_nothing():
    assert hidden_not_run_count(None, RenderOptions(hide_not_run=True)) == 0


def test_every_field_that_a_model_fills_in_is_shown():
    shown = plain_text(everything())
    texts = [info.name for info in fields(Block) if info.type is str and info.name not in ("type", "response_type")]
    empty = Block(type="decision", related_files=["a.py", "", "b.py"])
    filled = replace(empty, **{name: f"value-of-{name}" for name in texts})

    text = plain_text(report(filled))

    assert all(f"value-of-{name}" in text for name in texts)
    assert "Files: a.py, b.py" in text
    assert "Blocks this task" not in text
    assert "Blocks this task: no" in shown


def test_an_instruction_that_should_not_be_there_is_shown_too():
    given = report(block("decision", options=[option(instruction="rm -rf build"), dispatch()]))

    assert "        Instruction: rm -rf build" in plain_text(given).split("\n")


def test_hostile_text_is_shown_as_text():
    bad = "\x1b]0;x\x07\u202eevil\u2028\x9b31m"
    given = Report(
        bad,
        f"{bad}\nsecond",
        [
            Block(type=bad, id=bad, summary=bad, details=bad),
            block("decision", id=bad, related_files=[bad], options=[dispatch(label=bad, effect=bad, instruction=bad)]),
        ],
    )

    lines = render(given, RenderOptions(expand_all=True))

    assert all(line.text.isprintable() for line in lines)
    assert "\\x1b]0;x\\x07\\u202eevil\\u2028\\x9b31m" in lines[0].text


def test_plain_text_is_the_rendering_with_everything_expanded():
    given = report(NOT_RUN, block("change", details="a\nb"))

    assert plain_text(given) == "\n".join(line.text for line in render(given, RenderOptions(expand_all=True)))


def test_a_report_without_anything_is_a_header():
    assert plain_text(Report()) == "[] "
