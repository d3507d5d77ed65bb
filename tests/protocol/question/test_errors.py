"""Kinds, messages and details of errors, and that hostile text in them is harmless."""

import json

import msgspec
import pytest

from turngate_protocol.question import (
    InvalidIdError,
    InvalidQuestionError,
    QuestionError,
    QuestionMismatchError,
    RefusalKind,
    RefusedError,
    refusal_of,
)
from turngate_protocol.question.errors import shown

ERRORS: list[tuple[QuestionError, RefusalKind]] = [
    (InvalidQuestionError("questions[0].header", "is empty", "give it a text"), RefusalKind.INVALID),
    (InvalidIdError("session", "a.b"), RefusalKind.INVALID_ID),
    (QuestionMismatchError("request_id", "q-2", "q-1"), RefusalKind.MISMATCH),
    (RefusedError(RefusalKind.NO_PENDING, "Nothing waits.", {}), RefusalKind.NO_PENDING),
]


@pytest.mark.parametrize(("error", "kind"), ERRORS)
def test_an_error_becomes_a_refusal_with_the_same_facts(error, kind):
    refusal = refusal_of(error)

    assert (refusal.kind, refusal.message, refusal.details) == (kind, str(error), error.details)
    assert json.loads(msgspec.json.encode(refusal))["kind"] == kind.value


def test_the_kinds_are_a_closed_set():
    assert {kind.value for kind in RefusalKind} == {
        "invalid",
        "no_pending",
        "mismatch",
        "invalid_id",
        "blank_answer",
        "pool_mismatch",
        "another_pending",
        "already_resolved",
        "not_due",
    }


def test_a_message_names_the_place_the_problem_and_the_way_out():
    error = InvalidQuestionError("questions[0].header", "is 65 bytes long", "shorten it to at most 64 bytes of UTF-8")

    assert error.message == "questions[0].header is 65 bytes long: shorten it to at most 64 bytes of UTF-8."


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", '"plain"'),
        ("\x1b[2J", '"\\x1b[2J"'),
        ("a\ud800", '"a\\ud800"'),
        ("abc\u202edef", '"abc\\u202edef"'),
        ("x" * 1_000_000, f'"{"x" * 60}…"'),
    ],
)
def test_a_shown_text_is_short_and_has_no_control_characters(text, expected):
    assert shown(text) == expected


def test_a_hostile_identity_in_an_error_can_be_sent():
    refusal = refusal_of(QuestionMismatchError("request_id", "\ud800\x1b" * 1000, "q-1"))

    assert len(msgspec.json.encode(refusal)) < 2000
