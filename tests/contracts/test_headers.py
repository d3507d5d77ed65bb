"""A header block can't be forged through a name or a value."""

import pytest

from turngate_contracts import headers
from turngate_contracts.headers import block


def test_a_block_is_what_the_protocol_says():
    assert block({"Turngate-Schema": "verdict.v1", "traceparent": "00-1"}) == (
        b"NATS/1.0\r\nTurngate-Schema: verdict.v1\r\ntraceparent: 00-1\r\n\r\n"
    )


def test_no_fields_are_a_block_too():
    assert block({}) == b"NATS/1.0\r\n\r\n"


@pytest.mark.parametrize("hostile", ["a\r\nNats-Rollup: all", "a\n", "\n", "a\r", "\r\n\r\nbody"], ids=repr)
@pytest.mark.parametrize("place", ["name", "value"])
def test_a_line_break_is_refused(hostile: str, place: str):
    fields = {hostile: "x"} if place == "name" else {"x": hostile}

    with pytest.raises(ValueError, match="line break"):
        block(fields)


def test_a_line_break_is_not_made_up_for_by_a_field_without_one():
    with pytest.raises(ValueError, match="line break"):
        block({"a": "1\n", "b": "2\r"})


def test_no_two_of_our_headers_share_a_name():
    names = [value for name, value in vars(headers).items() if name.isupper() and isinstance(value, str)]

    assert len(names) == len({name.lower() for name in names}) > 0
