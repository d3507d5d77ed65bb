"""What holds for every report and for any bytes, looked for with generated ones."""

import json
import unicodedata
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from msgspec.structs import fields, replace

from tests.protocol.report.samples import TYPES, block, dispatch, encoded, everything, fixture
from turngate_protocol.report import (
    Block,
    Option,
    RenderOptions,
    Report,
    Rules,
    buried_proposal_hint,
    choices,
    decode,
    format_problems,
    normalise,
    order,
    plain_text,
    render,
    validate,
)

FIELDS = [info.name for record in (Report, Block, Option) for info in fields(record)]
WORDS = [
    *TYPES,
    "check",
    "next",
    "completed",
    "needs_action",
    "blocked",
    "failed",
    "single",
    "dispatch",
    "collect",
    "resolve",
    "high",
    "low",
    "partial",
    "not_run",
    "passed",
    "```",
    "```py\n",
    "\n```",
    " ",
    "\n",
    "\t",
    "\x1f",
    "\u2028",
    "\u202e",
    "\x1b[31m",
    "a",
    "a-1",
    "shall i",
    "😀",
]
BLOCK_TEXTS = [info.name for info in fields(Block) if info.type is str]
OPTION_TEXTS = [info.name for info in fields(Option)]

unhurried = settings(deadline=None, max_examples=60)

texts = st.one_of(
    st.sampled_from(WORDS),
    st.lists(st.sampled_from(WORDS), max_size=6).map("".join),
    st.text(st.characters(codec="utf-8"), max_size=20),
    st.sampled_from(["a", "é", "😀"]).map(lambda char: char * 1_100),
)
lines = texts.filter(lambda text: bool(text.strip()) and len(text) <= 160 and not set("\r\n") & set(text))


def changed(names: list[str]) -> st.SearchStrategy[dict[str, str]]:
    return st.dictionaries(st.sampled_from(names), texts, max_size=3)


options = st.builds(lambda changes: replace(dispatch(), **changes), changed(OPTION_TEXTS))
blocks = st.builds(
    lambda kind, changes, files, offered: replace(block(kind), related_files=files, options=offered, **changes),
    st.sampled_from(TYPES),
    changed(BLOCK_TEXTS),
    st.lists(texts, max_size=2),
    st.lists(options, max_size=3),
)
reports = st.builds(Report, texts, texts, st.lists(blocks, max_size=4))
rules = st.builds(Rules, st.integers(-1, 3), st.booleans())
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*FIELDS, "x"]), inner, max_size=4),
    max_leaves=12,
)
# Of the right types but for nulls and unknown fields, so that it decodes.
wire_blocks = st.none() | st.dictionaries(st.sampled_from([*BLOCK_TEXTS, "x"]), st.none() | texts, max_size=4)


@st.composite
def nearly_accepted(draw: st.DrawFn) -> Report:
    """Valid blocks with other prose: nearly all accepted, with white space and fences for normalising to find."""
    kinds = draw(st.lists(st.sampled_from(TYPES), min_size=1, max_size=3, unique=True))
    made = [
        replace(block(kind), summary=draw(lines), details=draw(texts), related_files=draw(st.lists(texts, max_size=2)))
        for kind in kinds
    ]
    if {"decision", "question", "next_step"} & set(kinds):
        status = "needs_action"
    else:
        status = "blocked" if "blocked" in kinds else "completed"
    return Report(status, draw(lines), made)


@unhurried
@given(st.binary(max_size=200))
def test_no_bytes_make_decoding_raise(data: bytes):
    assert decode(data) is not None


@unhurried
@given(json_values)
def test_no_json_makes_decoding_raise(value: Any):
    data = json.dumps(value).encode()

    result = decode(data)

    assert isinstance(result, Report) or (result and all(problem.message.encode() for problem in result))


@unhurried
@given(st.integers(0, 4_000), st.binary(max_size=3))
def test_no_damage_to_a_report_makes_decoding_raise(at: int, damage: bytes):
    data = fixture("report_4k.json")

    result = decode(data[:at] + damage + data[at + 1 :])

    if isinstance(result, Report):
        assert encoded(result)
        validate(normalise(result))


@unhurried
@given(st.lists(wire_blocks, max_size=3), st.none() | texts)
def test_what_decoding_gives_can_be_judged_encoded_and_shown(value: list[Any], headline: str | None):
    result = decode(json.dumps({"blocks": value, "headline": headline}).encode())
    assert isinstance(result, Report)

    problems = validate(result)

    format_problems(problems)
    plain_text(result)
    normal = normalise(result)
    assert decode(encoded(normal)) == normal


@unhurried
@given(reports)
def test_normalising_twice_is_normalising_once(report: Report):
    once = normalise(report)

    assert normalise(once) is once


@unhurried
@given(reports)
def test_an_unchanged_report_is_the_same_object_and_only_then(report: Report):
    normal = normalise(report)

    assert (normal is report) is (normal == report)


@unhurried
@given(nearly_accepted(), rules)
def test_normalising_never_makes_an_accepted_report_a_rejected_one(report: Report, turn: Rules):
    # A summary or a headline of nothing but white space is left out: the validator, which trims nothing, accepts it.
    assume(not validate(report, turn))

    assert validate(normalise(report), turn) == []


@unhurried
@given(reports, rules)
def test_no_report_makes_the_rules_raise(report: Report, turn: Rules):
    problems = validate(report, turn)

    buried_proposal_hint(report)
    assert all(len(problem.message) < 1_000 and problem.message.isprintable() for problem in problems)


@unhurried
@given(reports)
def test_the_order_is_a_permutation_of_the_blocks(report: Report):
    assert sorted(order(report)) == list(range(len(report.blocks)))


@unhurried
@given(reports)
def test_the_choices_are_the_options_of_the_blocks_that_ask(report: Report):
    found = choices(report)

    assert len({(choice.block, choice.option) for choice in found}) == len(found)
    assert len(found) == sum(len(block.options) for block in report.blocks if block.interactive)
    assert [choice.number for choice in found] == [n if n <= 9 else 0 for n in range(1, len(found) + 1)]


@unhurried
@given(reports, st.booleans(), st.booleans())
def test_no_line_holds_a_control_or_format_character(report: Report, expand_all: bool, hide_not_run: bool):
    lines = render(report, RenderOptions(expand_all=expand_all, hide_not_run=hide_not_run))

    shown = "".join(line.text for line in lines)
    assert not {unicodedata.category(char) for char in shown} & {"Cc", "Cf", "Cs", "Zl", "Zp"}


def test_the_generated_reports_start_from_accepted_ones():
    assert validate(everything()) == []
