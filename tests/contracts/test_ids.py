"""An id can never become a wildcard, another subject or a header line."""

import re

import pytest

from turngate_contracts.asyncapi_channels import NAMESPACE_PATTERN
from turngate_contracts.errors import ErrorCode, InvalidId
from turngate_contracts.ids import MAX_ID, check_id, check_namespace, is_id
from turngate_contracts.json_schemas import ID_PATTERN

GOOD = ["a", "A-1_b", "0", "-", "_", "x" * MAX_ID, "01890a5d-ac96-774b-bcce-b302099a8057"]
HOSTILE = {
    "empty": "",
    "one too many": "x" * (MAX_ID + 1),
    "dot": "a.b",
    "space": "a b",
    "leading space": " a",
    "star": "*",
    "part of a star": "a*",
    "all": ">",
    "line feed": "a\nb",
    "trailing line feed": "a\n",
    "carriage return": "a\rb",
    "header line": "a\r\nNats-Rollup: all",
    "tab": "a\tb",
    "nul": "a\0b",
    "umlaut": "ä",
    "digit of another script": "\N{ARABIC-INDIC DIGIT ONE}",
    "look-alike": "\N{CYRILLIC SMALL LETTER A}",
    "surrogate": "\ud800",
    "dollar": "$SYS",
    "slash": "a/b",
    "colon": "a:b",
}


@pytest.mark.parametrize("value", GOOD)
def test_an_id_is_taken_as_it_is(value: str):
    assert is_id(value)
    assert check_id("session", value) == value
    assert re.search(ID_PATTERN, value)


@pytest.mark.parametrize("value", HOSTILE.values(), ids=HOSTILE.keys())
def test_anything_else_is_refused_by_name(value: str):
    assert not is_id(value)

    with pytest.raises(InvalidId) as refused:
        check_id("session", value)

    assert refused.value.code is ErrorCode.INVALID_ID
    assert refused.value.field == "session"
    assert "session" in refused.value.message
    assert refused.value.message.isprintable()


@pytest.mark.parametrize("value", [None, 7, b"abc", ["a"]], ids=repr)
def test_what_is_no_text_is_no_id(value: object):
    with pytest.raises(InvalidId):
        check_id("session", value)  # type: ignore[arg-type]


# Python's $ also matches before a line feed at the end; the regular expressions of JSON Schema do not.
@pytest.mark.parametrize("value", [value for name, value in HOSTILE.items() if name != "trailing line feed"])
def test_the_pattern_in_the_documents_refuses_the_same(value: str):
    assert not re.search(ID_PATTERN, value)


@pytest.mark.parametrize("value", ["tg", "a", "t0123456789", "x" * 31])
def test_a_namespace_is_taken_as_it_is(value: str):
    assert check_namespace(value) == value
    assert re.search(NAMESPACE_PATTERN, value)


@pytest.mark.parametrize("value", ["", "TG", "1a", "a-b", "a_b", "a.b", "x" * 32, "a\n", "*", "ä"])
def test_another_namespace_is_refused(value: str):
    with pytest.raises(InvalidId):
        check_namespace(value)
