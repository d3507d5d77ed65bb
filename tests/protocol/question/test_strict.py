"""JSON as a hostile model writes it: a value or our own error, nothing else."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngate_protocol.question import InvalidQuestionError
from turngate_protocol.question.strict import convert, load

HOSTILE = {
    "nothing": "",
    "white space": " \n\t",
    "trailing value": "{} {}",
    "trailing word": "[]x",
    "trailing comma": "[1,]",
    "a comment": "// c\n{}",
    "single quotes": "{'a': 1}",
    "NaN": "[NaN]",
    "infinity": "[Infinity]",
    "minus infinity": "-Infinity",
    "a raw control character": '"a\tb"',
    "a byte order mark": "\ufeff{}",
    "a space of another alphabet": "\u00a0{}",
    "a key twice": '{"a":1,"a":1}',
    "a key twice, far down": '[[{"b":{"a":1,"\\u0061":2}}]]',
    "a surrogate as key": '{"\\ud800":1}',
    "nested lists": "[" * (1 << 20),
    "nested objects": '{"a":' * (1 << 18),
    "bytes of another encoding": "é".encode("latin-1"),
    "a surrogate in bytes": b'"\xed\xa0\x80"',
    "UTF-16": '{"a":1}'.encode("utf-16"),
    "NUL": "\0",
    "a mebibyte of nothing": " " * (1 << 20),
}


@pytest.mark.parametrize("document", HOSTILE.values(), ids=HOSTILE)
def test_what_is_not_exactly_one_json_value_is_refused(document):
    with pytest.raises(InvalidQuestionError) as caught:
        load("arguments", document)

    assert caught.value.path == "arguments"
    assert len(caught.value.message) < 400


@pytest.mark.parametrize(
    ("document", "value"),
    [
        (' \n{"a" : [true, null, "x"]} \t', {"a": [True, None, "x"]}),
        ('"\\ud83d\\ude00\\/"', "😀/"),
        ('"é"'.encode(), "é"),
        ('{"a":{"a":{"a":[]}}}', {"a": {"a": {"a": []}}}),
    ],
)
def test_json_is_read_as_it_is_written(document, value):
    assert load("arguments", document) == value


def test_a_number_of_a_million_digits_is_read_as_any_other():
    assert load("arguments", "1" * (1 << 20)) == float("inf")


@given(st.one_of(st.text(st.characters()), st.binary()))
def test_no_document_raises_anything_but_our_own_error(document):
    try:
        load("arguments", document)
    except InvalidQuestionError:
        return
    json.loads(document)  # what we accept, the standard library accepts too


class _Shape(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    parts: tuple["_Shape", ...] = ()


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ([], "arguments"),
        ({}, "arguments"),
        ({"name": 1.0}, "arguments.name"),
        ({"name": "x", "parts": [{"name": None}]}, "arguments.parts[0].name"),
        ({"name": "x", "more": 1.0}, "arguments"),
        ({"name": "x", "\x1b" * 1000: 1.0}, "arguments"),
    ],
)
def test_a_wrong_shape_is_refused_where_it_is_wrong(value, path):
    with pytest.raises(InvalidQuestionError) as caught:
        convert("arguments", value, _Shape)

    assert caught.value.path == path
    assert caught.value.message.isprintable()
    assert len(caught.value.message) < 1200


def test_a_right_shape_is_converted():
    assert convert("arguments", {"name": "x", "parts": [{"name": "y"}]}, _Shape) == _Shape("x", (_Shape("y"),))
