"""Every error code is listed once with its number, and no error message grows with what it complains about."""

import pytest

from turngate_contracts import codec
from turngate_contracts.catalogue import GENERAL_ERRORS, REQUESTS
from turngate_contracts.errors import (
    STATUS,
    ErrorBody,
    ErrorCode,
    IdentityMismatch,
    InvalidId,
    InvalidMessage,
    PayloadTooLarge,
    Refusal,
    TurngateError,
    Unavailable,
    refusal_of,
    shown,
)
from turngate_contracts.messages import ReportSubmitted
from turngate_protocol.report.lookup import RefusalCode

HUGE = "x" * 1_000_000
LONGEST = 400
"""Characters that a message may have, whatever it names."""

RAISED = [
    InvalidId("session", HUGE),
    InvalidId("session", "\r\n\x1b[31m"),
    PayloadTooLarge("a ReportSubmitted", 10**9, 10**6),
    IdentityMismatch("runner", HUGE, "runner-1"),
]


def test_each_code_has_a_status():
    assert set(STATUS) == set(ErrorCode)
    assert all(400 <= status <= 599 for status in STATUS.values())


def test_codes_are_unique_and_their_own_names():
    assert len({code.value for code in ErrorCode}) == len(ErrorCode.__members__)
    assert [code for code in ErrorCode if code.value != code.name.lower()] == []


def test_every_refusal_of_the_gate_is_a_code():
    assert {code.value for code in RefusalCode} <= {code.value for code in ErrorCode}


def test_each_kind_of_error_has_a_code_of_its_own():
    kinds = (TurngateError, InvalidId, InvalidMessage, PayloadTooLarge, IdentityMismatch, Unavailable)

    assert len({kind.code for kind in kinds}) == len(kinds)


def test_a_refusal_has_the_code_that_the_service_answered_with():
    assert Refusal(ErrorCode.NO_CARD, "turn 7 asks nothing").body().code is ErrorCode.NO_CARD


@pytest.mark.parametrize("error", RAISED, ids=lambda error: type(error).__name__)
def test_a_message_is_bounded_and_printable(error: TurngateError):
    body = codec.encode(error.body())

    assert len(error.message) < LONGEST
    assert error.message.isprintable()
    assert len(body) < 2 * LONGEST


@pytest.mark.parametrize("field", ["session", "runner", "turn", "attempt", "mutated", "unparsed", HUGE])
@pytest.mark.parametrize("value", [f'"{HUGE}"', f"[{'1,' * 10_000}1]", "1" * 10_000, '{"a":' * 5_000], ids=len)
def test_what_can_not_be_decoded_is_told_in_one_short_sentence(field: str, value: str):
    data = f'{{"{field}":{value}}}'.encode()

    with pytest.raises(InvalidMessage) as refused:
        codec.decode(data, ReportSubmitted, "a ReportSubmitted")

    assert len(refused.value.message) < LONGEST


def test_a_long_unknown_value_is_told_in_one_short_sentence_with_its_place():
    data = codec.encode({"code": f"{HUGE}\x1b[2J", "message": "m"})

    with pytest.raises(InvalidMessage) as refused:
        codec.decode(data, ErrorBody, "an ErrorBody")

    assert len(refused.value.message) < LONGEST
    assert refused.value.message.isprintable()
    assert refused.value.message.endswith("at `$.code`")


@pytest.mark.parametrize("name", ["message", "code", "self", "retry_after_ms", "details"])
@pytest.mark.parametrize("code", [ErrorCode.OVERLOADED, ErrorCode.NOT_FOUND])
def test_an_error_is_raised_whatever_its_details_are_called(code: ErrorCode, name: str):
    answered = ErrorBody(code, "no", {name: 5})

    assert refusal_of(answered).body() == answered


def test_a_body_says_what_the_error_says():
    error = Unavailable("nobody answers", seconds=5)

    assert error.body() == ErrorBody(ErrorCode.UNAVAILABLE, "nobody answers", {"seconds": 5})


@pytest.mark.parametrize("value", [HUGE, b"\xff" * 10_000, "\x1b[2J", "a\r\nb", "ä", "\ud800", None, 10**4000, [HUGE]])
def test_a_shown_value_is_short_and_escaped(value: object):
    text = shown(value)

    assert len(text) <= 80
    assert text.isprintable()


def test_the_errors_of_a_request_are_its_own():
    for row in REQUESTS:
        assert not set(row.errors) & set(GENERAL_ERRORS), row.name
        assert len(set(row.errors)) == len(row.errors), row.name
