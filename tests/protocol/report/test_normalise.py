"""Normalising: what it cleans, what it leaves alone, and that an unchanged report is the same object."""

import pytest
from msgspec.structs import fields, replace

from tests.protocol.report.samples import block, everything, option, report
from turngate_protocol.report import Block, Option, Report, Status, normalise
from turngate_protocol.report.normalise import unfence
from turngate_protocol.text import WHITE_SPACE

BLOCK_TEXTS = [info.name for info in fields(Block) if info.type is str]
OPTION_TEXTS = [info.name for info in fields(Option) if info.type is str]


def test_a_report_that_needs_nothing_is_the_same_object():
    clean = everything()

    assert normalise(clean) is clean


def test_the_texts_of_a_block_come_before_its_other_fields():
    assert [info.name for info in fields(Block)][: len(BLOCK_TEXTS)] == BLOCK_TEXTS
    assert [info.name for info in fields(Option)] == OPTION_TEXTS


@pytest.mark.parametrize("name", BLOCK_TEXTS)
def test_every_text_of_a_block_is_trimmed(name: str):
    given = report(block("change"), replace(block("change"), **{name: "\t x \n"}))

    assert normalise(given).blocks == [block("change"), replace(block("change"), **{name: "x"})]


@pytest.mark.parametrize("name", OPTION_TEXTS)
def test_every_text_of_an_option_is_trimmed(name: str):
    given = report(block("decision", options=[option(), replace(option(), **{name: " x"})]))

    assert normalise(given).blocks[0].options == [option(), replace(option(), **{name: "x"})]


def test_status_and_headline_are_trimmed():
    assert normalise(Report(" completed", "Done\n")) == Report("completed", "Done")


def test_file_names_are_trimmed_and_empty_ones_stay():
    assert normalise(report(Block(related_files=[" a.py ", " "]))).blocks[0].related_files == ["a.py", ""]


@pytest.mark.parametrize("space", WHITE_SPACE)
def test_every_white_space_character_is_trimmed(space: str):
    assert normalise(Report("", f"{space}a{space}b{space}")).headline == f"a{space}b"


@pytest.mark.parametrize("mark", ["\x1c", "\x1d", "\x1e", "\x1f", "\ufeff", "\u200b", "\u180e"])
def test_what_only_looks_like_white_space_stays_and_the_object_too(mark: str):
    given = report(
        Block(summary=f"{mark}a{mark}", related_files=[mark], options=[Option(label=mark)]), headline=f"{mark}a"
    )

    assert normalise(given) is given


def test_the_report_that_was_given_is_not_changed():
    given = report(Block(summary=" a ", related_files=[" b "], options=[Option(label=" c ")]))
    before = repr(given)

    normalise(given)

    assert repr(given) == before


@pytest.mark.parametrize(
    ("sent", "meant"), [("check", "verification"), ("next", "next_step"), (" check\n", "verification")]
)
def test_the_block_types_of_newer_runners_get_their_name(sent: str, meant: str):
    assert normalise(report(Block(type=sent))).blocks == [Block(type=meant)]


@pytest.mark.parametrize("sent", ["Check", "checks", "NEXT", "suggested"])
def test_other_block_types_are_left_to_the_validator(sent: str):
    given = report(Block(type=sent, suggested_type="check"))

    assert normalise(given) is given


def test_a_status_given_as_its_enum_member_needs_nothing():
    given = Report(Status.COMPLETED, "Done")

    assert normalise(given) is given


FENCED = [
    ("```\na\n```", "a"),
    ("```go\nx := 1\n```", "x := 1"),
    ("```c++\nz\n```", "z"),
    ("```A_1-b+\nz\n```", "z"),
    ("  ```py\n  body\n```  ", "body"),
    ("```\n```", ""),
    ("```\nend```", "end"),
    ("```\na\n```\nb\n```\nc\n```", "a\n```\nb\n```\nc"),
    ("```md\n```py\nx\n```\n```", "x"),
    ("```\n \n```", ""),
    ("```\n```\n```", "```"),
]
UNFENCED = [
    "```x```",
    "```",
    "``````",
    "````\nq\n````",
    "```a b\nz\n```",
    "```\nno close",
    "```js\r\ncr\r\n```",
    "```é\nz\n```",
    "pre\n```\na\n```",
    "```\na\n```\npost",
    "``\na\n``",
    "~~~\na\n~~~",
    "```\n``",
]


@pytest.mark.parametrize(("text", "bare"), FENCED)
def test_a_fence_around_a_whole_value_goes(text: str, bare: str):
    given = report(block("decision", details=text, options=[option(preview=text)]))

    clean = normalise(given).blocks[0]

    assert (clean.details, clean.options[0].preview) == (bare, bare)


def test_a_fence_around_a_preview_goes_where_nothing_else_has_to_change():
    given = report(block("decision", options=[option(), option(preview="```\na\n```")]))

    assert normalise(given).blocks[0].options == [option(), option(preview="a")]


@pytest.mark.parametrize("text", UNFENCED)
def test_a_value_that_is_not_wholly_fenced_stays_and_the_object_too(text: str):
    given = report(block("decision", details=text, options=[option(preview=text)]))

    assert normalise(given) is given


@pytest.mark.parametrize("name", ["summary", "evidence", "impact"])
def test_a_fence_in_any_other_text_stays(name: str):
    given = report(replace(block("change"), **{name: "```\na\n```"}))

    assert normalise(given) is given


def test_a_value_of_nothing_but_fences_is_read_once():
    deep = 40_000

    assert unfence("```\n" * deep + "x" + "\n```" * deep) == "x"
