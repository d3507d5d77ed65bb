"""What is wrong with bytes that are no report: all of it, each at its place."""

import json
from typing import Any

import pytest
from msgspec.structs import fields

from tests.protocol.report.samples import places
from turngate_protocol.report import Block, Option, Report, decode


@pytest.mark.parametrize(
    ("value", "paths"),
    [
        (3, ["/"]),
        ("text", ["/"]),
        (True, ["/"]),
        ([], ["/"]),
        ([{}], ["/"]),
        ({"task_status": 1}, ["/task_status"]),
        ({"task_status": 1.5, "headline": ["a"], "blocks": {}}, ["/task_status", "/headline", "/blocks"]),
        ({"blocks": "none"}, ["/blocks"]),
        ({"blocks": [1, {}, "a", []]}, ["/blocks/0", "/blocks/2", "/blocks/3"]),
        (
            {"blocks": [{"type": {}, "id": 7}, {"summary": False}]},
            ["/blocks/0/type", "/blocks/0/id", "/blocks/1/summary"],
        ),
        ({"blocks": [{"blocks_current_task": "false"}]}, ["/blocks/0/blocks_current_task"]),
        ({"blocks": [{"blocks_current_task": 0}]}, ["/blocks/0/blocks_current_task"]),
        ({"blocks": [{"related_files": "a.py"}]}, ["/blocks/0/related_files"]),
        (
            {"blocks": [{"related_files": ["a", 1, None, {}]}]},
            ["/blocks/0/related_files/1", "/blocks/0/related_files/3"],
        ),
        ({"blocks": [{"options": {}}]}, ["/blocks/0/options"]),
        (
            {"blocks": [{"options": [{"id": 1}, 2, {"effect": []}]}]},
            ["/blocks/0/options/0/id", "/blocks/0/options/1", "/blocks/0/options/2/effect"],
        ),
        ({"headline": 10**400, "task_status": -1}, ["/headline", "/task_status"]),
    ],
)
def test_every_wrong_type_is_named_with_its_place(value: Any, paths: list[str]):
    assert places(refused(json.dumps(value).encode())) == [(path, "report_malformed") for path in paths]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([], "The report is a list; it has to be an object."),
        ({"headline": 1}, "headline is a number; it has to be text."),
        ({"blocks": [{"options": [True]}]}, "Item 0 is true or false; it has to be an object."),
        ({"blocks": {}}, "blocks is an object; it has to be a list."),
        ({"blocks": [{"blocks_current_task": "no"}]}, "blocks_current_task is text; it has to be true or false."),
    ],
)
def test_the_sentence_says_what_stands_there_and_what_should(value: Any, message: str):
    assert [problem.message for problem in refused(json.dumps(value).encode())] == [message]


@pytest.mark.parametrize(
    ("data", "byte"),
    [
        (b"{", 1),
        (b'{"headline": "a"', 16),
        (b'{"headline": "\x01"}', 14),
        (b'{"headline": "a"} x', 18),
        ('{"headline": "—" "b"}'.encode(), 19),
        (b'{"headline": tru}', 13),
        (b'{"headline": 01}', 14),
        (b'{"headline": "\\q"}', 14),
        (b'{"headline": "\\u12"}', 15),
        (b"[1, 2", 5),
        (b"hello", 0),
        (b"\xef\xbb\xbf{}", 0),
    ],
)
def test_bytes_that_are_not_json_are_refused_at_their_byte(data: bytes, byte: int):
    problems = refused(data)

    assert places(problems) == [("/", "report_malformed")]
    assert f"at byte {byte} " in problems[0].message


@pytest.mark.parametrize("literal", ["NaN", "Infinity", "-Infinity"])
def test_a_number_that_json_does_not_have_is_refused(literal: str):
    problems = refused(f'{{"headline": {literal}}}'.encode())

    assert places(problems) == [("/", "report_malformed")]
    assert literal in problems[0].message


@pytest.mark.parametrize(
    ("data", "path"),
    [
        (b'{"headline": "a\\ud800"}', "/headline"),
        (b'{"headline": "\\udc00\\ud800"}', "/headline"),
        (b'{"blocks": [{"related_files": ["\\ud800"]}]}', "/blocks/0/related_files/0"),
        (b'{"mood": "\\ud800"}', "/"),
        (b'{"\\ud800": 1}', "/"),
        (b'{"blocks": [{"x": [{"y": {"\\udfff": 1}}]}]}', "/blocks/0"),
        (b'{"blocks": [{"options": [{"x": ["a", "\\udfff"]}]}]}', "/blocks/0/options/0"),
        (b'{"x": [1, {"a": "b"}], "y": "\\udfff"}', "/"),
    ],
)
def test_half_of_a_surrogate_pair_is_refused_and_reaches_no_message(data: bytes, path: str):
    problems = refused(data)

    assert places(problems) == [(path, "report_malformed")]
    assert all(problem.message.encode() for problem in problems)


def test_a_whole_surrogate_pair_is_one_character():
    assert decode(b'{"headline": "\\ud83d\\ude00"}') == Report("", "😀")


NULLS = [info.name for info in fields(Block)]


@pytest.mark.parametrize("name", NULLS)
def test_a_null_field_of_a_block_is_an_absent_one(name: str):
    assert recovered({"blocks": [{"type": "change", name: None}]}) == (
        Report("", "", [Block()]) if name == "type" else Report("", "", [Block(type="change")])
    )


def test_a_null_in_a_list_is_an_empty_item():
    value = {"blocks": [None, {"related_files": [None, "a"], "options": [None]}]}

    assert recovered(value) == Report("", "", [Block(), Block(related_files=["", "a"], options=[Option()])])


@pytest.mark.parametrize("flag", [True, False])
def test_what_stands_beside_a_null_is_kept(flag: bool):
    value = {"blocks": [{"id": None, "type": "finding", "blocks_current_task": flag, "mood": 1}]}

    assert recovered(value) == Report("", "", [Block(type="finding", blocks_current_task=flag)])


def test_null_fields_of_the_report_are_absent():
    assert recovered({"task_status": None, "headline": None, "blocks": None}) == Report()


def test_a_wrong_value_that_a_later_one_replaces_does_not_matter():
    report = decode(b'{"headline": 1, "headline": "b"}')

    assert isinstance(report, Report)
    assert report.headline == "b"


def test_a_number_too_long_for_python_to_convert_is_still_only_a_number():
    problems = refused(b'{"headline": ' + b"9" * 10_000 + b', "task_status": 1e99999}')

    assert places(problems) == [("/headline", "report_malformed"), ("/task_status", "report_malformed")]


@pytest.mark.parametrize("record", [Report, Block, Option])
def test_the_second_reading_knows_the_type_of_every_field(record: type):
    known = {str, bool | None, list[str], list[Option], list[Block]}

    assert all(info.type in known for info in fields(record))


def refused(data: bytes) -> list[Any]:
    problems = decode(data)
    assert isinstance(problems, list)
    return problems


def recovered(value: Any) -> Report:
    report = decode(json.dumps(value).encode())
    assert isinstance(report, Report)
    return Report(report.task_status, report.headline, report.blocks)
