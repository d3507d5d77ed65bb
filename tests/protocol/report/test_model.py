"""The records: what they mean when fields are absent, and what of them reaches the wire."""

import json

import msgspec
import pytest

from tests.protocol.report.samples import TYPES, block, encoded, everything, option
from turngate_protocol.report import Block, BlockType, Level, Option, Report, Status, VerifyStatus
from turngate_protocol.report.model import INTERACTIVE, SHAPES


@pytest.mark.parametrize(
    ("record", "wire"),
    [
        (Option(), {"id": "", "label": "", "effect": ""}),
        (Block(), {"type": "", "id": "", "summary": ""}),
        (Report(), {"task_status": "", "headline": "", "blocks": []}),
    ],
)
def test_the_wire_form_of_an_empty_record_has_its_required_fields_and_no_other(record: msgspec.Struct, wire: object):
    assert json.loads(encoded(record)) == wire


@pytest.mark.parametrize("record", [Option, Block, Report])
def test_absent_fields_decode_as_empty(record: type[msgspec.Struct]):
    assert msgspec.json.decode(b"{}", type=record) == record()


def test_an_empty_text_that_was_sent_is_dropped_from_the_wire_form():
    sent = b'{"type":"change","id":"a","summary":"s","impact":"","related_files":[],"options":[]}'

    assert encoded(msgspec.json.decode(sent, type=Block)) == b'{"type":"change","id":"a","summary":"s"}'


def test_false_and_empty_file_names_stay_in_the_wire_form():
    wire = json.loads(encoded(Block(blocks_current_task=False, related_files=["a.py", ""])))

    assert wire["blocks_current_task"] is False
    assert wire["related_files"] == ["a.py", ""]


def test_what_is_encoded_decodes_to_the_same_report():
    assert msgspec.json.decode(encoded(everything()), type=Report) == everything()


def test_a_frozen_report_can_not_be_changed():
    with pytest.raises(AttributeError):
        everything().headline = "Other"  # type: ignore[misc]


def test_the_blocks_that_ask_are_decision_question_blocked_and_next_step():
    assert sorted(INTERACTIVE) == ["blocked", "decision", "next_step", "question"]
    assert [kind for kind in TYPES if block(kind).interactive] == ["decision", "question", "blocked", "next_step"]


@pytest.mark.parametrize(
    ("kind", "status", "expected"),
    [
        ("verification", "not_run", True),
        ("verification", "partial", False),
        ("verification", "", False),
        ("change", "not_run", False),
    ],
)
def test_only_a_verification_that_was_not_run_ran_nothing(kind: str, status: str, expected: bool):
    assert block(kind, status=status).ran_nothing is expected


def test_every_block_type_has_a_shape_whose_fields_exist():
    fields = set(Block.__struct_fields__)

    assert list(SHAPES) == [kind.value for kind in BlockType]
    assert all(required.name in fields for shape in SHAPES.values() for required in shape.required)


def test_the_vocabularies_are_those_of_the_rule_book():
    assert list(Status) == ["completed", "completed_with_notes", "needs_action", "blocked", "failed"]
    assert list(VerifyStatus) == ["passed", "failed", "partial", "not_run"]
    assert list(Level) == ["low", "medium", "high", "critical"]


def test_an_option_is_equal_to_another_one_with_the_same_fields():
    assert option() == option()
    assert option() != option(label="Other")
