"""Whatever a model calls or a person answers, it is asked, denied or refused with a reason, and the next is served."""

import json
from typing import Any

import msgspec
import pytest

from tests.running import System
from tests.services.validation.asking import QUESTION, SINGLE, ask, freeform, picks, raw, structured
from tests.vectors import HERE, load
from tests.waiting import wait_until
from turngate.runner import TurnClient
from turngate_contracts import codec
from turngate_contracts.errors import ErrorBody, ErrorCode, InvalidId, InvalidMessage, Refusal
from turngate_contracts.questions import AskQuestion
from turngate_protocol.question import (
    GENERIC_PROMPT,
    AnswerAfter,
    ExpireAfter,
    Lineage,
    OutcomeKind,
    ToolCall,
    request_from_call,
)
from turngate_protocol.question.model import PREVIEW_BYTES, REASON_BYTES

HOSTILE = "\x1b[2J\x07\r\n<script>alert(1)</script> \u202egpj.exe\u2066 \u2028 \U0001f600 '\"\\ %s {0}"


async def assert_next_is_served(client: TurnClient) -> None:
    request = await ask(client, "next")
    assert (await client.questions.reject("next", request)).outcome.kind is OutcomeKind.CANCELLED


class TestCalls:
    async def test_every_call_of_the_vectors_is_asked_or_denied_as_they_say(self, system: System):
        client = await system.client()
        vectors = [v for v in load(HERE / "question.jsonl") if v["op"] == "request_from_call"]
        for vector in vectors:
            given, fails = vector["input"], "error" in vector["expect"]
            call = ToolCall(given["name"], given["id"], given["args"])
            if call.name not in ("ask_user", "ask_user_text"):
                with pytest.raises(InvalidMessage):
                    await client.ask(call, vector["id"])
                continue

            asked = await client.ask(call, vector["id"])

            if not fails:
                assert asked.pending is not None, vector["id"]
                assert {"kind": ""} | codec.to_builtins(asked.pending.request) == vector["expect"]
            elif asked.pending is not None:
                assert (call.name, asked.pending.request.prompt) == ("ask_user_text", GENERIC_PROMPT), vector["id"]
            else:
                assert asked.denied is not None
                assert 0 < len(asked.denied.reason.encode()) <= REASON_BYTES, vector["id"]
                assert asked.denied.offer == ("ask_user_text" if call.name == "ask_user" else ""), vector["id"]
        assert len(vectors) > 80
        await assert_next_is_served(client)

    async def test_previews_of_the_full_size_are_asked_and_shown_whole(self, system: System):
        client = await system.client()
        option = {"description": "d", "preview": "é" * (PREVIEW_BYTES // 2)}
        questions = [
            {"header": str(n), "question": "q", "options": [{"label": str(m), **option} for m in range(4)]}
            for n in range(4)
        ]

        request = await ask(client, call=structured(args=json.dumps({"questions": questions})))

        found = await client.questions.get("s")
        assert found.pending is not None
        assert found.pending.request == request
        assert {len(o.preview.encode()) for q in request.questions for o in q.options} == {PREVIEW_BYTES}

    async def test_a_preview_that_is_a_byte_too_long_is_denied(self, system: System):
        client = await system.client()
        option = {"label": "A", "description": "d", "preview": "x" * (PREVIEW_BYTES + 1)}
        args = json.dumps({"questions": [{**QUESTION, "options": [option, QUESTION["options"][0]]}]})

        asked = await client.ask(structured(args=args), "s")

        assert asked.denied is not None
        assert "preview" in asked.denied.reason
        await assert_next_is_served(client)

    async def test_hostile_text_comes_back_as_it_was_asked_and_never_leaves_its_place(self, system: System):
        client = await system.client()
        option = {"label": HOSTILE, "description": HOSTILE, "preview": HOSTILE}
        question = {"header": HOSTILE[:20], "question": HOSTILE, "options": [option, QUESTION["options"][0]]}

        request = await ask(client, call=structured(args=json.dumps({"questions": [question]})))
        outcome = (await client.questions.resolve("s", request, answers=[picks(HOSTILE)])).outcome

        assert outcome.resolution is not None
        assert outcome.resolution.answers == (picks(HOSTILE),)
        assert (await client.wait(request, "s")).resolution == outcome.resolution

    async def test_hostile_text_in_the_inbox_is_data(self, system: System):
        client = await system.client()
        await ask(client, call=freeform(prompt=HOSTILE))

        entries = await wait_until(lambda: _entries(client), why="it is listed")

        assert [entry.title for entry in entries] == [HOSTILE]

    @pytest.mark.parametrize("call", ["", "x" * 513, "a\nb", "a\x00b", "a\ud800b"], ids=ascii)
    @pytest.mark.parametrize("tool", ["ask_user", "ask_user_text"])
    async def test_a_call_id_that_is_none_is_denied(self, system: System, tool: str, call: str):
        client = await system.client()
        args = SINGLE if tool == "ask_user" else '{"question": "q"}'

        asked = await client.ask(ToolCall(tool, call, args), "s")

        assert asked.denied is not None
        assert asked.denied.reason.isprintable()
        await assert_next_is_served(client)

    async def test_a_lone_surrogate_is_not_let_through(self, system: System):
        client = await system.client()

        asked = await client.ask(structured(args=SINGLE.replace("Disk", "\ud800")), "s")
        generic = await client.ask(ToolCall("ask_user_text", "call-2", '{"question": "\ud800"}'), "s")

        assert asked.denied is not None
        assert generic.pending is not None
        assert generic.pending.request.prompt == GENERIC_PROMPT

    async def test_a_call_in_a_batch_is_denied(self, system: System):
        client = await system.client()

        asked = await client.ask(structured(), "s", batch=2)

        assert asked.denied is not None
        assert "alone" in asked.denied.reason
        with pytest.raises(Refusal) as error:
            await client.questions.get("s")
        assert error.value.code is ErrorCode.NOT_FOUND

    async def test_a_tool_that_asks_nothing_is_refused_by_the_service_too(self, system: System):
        request = AskQuestion("s", "pool-1", "runner-1", ToolCall("shell", "call-1", "{}"))

        error = msgspec.json.decode(await raw(system, "question.ask", request), type=ErrorBody)

        assert error.code is ErrorCode.INVALID_MESSAGE
        assert "ask_user" in error.message

    async def test_a_different_question_is_denied_with_the_identity_of_the_one_that_waits(self, system: System):
        client = await system.client()
        first = await ask(client, call=structured("call-1"))

        asked = await client.ask(structured("call-2"), "s")

        assert asked.denied is not None
        assert first.id in asked.denied.reason
        other = asked.denied.waiting_for
        assert other is not None
        assert (other.request_id, other.schema_digest, other.tool_call_id) == (first.id, first.schema_digest, "call-1")
        assert (other.tool, other.runner) == ("ask_user", "runner-1")


class TestCommands:
    @pytest.mark.parametrize("session", ["a b", "a.b", "*", ">", "a\r\nb", "", "s" * 129, "é", "a\x00b"])
    async def test_an_id_that_could_become_another_subject_never_leaves_the_client(self, system: System, session: str):
        client = await system.client()
        request = request_from_call("ask_user", "call-1", SINGLE)
        for attempt in (
            client.ask(structured(), session),
            client.wait(request, session),
            client.questions.get(session),
            client.questions.resolve(session, request, chat="x"),
            client.questions.reject(session, request),
        ):
            with pytest.raises(InvalidId):
                await attempt

    @pytest.mark.parametrize("name", ["question.ask", "question.resolve", "question.reject", "question.get"])
    @pytest.mark.parametrize("session", ["a.b", "*", "", "a\nb", "s" * 129])
    async def test_the_service_refuses_it_too(self, system: System, name: str, session: str):
        body: dict[str, Any] = {"session": session, "request_id": "q-1", "schema_digest": "0" * 64}
        body |= {"pool": "p", "runner": "runner-1", "call": codec.to_builtins(structured())}

        error = msgspec.json.decode(await raw(system, name, body), type=ErrorBody)

        assert error.code is ErrorCode.INVALID_ID
        assert len(error.message) < 400

    async def test_a_runner_can_not_ask_as_another(self, system: System):
        request = AskQuestion("s", "pool-1", "runner-2", structured())

        error = msgspec.json.decode(await raw(system, "question.ask", request), type=ErrorBody)

        assert error.code is ErrorCode.IDENTITY_MISMATCH

    async def test_a_runner_of_another_pool_can_not_ask(self, system: System):
        await ask(await system.client("runner-1", "pool-1"))

        with pytest.raises(Refusal) as error:
            await (await system.client("runner-2", "pool-2")).ask(structured(), "s")

        assert error.value.code is ErrorCode.POOL_MISMATCH

    async def test_nor_can_it_in_a_session_whose_turns_are_another_pool_s(self, system: System):
        await (await system.client("runner-1", "pool-1")).end_turn("s", 1)

        with pytest.raises(Refusal) as error:
            await (await system.client("runner-2", "pool-2")).ask(structured(), "s")

        assert error.value.code is ErrorCode.POOL_MISMATCH
        assert error.value.details["pool"] == "pool-1"

    @pytest.mark.parametrize(
        "policy",
        [
            ExpireAfter(0),
            ExpireAfter(-1),
            ExpireAfter(10**18),
            AnswerAfter(1000),
            AnswerAfter(1000, (picks("Nowhere"),)),
            AnswerAfter(1000, (picks("Disk"), picks("Disk"))),
            AnswerAfter(1000, chat=" \n "),
        ],
        ids=str,
    )
    async def test_a_policy_that_does_not_fit_is_refused(self, system: System, policy: ExpireAfter | AnswerAfter):
        client = await system.client()

        with pytest.raises(Refusal) as error:
            await client.ask(structured(), "s", policy=policy)

        assert error.value.code is ErrorCode.INVALID
        assert "policy" in error.value.message

    @pytest.mark.parametrize("lineage", [Lineage("a.b"), Lineage("parent", "*"), Lineage("")], ids=str)
    async def test_a_lineage_of_no_ids_is_refused(self, system: System, lineage: Lineage):
        client = await system.client()

        with pytest.raises(Refusal) as error:
            await client.ask(structured(), "s", lineage=lineage)

        assert error.value.code is ErrorCode.INVALID_ID

    @pytest.mark.parametrize("change", [{"turn": -1}, {"turn": 2**31}, {"batch": 0}, {"turn": 1.5}, {"batch": "1"}])
    @pytest.mark.parametrize("policy", [{}, {"policy": {"kind": "expire", "after_ms": 5}}])
    async def test_a_number_that_is_none_is_refused(self, system: System, change: Any, policy: Any):
        body = codec.to_builtins(AskQuestion("s", "pool-1", "runner-1", structured())) | change | policy

        error = msgspec.json.decode(await raw(system, "question.ask", body), type=ErrorBody)

        assert error.code is ErrorCode.INVALID_MESSAGE

    @pytest.mark.parametrize("name", ["question.ask", "question.resolve", "question.reject", "question.get"])
    @pytest.mark.parametrize(
        "body",
        [b"hello", b"\xff", b"7", b"[" * 10_000, b"{}", b'{"session": 1}', b'{"session": "\\ud800"}'],
        ids=lambda body: repr(body[:20]),
    )
    async def test_a_request_that_is_none_gets_a_typed_error(self, system: System, name: str, body: bytes):
        error = msgspec.json.decode(await raw(system, name, body), type=ErrorBody)

        assert error.code in (ErrorCode.INVALID_MESSAGE, ErrorCode.INVALID_ID)
        assert "Traceback" not in error.message


async def _entries(client: TurnClient) -> Any:
    return (await client.inbox()).entries
