"""The quick reading of the usual report: whatever it reads, `decode` reads the same, and so judges the gate."""

import json
from typing import Any
from unittest.mock import patch

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.protocol.report import gate
from tests.protocol.report.samples import block, dispatch, encoded, everything, fixture
from turngate_protocol.report import BLOCKS_MAX, Report, decode
from turngate_protocol.report import turn as turn_gate
from turngate_protocol.report.decode import read_plain
from turngate_protocol.report.turn import Attempt, submit

TEXTS = st.sampled_from(
    ["", "a", "a-1", " a", "a\n", "é", "\u00a0x", "```\nx\n```", "change", "verification", "check", "passed"]
)
UNKNOWN: st.SearchStrategy[dict[str, Any]] = st.dictionaries(
    st.sampled_from(["mood", "x"]), st.sampled_from([1, None, [[]], {"a": "b"}]), max_size=1
)
BLOCKS = st.builds(
    lambda known, unknown: {**known, **unknown},
    st.fixed_dictionaries(
        {"type": TEXTS, "id": TEXTS, "summary": TEXTS},
        optional={
            "status": TEXTS,
            "details": TEXTS | st.none(),
            "related_files": st.lists(TEXTS | st.integers(), max_size=2),
            "options": st.lists(st.fixed_dictionaries({"id": TEXTS, "label": TEXTS, "effect": TEXTS}), max_size=25),
        },
    ),
    UNKNOWN,
)
REPORTS = st.builds(
    lambda head, blocks, unknown: {**head, "blocks": blocks, **unknown},
    st.fixed_dictionaries({"task_status": st.sampled_from(["completed", "x", " failed"]), "headline": TEXTS}),
    st.lists(BLOCKS, max_size=25),
    UNKNOWN,
)


def as_sent(report: Any) -> bytes:
    return json.dumps(report, ensure_ascii=False).encode()


@settings(deadline=None)
@given(st.one_of(REPORTS.map(as_sent), st.binary(max_size=40)))
@example(b'{"task_status":"failed","headline":"\xff","blocks":[]}')
@example(b'{"task_status":"failed","headline":"h","blocks":[],"x":"\xff"}')
@example(b'{"task_status":"failed","headline":"h","blocks":[],"blocks":[{}]}')
def test_what_is_read_quickly_is_what_is_read_carefully_and_is_judged_alike(data: bytes):
    attempt = Attempt("s", "p", "r", 1, 1, data, mutated=True)

    read = read_plain(data)
    quick = submit(None, attempt, gate.RULES, gate.NOW)
    with patch.object(turn_gate, "read_plain", lambda _: None):
        careful = submit(None, attempt, gate.RULES, gate.NOW)

    if read is not None:
        assert msgspec.to_builtins(read) == msgspec.to_builtins(decode(data))
    assert quick == careful


@pytest.mark.parametrize("name", ["report_4k.json", "report_11k.json"])
def test_the_usual_report_is_read_quickly(name: str):
    assert read_plain(fixture(name)) is not None


@pytest.mark.parametrize(
    "data",
    [
        None,
        b"",
        b"null",
        encoded({"task_status": "failed", "headline": "h", "blocks": [], "mood": 1}),
        encoded({"task_status": "failed", "headline": "h", "blocks": [{"type": "change", "mood": 1}]}),
        encoded({"task_status": "failed", "headline": None}),
        b'{"headline":"\xff"}',
        encoded(Report("completed", "Done", [block("change")] * (BLOCKS_MAX + 1))),
        encoded(Report("needs_action", "Choose", [block("decision", options=[dispatch()] * (BLOCKS_MAX + 1))])),
        encoded(Report("completed", "x" * 70_000)),
    ],
    ids=[
        "none",
        "nothing",
        "null",
        "unknown",
        "unknown in a block",
        "a null",
        "no UTF-8",
        "blocks",
        "options",
        "large",
    ],
)
def test_any_other_is_left_to_who_looks_closely(data: bytes | None):
    assert read_plain(data) is None


def test_it_is_written_again_as_any_report_is():
    assert encoded(read_plain(b"{}")) == encoded(decode(b"{}")) == b'{"task_status":"","headline":"","blocks":[]}'
    assert encoded(read_plain(encoded(everything()))) == encoded(everything())
