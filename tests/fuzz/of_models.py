"""Targets: what models write. Reports, calls that ask, conclusions, the answers of roles."""

import json
from typing import Any

import msgspec
from mcp_types import CallToolRequestParams
from pydantic import ValidationError

from tests.fuzz.target import check_sentence, same_again
from turngate.bridges.mcp.elicitation import Unanswered, answer_of
from turngate.bridges.mcp.tools import _encoded
from turngate_contracts import codec
from turngate_contracts.errors import TurngateError
from turngate_contracts.messages import ReportSubmitted, report_bytes, wrap_report
from turngate_contracts.tasks import TaskFinished, check_finished
from turngate_protocol.conclusion import parse
from turngate_protocol.conclusion.parse import CLOSING_TAG, OPENING_TAG
from turngate_protocol.conclusion.record import Findings, Finished, judge, receive, told, wants
from turngate_protocol.conclusion.tools import ConclusionProblems, block_of, conclusion_of
from turngate_protocol.esm.errors import EsmError, InvalidReportError
from turngate_protocol.esm.role_reports import parse_audit, parse_recovery, parse_worker
from turngate_protocol.esm.tools import update_arguments
from turngate_protocol.question.call import (
    TOOLS,
    CallAccepted,
    CallDenied,
    ToolCall,
    decide_call,
    request_from_call,
    request_or_generic,
)
from turngate_protocol.question.errors import InvalidQuestionError
from turngate_protocol.question.model import ASK_USER, ASK_USER_TEXT, REASON_BYTES
from turngate_protocol.report import (
    PROBLEMS_SHOWN,
    Rules,
    choices,
    decode,
    format_problems,
    normalise,
    order,
    plain_text,
    render,
    validate,
)

_ROLE_PARSERS = (parse_worker, parse_audit, parse_recovery)
_ASKED = [
    request_or_generic(ASK_USER_TEXT, "c1", '{"question":"Which?"}'),
    request_from_call(
        ASK_USER,
        "c2",
        json.dumps(
            {
                "questions": [
                    {
                        "header": f"h{multiple}",
                        "question": "Which one is it?",
                        "options": [{"label": "A", "description": "a"}, {"label": "B", "description": "b"}],
                        "multiple": multiple,
                    }
                    for multiple in (False, True)
                ]
            }
        ),
    ),
]


def report(data: bytes) -> None:
    """A report, or problems; normalising twice is normalising once, and what was written is read again as the same."""
    _check_envelope(data)
    found = decode(data)
    if isinstance(found, list):
        assert found
        _check_problems(format_problems(found))
        return
    normal = normalise(found)
    assert normalise(normal) is normal or normalise(normal) == normal
    assert decode(codec.encode(normal)) == normal
    problems = validate(normal, Rules())
    _check_problems(format_problems(problems))
    assert sorted(order(normal)) == list(range(len(normal.blocks)))
    if not problems:
        codec.encode(choices(normal))
        codec.encode(render(normal))
        plain_text(normal).encode()


def ask_call(data: bytes) -> None:
    """A question, or a denial that fits; the rules name what is wrong."""
    for name in TOOLS:
        try:
            same_again(request_from_call(name, "c1", data))
        except InvalidQuestionError as error:
            check_sentence(error.message)
        decided = decide_call(ToolCall(name, "c1", data.decode("utf-8", "surrogateescape")))
        if isinstance(decided, CallDenied):
            assert len(decided.reason.encode()) <= REASON_BYTES
        else:
            assert isinstance(decided, CallAccepted)
            same_again(decided.request)
            assert request_or_generic(name, "c1", data.decode("utf-8", "surrogateescape")) == decided.request


def conclusion(data: bytes) -> None:
    """A block is found wherever it stands, and can be written as JSON."""
    text = data.decode("utf-8", "surrogateescape")
    for output in (text, f"{OPENING_TAG}\n{text}\n{CLOSING_TAG}"):
        found = parse(output)
        if found is None:
            assert output is text
            continue
        codec.encode(found)
        for warning in found.warnings:
            check_sentence(warning)


def task_finished(data: bytes) -> None:
    """What a runner says of a task becomes a record that is read again as the same, and is judged once."""
    try:
        message = codec.decode(data, TaskFinished, "a TaskFinished")
        check_finished(message)
    except TurngateError as error:
        check_sentence(error.message)
        return
    ending = Finished(message.session, message.pool, message.runner, message.record, message.start)
    state = receive(None, ending, 2**41).state
    assert state is not None
    same_again(state)
    assert receive(state, ending, 2**41).state is None
    judged = judge(state, Findings({}), 2**41)
    assert judged is not None
    same_again(judged)
    assert judge(judged, Findings({}), 2**41) is None
    if wants(judged).prompt is not None:
        codec.encode(wants(judged).prompt)
        settled = told(judged, None, 2**41)
        assert settled is not None
        same_again(settled)


def role_report(data: bytes) -> None:
    """A role's final answer is one report or one error; a report that is written as JSON is read as itself."""
    text = data.decode("utf-8", "surrogateescape")
    for read in _ROLE_PARSERS:
        try:
            found = read(text)
        except InvalidReportError as error:
            check_sentence(error.message)
            continue
        assert read(codec.encode(found).decode()) == found


def tool_arguments(data: bytes) -> None:
    """The arguments of our MCP tools, as a client sends them: each tool takes them or names what is wrong."""
    try:
        params = CallToolRequestParams.model_validate_json(b'{"name":"t","arguments":%b}' % data)
    except ValidationError:
        return
    arguments = params.arguments or {}
    report(_encoded(arguments))
    ask_call(json.dumps(arguments).encode())
    _conclude(arguments)
    try:
        _status, reason = update_arguments(arguments)
        reason.encode("utf-8", "surrogatepass")
    except EsmError as error:
        check_sentence(error.message)


def form_answer(data: bytes) -> None:
    """What a person filled into an MCP client's form answers the question, or says what is missing."""
    try:
        content = msgspec.json.decode(data, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return
    for request in _ASKED:
        try:
            answers, chat = answer_of(request, content)
        except Unanswered as error:
            check_sentence(str(error))
            continue
        assert bool(chat) != bool(answers)
        codec.encode([answers, chat])


def _check_envelope(data: bytes) -> None:
    """Whatever a model wrote comes out of the message as it went in, but for white space around JSON."""
    raw, unparsed = wrap_report(data)
    sent = codec.encode(ReportSubmitted("s1", 1, 1, "r1", "p1", report=raw, unparsed=unparsed))
    came = report_bytes(codec.decode(sent, ReportSubmitted, "a ReportSubmitted"))
    assert ((came or b"").strip() or b"null") == (data.strip() or b"null"), came


def _conclude(arguments: dict[str, Any]) -> None:
    try:
        found = conclusion_of(arguments)
    except ConclusionProblems as error:
        # A sentence for each field, and one for each that is unknown.
        check_sentence(str(error), 1_500 + 120 * len(arguments))
        return
    assert parse(block_of(found)) == found


def _check_problems(text: str) -> None:
    assert len(text) <= 1_000 * (PROBLEMS_SHOWN + 2)
    text.encode()
    assert all(line.isprintable() for line in text.split("\n"))
