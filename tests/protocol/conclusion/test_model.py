"""The bounds of a task record, and what may travel."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngate_protocol.conclusion import (
    BYTE_LIMITS,
    MAX_OUTPUT_BYTES,
    MAX_TAIL_BYTES,
    Conclusion,
    Excess,
    GateResult,
    StartRecord,
    Task,
    is_terminal,
    keep_end,
    over_limits,
    parse,
)
from turngate_protocol.text import byte_length

from .blocks import TYPICAL, block


@pytest.mark.parametrize(
    ("status", "terminal"),
    [("completed", True), ("failed", True), ("cancelled", True), ("running", False), ("paused", False), ("", False)],
)
def test_a_conclusion_is_captured_in_terminal_states_only(status: str, terminal: bool):
    assert is_terminal(Task("t", status)) == terminal


def test_a_task_at_its_limits_passes():
    assert over_limits(Task("t", output="é" * (MAX_OUTPUT_BYTES // 2), output_tail="x" * MAX_TAIL_BYTES)) == ()


def test_every_text_over_its_limit_is_named_in_bytes():
    task = Task("t", output="é" * (MAX_OUTPUT_BYTES // 2) + "x", engine="e" * 300)

    assert over_limits(task) == (Excess("output", MAX_OUTPUT_BYTES + 1, MAX_OUTPUT_BYTES), Excess("engine", 300, 256))


def test_every_limit_belongs_to_a_text_of_the_task():
    texts = {field.name for field in msgspec.structs.fields(Task) if field.type is str}

    # The status is one of a few words; the edge refuses others.
    assert texts - set(BYTE_LIMITS) == {"status"}
    assert set(BYTE_LIMITS) <= texts


@given(text=st.text(), limit=st.integers(1, 40))
def test_the_end_of_an_output_is_kept_without_cutting_a_character(text: str, limit: int):
    kept = keep_end(text, limit)

    assert text.endswith(kept)
    assert byte_length(kept) <= limit
    longer = text[len(text) - len(kept) - 1 :] if len(kept) < len(text) else ""
    assert not longer or byte_length(longer) > limit


def test_the_block_of_a_huge_output_survives_its_bound():
    kept = keep_end("日志\n" * 4_000_000 + block(TYPICAL))

    found = parse(kept)
    assert found is not None
    assert found.status == "success"


@pytest.mark.parametrize("value", [Conclusion(), GateResult(), StartRecord(0)], ids=lambda value: type(value).__name__)
def test_what_has_its_default_is_not_written(value: msgspec.Struct):
    assert msgspec.json.encode(value) in {b"{}", b'{"started_at_ms":0}'}
