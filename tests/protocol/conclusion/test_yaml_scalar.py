"""Numbers and tags of single scalars, by the rules of the decoder that the vectors come from."""

import math

import pytest
from yaml.events import ScalarEvent

from turngate_protocol.conclusion.yaml_scalar import TAG_PREFIX, NotStructured, number, scalar_number, scalar_text


def scalar(text: str, tag: str | None = None, style: str | None = None) -> ScalarEvent:
    known = tag is not None and tag.startswith("!!")
    return ScalarEvent(None, TAG_PREFIX + tag[2:] if known and tag else tag, (True, False), text, style=style)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0), ("7", 7), ("-3", -3), ("+3", 3), ("1_000", 1000), ("0x1F", 31), ("-0x1f", -31), ("0b101", 5),
        ("-0b1", -1), ("0o17", 15), ("010", 8), ("08", 8.0), ("00", 0), ("0.5", 0.5), (".5", 0.5), ("5.", 5.0),
        ("1e-3", 0.001), ("0.1_5", 0.15), ("9223372036854775807", 2**63 - 1), ("18446744073709551615", 2**64 - 1),
        ("18446744073709551616", 2.0**64), ("-9223372036854775808", -(2**63)), ("-9223372036854775809", -(2.0**63)),
        (".inf", math.inf), ("-.INF", -math.inf), ("+.Inf", math.inf),
    ],
)  # fmt: skip
def test_a_number_is_read(text: str, value: float):
    assert number(text) == value
    assert type(number(text)) is type(value)


@pytest.mark.parametrize(
    "text",
    ["", "x", "0x", "0b2", "1e", "1e999", "--1", "80%", "._5", "inf", "nan", "0x1p3", "1 2", "2024-01-02", "٣", "0xg",
     "0x" + "f" * 5000],
)  # fmt: skip
def test_what_only_looks_like_a_number_is_none(text: str):
    assert number(text) is None


def test_a_number_of_many_digits_costs_no_more_than_reading_it():
    assert number("1" * 100_000) is None
    assert number("0." + "3" * 100_000) == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (scalar("~"), None),
        (scalar(""), None),
        (scalar("~", style="'"), "~"),
        (scalar("~", "!!str"), "~"),
        (scalar("~", "!!null"), None),
        (scalar("~", "!"), None),
        (scalar("x", "!custom"), "x"),
        (scalar("aGVs\nbG8=", "!!binary"), "hello"),
        (scalar("/w==", "!!binary"), "\ufffd"),
        (scalar("true", "!!bool"), "true"),
        (scalar("12", "!!int"), "12"),
        (scalar("12", "!!float"), "12"),
        (scalar("2024-01-02", "!!timestamp"), "2024-01-02"),
    ],
)
def test_a_scalar_keeps_the_text_that_was_written(event: ScalarEvent, text: str | None):
    assert scalar_text(event) == text


@pytest.mark.parametrize(
    "event",
    [
        scalar("x", "!!null"),
        scalar("yes", "!!bool"),
        scalar("0.5", "!!int"),
        scalar("x", "!!float"),
        scalar("today", "!!timestamp"),
        scalar("a", "!!binary"),
        scalar("ä", "!!binary"),
        scalar("\ud800"),
    ],
)
def test_a_scalar_that_its_tag_is_not_true_of_is_refused(event: ScalarEvent):
    with pytest.raises(NotStructured):
        scalar_text(event)


@pytest.mark.parametrize(
    ("event", "value"),
    [
        (scalar("0.5"), 0.5),
        (scalar("0.5", "!"), 0.5),
        (scalar("0.5", "!!float", '"'), 0.5),
        (scalar("1", "!!int"), 1.0),
        (scalar("~"), None),
    ],
)
def test_confidence_is_a_plain_or_tagged_number(event: ScalarEvent, value: float | None):
    assert scalar_number(event) == value


@pytest.mark.parametrize(
    "event",
    [scalar("0.5", style='"'), scalar("0.5", "!!str"), scalar("0.5", "!x"), scalar("true"), scalar("true", "!!bool")],
)
def test_confidence_that_is_quoted_or_of_another_type_is_refused(event: ScalarEvent):
    with pytest.raises(NotStructured):
        scalar_number(event)
