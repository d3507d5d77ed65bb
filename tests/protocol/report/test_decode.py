"""From bytes to a report: no bytes raise, and what comes out can be stored and read by others."""

import json
from typing import Any

import msgspec
import pytest

from tests.protocol.report.samples import encoded, everything, fixture, places
from turngate_protocol.report import DEPTH_MAX, REPORT_MAX, Report, Rules, decode, normalise, validate
from turngate_protocol.report.model import JUDGED_BLOCKS, JUDGED_OPTIONS
from turngate_protocol.report.problems import PROBLEMS_COUNTED


def test_a_report_decodes_to_the_record():
    assert decode(encoded(everything())) == everything()


@pytest.mark.parametrize("name", ["report_4k.json", "report_11k.json"])
def test_the_sample_reports_are_accepted_as_they_are(name: str):
    report = decode(fixture(name))

    assert isinstance(report, Report)
    assert normalise(report) is report
    assert validate(report, Rules(mutated=True)) == []


@pytest.mark.parametrize("data", [None, b"", b" \r\n\t ", b"null", b" null\n"])
def test_no_report_is_a_missing_report(data: bytes | None):
    assert places(refused(data)) == [("/", "report_missing")]


def test_a_report_of_the_largest_size_is_read():
    assert decode(padded(REPORT_MAX)) == Report("completed", "Done")


def test_a_report_over_the_largest_size_is_too_large():
    problems = refused(padded(REPORT_MAX + 1))

    assert places(problems) == [("/", "report_too_large")]
    assert str(REPORT_MAX + 1) in problems[0].message


def test_unknown_fields_are_ignored():
    sent = b'{"task_status":"failed","mood":{"a":[1,null,1e999]},"blocks":[{"type":"change","x":"y"}]}'

    report = decode(sent)

    assert isinstance(report, Report)
    assert report.task_status == "failed"
    assert report.blocks[0].type == "change"


def test_of_a_repeated_key_the_last_value_counts():
    assert decode(b'{"headline":"a","headline":"b"}') == Report("", "b")


@pytest.mark.parametrize(
    ("data", "byte"),
    [
        (b'{"headline": "a\xff"}', 15),
        (b'{"mood": "\xed\xa0\x80"}', 10),
        (b'{"\xc0\x80": 1}', 2),
        (b"\xff\xfe{\x00}\x00", 0),
    ],
)
def test_bytes_that_are_not_utf_8_are_refused_even_in_an_unknown_field(data: bytes, byte: int):
    problems = refused(data)

    assert places(problems) == [("/", "report_malformed")]
    assert f"byte {byte};" in problems[0].message


@pytest.mark.parametrize("opening", [b"[", b'{"a":'])
@pytest.mark.parametrize("depth", [DEPTH_MAX + 1, 10_000])
def test_nesting_that_another_reader_may_not_survive_is_refused(opening: bytes, depth: int):
    data = opening * depth + b"1" + (b"]" if opening == b"[" else b"}") * depth

    for sent in (data, b'{"mood":' + data + b"}", data[: depth * len(opening)]):
        assert places(refused(sent)) == [("/", "report_malformed")]


def test_nesting_in_an_unknown_field_is_read_up_to_the_limit():
    inner = DEPTH_MAX - 1

    assert decode(b'{"headline":"a","mood":' + b"[" * inner + b"]" * inner + b"}") == Report("", "a")


@pytest.mark.parametrize("details", ["[" * 500, '{"a":' * 500, '\\"[' * 500, "\\" + '"' + "{" * 500])
def test_brackets_in_a_text_are_not_nesting(details: str):
    report = decode(json.dumps({"blocks": [{"details": details}, {}, {"options": []}]}).encode())

    assert isinstance(report, Report)
    assert report.blocks[0].details == details


def test_many_brackets_side_by_side_are_not_nesting():
    report = decode(b'{"blocks":[' + b",".join([b"{}"] * 900) + b"]}")

    assert isinstance(report, Report)
    assert len(report.blocks) == 900


def test_of_a_flood_of_blocks_only_as_many_are_read_as_an_operator_may_allow():
    report = decode(flood(b"{}"))

    assert isinstance(report, Report)
    assert len(report.blocks) == JUDGED_BLOCKS
    assert report.headline == "after the flood"


def test_of_a_flood_of_options_only_the_first_are_read_and_the_rest_of_the_block_stays():
    report = decode(b'{"blocks":[{"id":"a","options":[' + b",".join([b"{}"] * 5_000) + b'],"summary":"s"},{"id":"b"}]}')

    assert isinstance(report, Report)
    assert [(block.id, block.summary, len(block.options)) for block in report.blocks] == [
        ("a", "s", JUDGED_OPTIONS),
        ("b", "", 0),
    ]


def test_nulls_and_wrong_types_flood_no_more_than_blocks_do():
    nulls, numbers = decode(flood(b"null")), refused(flood(b"1"))

    assert isinstance(nulls, Report)
    assert len(nulls.blocks) == JUDGED_BLOCKS
    assert len(numbers) == PROBLEMS_COUNTED


@pytest.mark.parametrize("item", [b"{}", b"null", b"1", b'{"type":"finding"}', b'{"options":[{},{},{},{},{},{}]}'])
def test_the_worst_flood_is_refused_with_its_number_and_a_bounded_list_of_problems(item: bytes):
    report = decode(flood(item))

    problems = validate(normalise(report), Rules()) if isinstance(report, Report) else report

    assert PROBLEMS_COUNTED <= len(problems) < PROBLEMS_COUNTED + 100
    if isinstance(report, Report):
        assert "There are 1000 or more blocks" in problems[0].message


def test_a_string_that_never_ends_is_looked_at_once():
    data = b'{"headline":"' + b'\\"[' * 200_000

    assert places(refused(data)) == [("/", "report_malformed")]


def test_a_stack_that_is_nearly_used_up_is_a_refusal():
    def at_the_bottom() -> Any:
        try:
            return at_the_bottom()
        except RecursionError:
            return decode(b'{"blocks":[{"options":[null]}]}')

    assert places(at_the_bottom()) == [("/", "report_malformed")]


def test_a_report_that_only_a_second_reading_understood_does_not_keep_its_bytes():
    report = decode(b'{"task_status":"completed","headline":null,"blocks":[null]}')

    assert isinstance(report, Report)
    normal = normalise(report)
    assert normal is not report
    assert type(normal) is Report
    assert msgspec.json.decode(encoded(normal), type=Report) == normal


def flood(item: bytes) -> bytes:
    """The largest report that is nothing but this block over and over."""
    head, tail = b'{"task_status":"completed","blocks":[', b'],"headline":"after the flood"}'
    return head + b",".join([item] * ((REPORT_MAX - len(head) - len(tail)) // (len(item) + 1))) + tail


def refused(data: bytes | None) -> list[Any]:
    problems = decode(data)
    assert isinstance(problems, list)
    return problems


def padded(size: int) -> bytes:
    start = b'{"task_status":"completed","headline":"Done","blocks":[]'
    return start + b" " * (size - len(start) - 1) + b"}"
