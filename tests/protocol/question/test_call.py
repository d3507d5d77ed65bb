"""Tool calls: decoded strictly, then asked, denied or left alone."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.protocol.question.samples import ARGS, called
from turngate_protocol.question import (
    ASK_USER,
    ASK_USER_TEXT,
    GENERIC_PROMPT,
    CallAccepted,
    CallDenied,
    InvalidQuestionError,
    RequestKind,
    ToolCall,
    decide_call,
    generic_request,
    request_from_call,
    validate_request,
)

TEXT_ARGS = '{"question":"What now?"}'


def _question(**changes):
    options = [{"label": "A", "description": "a"}, {"label": "B", "description": "b"}]
    return {"header": "h", "question": "q", "options": options} | changes


def _args(*questions):
    return json.dumps({"questions": questions})


MALFORMED = {
    "no JSON": "ask him",
    "a list": "[]",
    "no questions": "{}",
    "null questions": '{"questions":null}',
    "a number": '{"questions":1e999}',
    "an unknown field": '{"questions":[],"extra":1}',
    "an unknown null field": ARGS[:-1] + ',"preview":null}',
    "an unknown field in a question": _args(_question(foo=1)),
    "an unknown field in an option": _args(
        _question(options=[{"label": "A", "description": "a", "x": 1}, {"label": "B", "description": "b"}])
    ),
    "another case": ARGS.replace("questions", "Questions"),
    "a null header": _args(_question(header=None)),
    "null options": _args(_question(options=None)),
    "a word as boolean": _args(_question(multiple="true")),
    "a number as boolean": _args(_question(multiple=1)),
    "a null question": _args(None),
    "options as lists": _args(_question(options=[["A", "a"], ["B", "b"]])),
    "a lone surrogate alone": json.dumps("\ud800"),
    "a lone surrogate for a question": json.dumps({"questions": ["\ud800"]}),
    "a lone surrogate": _args(_question(header="\ud800")),
    "a raw surrogate": json.dumps({"questions": [_question(header="\ud800")]}, ensure_ascii=False),
    "a NUL": _args(_question(question="a\0b")),
    "an encoded string in an encoded string": json.dumps({"questions": json.dumps(json.dumps([_question()]))}),
    "an encoded object": json.dumps({"questions": json.dumps(_question())}),
    "an encoded list with a key twice": '{"questions":"[{\\"header\\":\\"h\\",\\"header\\":\\"h\\"}]"}',
    "an encoded list with a tail": json.dumps({"questions": json.dumps([_question()]) + "x"}),
    "an encoded list a million deep": json.dumps({"questions": "[" * (1 << 20)}),
    "bytes that are not UTF-8": b'{"questions":"\xff"}',
}


@pytest.mark.parametrize("args", MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_call_asks_nothing(args):
    with pytest.raises(InvalidQuestionError):
        request_from_call(ASK_USER, "call-1", args)


@pytest.mark.parametrize("args", [args for args in MALFORMED.values() if isinstance(args, str)])
def test_a_malformed_call_is_denied_with_a_short_reason_and_the_simpler_tool(args):
    decision = decide_call(ToolCall(ASK_USER, "call-1", args))

    assert isinstance(decision, CallDenied)
    assert decision.offer == ASK_USER_TEXT
    assert ASK_USER_TEXT in decision.reason
    assert len(decision.reason.encode()) <= 1024


def test_a_long_reason_is_cut_on_a_character_boundary_and_keeps_the_offer():
    lengths = set()
    for shift in range(3):
        # A tag character is shown as ten: they fill the reason until the cut falls among letters of three bytes.
        args = json.dumps({"x" * shift + "\U000e0001" * 70 + "漢" * 1000: 1, "questions": []})

        decision = decide_call(ToolCall(ASK_USER, "call-1", args))

        assert isinstance(decision, CallDenied)
        assert decision.reason.endswith('Or ask one plain question with ask_user_text and {"question": "…"}.')
        lengths.add(len(decision.reason.encode()))
    assert lengths == {1022, 1023, 1024}


@pytest.mark.parametrize("batch_size", [0, 2, 10**6])
def test_the_reason_of_any_denial_fits(batch_size):
    pending = called("c" * 512)

    for decision in (
        decide_call(ToolCall(ASK_USER, "call-2", ARGS), batch_size, pending),
        decide_call(ToolCall(ASK_USER, "call-2", ARGS), 1, pending),
    ):
        assert isinstance(decision, CallDenied)
        assert len(decision.reason.encode()) <= 1024


SAME = {
    "in plain": ARGS,
    "as bytes": ARGS.encode(),
    "with white space": f" \n{ARGS}\t ",
    "with nulls": _args(_question(multiple=None)),
    "with an empty preview": _args(
        _question(options=[{"label": "A", "description": "a", "preview": ""}, {"label": "B", "description": "b"}])
    ),
    "with keys in another order": json.dumps({"questions": [dict(reversed(_question().items()))]}),
    "as an encoded string": json.dumps({"questions": json.dumps([_question()])}),
    "as an encoded string with white space": json.dumps({"questions": f" {json.dumps([_question()])}\n"}),
}


@pytest.mark.parametrize("args", SAME.values(), ids=SAME)
def test_a_call_asks_the_same_question_however_it_is_written(args):
    assert request_from_call(ASK_USER, "call-1", args) == called("call-1")


def test_a_text_call_asks_one_free_question():
    request = request_from_call(ASK_USER_TEXT, "call-1", TEXT_ARGS)

    assert (request.kind, request.prompt, request.questions) == (RequestKind.FREEFORM, "What now?", ())
    validate_request(request)


@pytest.mark.parametrize(
    "args", ["", "{}", '{"question":""}', '{"question":1}', '{"question":"a","question":"b"}', "[" * 9999]
)
def test_a_malformed_text_call_asks_the_generic_question(args):
    with pytest.raises(InvalidQuestionError):
        request_from_call(ASK_USER_TEXT, "call-1", args)

    decision = decide_call(ToolCall(ASK_USER_TEXT, "call-1", args))

    assert decision == CallAccepted(generic_request("call-1"))
    assert generic_request("call-1").prompt == GENERIC_PROMPT


@pytest.mark.parametrize("tool", [ASK_USER, ASK_USER_TEXT])
def test_a_call_without_an_identity_is_denied_whatever_it_asks(tool):
    decision = decide_call(ToolCall(tool, "c\n1", ARGS if tool == ASK_USER else TEXT_ARGS))

    assert isinstance(decision, CallDenied)


@pytest.mark.parametrize("name", ["", "Ask_User", "ask_user_text2", "read_file", "ask_user\n", "\ud800"])
def test_a_call_of_another_tool_is_left_to_its_owner(name):
    assert decide_call(ToolCall(name, "call-1", ARGS), batch_size=3) is None
    with pytest.raises(InvalidQuestionError):
        request_from_call(name, "call-1", ARGS)


@pytest.mark.parametrize(("tool", "args"), [(ASK_USER, ARGS), (ASK_USER_TEXT, TEXT_ARGS), (ASK_USER_TEXT, "")])
def test_a_question_is_called_alone(tool, args):
    decision = decide_call(ToolCall(tool, "call-1", args), batch_size=2)

    assert isinstance(decision, CallDenied)
    assert "alone" in decision.reason


def test_the_call_that_waits_already_is_accepted_again():
    decision = decide_call(ToolCall(ASK_USER, "call-1", ARGS), pending=called("call-1"))

    assert decision == CallAccepted(called("call-1"))


def test_another_call_is_denied_with_the_identity_of_the_one_that_waits():
    pending = called("call-1")

    decision = decide_call(ToolCall(ASK_USER, "call-2", ARGS), pending=pending)

    assert isinstance(decision, CallDenied)
    assert pending.id in decision.reason
    assert "call-1" in decision.reason


@given(st.text(st.characters()), st.text(st.characters()))
def test_no_call_raises_anything_but_our_own_error(call_id, args):
    for tool in (ASK_USER, ASK_USER_TEXT):
        decision = decide_call(ToolCall(tool, call_id, args))

        assert decision is not None
        if isinstance(decision, CallDenied):
            assert len(decision.reason.encode()) <= 1024
