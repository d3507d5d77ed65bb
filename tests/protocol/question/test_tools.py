"""What a model is told of the tools, and what it gets back."""

import json

import pytest
from msgspec.structs import replace

from tests.protocol.question.samples import NOW, answers, asked, chat, picks, stepped, structured
from turngate_protocol.question import (
    CANCELLATION,
    EXPIRY,
    AnswerAfter,
    ExpireAfter,
    ToolResult,
    cancel,
    direct_run_result,
    expire,
    resolve,
    tool_declarations,
    tool_result,
)

REQUEST = structured()
KEY = (REQUEST.id, REQUEST.schema_digest)


def test_the_tools_are_declared_as_local_tools_of_read_risk():
    structured_tool, text_tool = tool_declarations()

    assert (structured_tool.name, text_tool.name) == ("ask_user", "ask_user_text")
    for tool in (structured_tool, text_tool):
        assert (tool.catalog, tool.local, tool.risk) == ("coding.question", True, "read")
        assert tool.tags
        json.dumps(tool.parameters)


def test_the_schema_bounds_counts_and_forbids_unknown_fields():
    schema = tool_declarations()[0].parameters
    questions = schema["properties"]["questions"]
    question = questions["items"]
    options = question["properties"]["options"]

    assert (questions["minItems"], questions["maxItems"]) == (1, 4)
    assert (options["minItems"], options["maxItems"]) == (2, 4)
    assert question["required"] == ["header", "question", "options"]
    assert options["items"]["required"] == ["label", "description"]
    for part in (schema, question, options["items"], tool_declarations()[1].parameters):
        assert part["additionalProperties"] is False


def test_one_caller_can_not_change_the_declarations_of_another():
    tool_declarations()[0].parameters["properties"].clear()

    assert tool_declarations()[0].parameters["properties"]


def test_running_a_tool_directly_is_an_error():
    assert direct_run_result().is_error


def _resolved(resolution):
    return stepped(resolve(asked(REQUEST).state, resolution, actor="ann", op="", now=NOW)).outcome


def _cancelled():
    return stepped(cancel(asked(REQUEST).state, *KEY, actor="ann", op="", now=NOW)).outcome


def _expired(policy):
    return stepped(expire(asked(REQUEST, policy=policy).state, *KEY, NOW + 1)).outcome


RESULTS = {
    "answers": (
        _resolved(answers(REQUEST, picks("Disk"), picks("A", "C"))),
        ToolResult('{"answers":[{"selections":["Disk"]},{"selections":["A","C"]}]}'),
    ),
    "a chat text": (_resolved(chat(REQUEST, "<no>")), ToolResult('{"chat":"\\u003cno\\u003e"}')),
    "a cancellation": (_cancelled(), ToolResult(CANCELLATION, is_error=True)),
    "an expiry": (_expired(ExpireAfter(1)), ToolResult(EXPIRY, is_error=True)),
    "a default": (_expired(AnswerAfter(1, chat="No.")), ToolResult('{"chat":"No."}')),
}


@pytest.mark.parametrize(("outcome", "result"), RESULTS.values(), ids=RESULTS)
def test_the_model_gets_the_outcome_of_its_question(outcome, result):
    assert tool_result(outcome) == result
    assert tool_result(replace(outcome, request=None)) == result
