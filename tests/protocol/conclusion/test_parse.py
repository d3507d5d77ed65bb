"""What the last block of an output says; whatever it is, nothing raises and nothing is lost."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turngate_protocol.conclusion import Conclusion, parse
from turngate_protocol.conclusion.parse import carriable, quoted
from turngate_protocol.text import has_surrogate, trim

from .blocks import BODIES, OUTPUTS, TYPICAL, block


def test_a_typical_block_gives_every_field():
    assert parse(f"All done.\n\n{block(TYPICAL)}\n") == Conclusion(
        status="success",
        summary="The retry policy and its tests are in place",
        artifacts=("src/retry.py", "tests/test_retry.py", "docs/retry.md"),
        memory_refs=("kb/retry-policy", "kb/decisions/12"),
        follow_up="Run the soak test before the release",
        confidence=0.85,
    )


@pytest.mark.parametrize(
    ("raw", "summary"),
    [
        pytest.param("", None, id="nothing"),
        pytest.param("<pando:conclusion>\nsummary: x", None, id="never closed"),
        pytest.param("summary: x\n</pando:conclusion>", None, id="never opened"),
        pytest.param("</pando:conclusion><pando:conclusion>", None, id="closed before opened"),
        pytest.param(block("summary: one") + block("summary: two"), "two", id="two blocks"),
        pytest.param(block("summary: one") + "<pando:conclusion>\nsummary: two", "one", id="a later one unclosed"),
        pytest.param("<pando:conclusion>a" + block("summary: inner"), "inner", id="nested"),
        pytest.param("```\n" + block("\nsummary: x\n") + "\n```", "x", id="in a code fence"),
        pytest.param(block("\r\nsummary: x\r\n"), "x", id="CRLF"),
    ],
)
def test_the_last_closed_block_counts(raw: str, summary: str | None):
    found = parse(raw)

    assert (found and found.summary) == summary


@pytest.mark.parametrize(
    ("body", "warning"),
    [
        ("status: done\nsummary: s", 'status "done" is none of success, partial, failed, blocked'),
        ("summary: s\nconfidence: 7", "confidence 7 is outside of 0 to 1 and was clamped"),
        ("summary: s\nconfidence: -.inf", "confidence -inf is outside of 0 to 1 and was clamped"),
        ("summary: s\nartifacts: ['', a, ' ']", "2 blank artifacts were left out"),
        ("summary: s\nmemory_refs: ['']", "1 blank memory refs were left out"),
        ("status: success", "the block has no summary"),
        ("other: x", "the block has no usable field and was kept as the summary"),
        ("- a list", "the block is not usable YAML and was kept as the summary: it is not a mapping"),
        ("a: 'b", "the block is not usable YAML and was kept as the summary: found unexpected end of stream at line 1"),
    ],
)
def test_a_flaw_is_a_warning_that_names_it(body: str, warning: str):
    found = parse(block(body))

    assert found is not None
    assert found.warnings == (warning,)


def test_each_flaw_has_its_own_warning():
    found = parse(block("status: odd\nsummary: s\nconfidence: 2\nartifacts: ['']\nmemory_refs: ['']"))

    assert found is not None
    assert len(found.warnings) == 4


@pytest.mark.parametrize(
    ("written", "confidence"), [("0.5", 0.5), ("1", 1.0), ("2", 1.0), ("-1", 0.0), (".inf", 1.0), ("~", 0.0)]
)
def test_confidence_is_clamped_to_0_to_1(written: str, confidence: float):
    found = parse(block(f"summary: s\nconfidence: {written}"))

    assert found is not None
    assert found.confidence == confidence


def test_confidence_that_is_not_a_number_passes_without_a_warning():
    found = parse(block("summary: s\nconfidence: .nan"))

    assert found is not None
    assert math.isnan(found.confidence)
    assert found.warnings == ()


def test_a_block_with_nothing_but_confidence_keeps_it_beside_its_text():
    found = parse(block("\nconfidence: 0.9\n"))

    assert found is not None
    assert (found.summary, found.confidence) == ("confidence: 0.9", 0.9)


def test_a_warning_quotes_hostile_text_shortened_and_without_control_characters():
    found = parse(block('status: "\\e[2J\\n' + "x" * 500 + '"\nsummary: s'))

    assert found is not None
    assert found.warnings[0].startswith('status "\\x1b[2J\\nxxx')
    assert len(found.warnings[0]) < 150


@pytest.mark.parametrize("half", ["\ud800", "a\udfffb", "\udc00\ud800", "\ud83d\ude00\ud83d"])
def test_text_that_no_utf8_can_carry_becomes_replacement_characters(half: str):
    assert not has_surrogate(carriable(half))
    assert "\ufffd" in carriable(half)


def test_short_text_is_quoted_whole():
    assert quoted("a\tb") == "a\\tb"
    assert quoted("abcdef", 3) == "abc…"


def test_ten_megabytes_of_output_give_their_last_block():
    found = parse("log line\n" * 1_200_000 + block(TYPICAL))

    assert found is not None
    assert found.status == "success"


def test_ten_megabytes_of_block_are_kept_as_the_summary():
    body = "summary: x\n" * 950_000

    found = parse(block(body))

    assert found is not None
    assert found.summary == trim(body)
    assert len(found.warnings) == 1


@given(raw=OUTPUTS)
@settings(max_examples=400, deadline=None)
def test_no_output_raises_and_every_closed_block_is_found(raw: str):
    found = parse(raw)

    end = raw.rfind("</pando:conclusion>")
    assert (found is not None) == (end >= 0 and "<pando:conclusion>" in raw[:end])


@given(body=BODIES.filter(lambda body: "pando:conclusion>" not in body))
@settings(max_examples=400, deadline=None)
def test_text_that_can_not_be_structured_is_kept_whole(body: str):
    found = parse(block(body))

    assert found is not None
    if any("kept as the summary" in warning for warning in found.warnings):
        assert found.summary == carriable(trim(body))
        assert found.artifacts == found.memory_refs == ()


@given(body=BODIES)
@settings(max_examples=400, deadline=None)
def test_what_comes_out_is_never_larger_than_what_went_in(body: str):
    found = parse(block(body))

    assert found is not None
    texts = [found.status, found.summary, found.follow_up, *found.artifacts, *found.memory_refs]
    assert sum(map(len, texts)) <= len(body)
    assert len(found.warnings) <= 5
    assert sum(map(len, found.warnings)) < 2000


@given(
    prose=st.text().filter(lambda prose: "conclusion>" not in prose),
    body=BODIES.filter(lambda body: "pando:conclusion>" not in body),
)
@settings(max_examples=100, deadline=None)
def test_prose_around_a_block_changes_nothing(prose: str, body: str):
    assert repr(parse(prose + block(body) + prose)) == repr(parse(block(body)))
