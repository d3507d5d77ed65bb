import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngate_protocol.esm import InvalidReportError, parse_audit, parse_recovery, parse_worker
from turngate_protocol.esm.role_reports import report_text

PARSERS = (parse_worker, parse_audit, parse_recovery)


def test_the_report_is_the_first_object_and_what_stands_around_it_is_ignored():
    text = 'Well:\n```json\n{"status": "continue", "summary": "a } b"}\n```\n{"status": "nonsense"}'
    assert report_text(text) == '{"status": "continue", "summary": "a } b"}'
    assert parse_worker(text).summary == "a } b"


def test_a_second_object_is_never_looked_for():
    with pytest.raises(InvalidReportError):
        parse_worker('{broken} {"status": "continue"}')


def test_of_duplicate_keys_in_any_spelling_the_last_wins():
    assert parse_worker('{"status": "continue", "STATUS": "x", "Status": "blocked_candidate"}').status == (
        "blocked_candidate"
    )


def test_a_null_says_nothing():
    report = parse_worker('{"status": "continue", "status": null, "evidence": [null, " a ", " "], "blockers": null}')
    assert (report.status, report.evidence, report.blockers) == ("continue", ("a",), ())


def test_missing_work_joins_the_remaining_work_once():
    report = parse_worker('{"status": "continue", "remaining_work": ["a", " a", "b"], "missing_work": ["b", "c"]}')
    assert report.remaining_work == ("a", "b", "c")


def test_only_unicode_white_space_is_trimmed():
    assert parse_worker('{"status": "\u2003continue\u0085", "summary": "\\u001cx"}').summary == "\x1cx"


def test_numbers_that_nobody_asked_for_do_no_harm():
    assert parse_worker('{"status": "continue", "x": 1e999, "y": ' + "9" * 10_000 + "}").status == "continue"


def test_a_blocked_recovery_names_what_blocks():
    with pytest.raises(InvalidReportError):
        parse_recovery('{"decision": "blocked", "summary": "s", "blockers": [" "]}')


HOSTILE = {
    "nothing": "",
    "prose": "I am done.",
    "an array": '["status"]',
    "truncated": '{"status": "continue", "summary": "and so',
    "a text for a list": '{"status": "continue", "evidence": "e", "verdict": "pass", "decision": "resume"}',
    "an object for a list": '{"status": "continue", "verdict": "pass", "decision": "resume", "evidence": {}}',
    "an object for a text": '{"status": {}, "verdict": {}, "decision": {}}',
    "NaN": '{"status": "continue", "verdict": "pass", "decision": "resume", "summary": "s", "x": NaN}',
    "half a character": (
        '{"status": "continue", "verdict": "pass", "decision": "resume", "summary": "\\ud800", "review": "\\udfff"}'
    ),
    "a raw half character": '{"status": "\ud800", "verdict": "\ud800", "decision": "\ud800"}',
    "control characters": '{"status": "continue\x01", "verdict": "pass\x01", "decision": "resume\x01"}',
    "10,000 levels": '{"x": ' + "[" * 10_000 + "]" * 10_000 + "}",
    "10,000 objects": '{"x":' * 10_000 + "1" + "}" * 10_000,
    "unbalanced": "{" * 100_000,
    "too long": '{"status": "continue", "verdict": "pass", "decision": "resume", "x": "' + "x" * 524_288 + '"}',
    "backslashes": '{"' + "\\" * 99_999,
    "quotes": '{"' * 50_000,
}


@pytest.mark.parametrize("parse", PARSERS)
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_text_is_a_typed_error(parse, text):
    with pytest.raises(InvalidReportError) as refused:
        parse(text)
    assert refused.value.message.isprintable()
    assert len(refused.value.message) < 400


KEYS = st.sampled_from(["status", "verdict", "decision", "summary", "review", "Evidence", "blockers", "missing_work"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.sampled_from(["continue", "pass", "resume", "blocked"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(KEYS, VALUES, max_size=6), st.text(max_size=20), st.text(max_size=20))
def test_any_object_in_any_text_is_a_report_or_a_typed_error(fields, before, after):
    text = before + json.dumps(fields) + after
    for parse in PARSERS:
        try:
            parse(text)
        except InvalidReportError as error:
            assert error.message  # noqa: PT017  either way is fine, nothing else may come out
