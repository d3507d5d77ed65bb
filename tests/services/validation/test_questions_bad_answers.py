"""An answer that does not fit is refused with its place and its reason, and the question still waits."""

from typing import Any

import msgspec
import pytest

from tests.running import System
from tests.services.validation.asking import MULTIPLE, SINGLE, ask, freeform, picks, raw, structured
from turngate_contracts.errors import ErrorBody, ErrorCode, InvalidId, InvalidMessage, Refusal
from turngate_contracts.questions import AskQuestion, QuestionAsked, RejectQuestion, ResolveQuestion
from turngate_protocol.question import Answer, AnswerAfter, ExpireAfter, OutcomeKind, request_from_call

GOOD = (picks("Disk"), picks("Disk", "Both"))
MISFITS: dict[str, tuple[dict[str, Any], ErrorCode, str]] = {
    "nothing": ({}, ErrorCode.INVALID, "answers"),
    "both": ({"answers": GOOD, "chat": "x"}, ErrorCode.INVALID, "chat"),
    "one of two": ({"answers": GOOD[:1]}, ErrorCode.INVALID, "answers"),
    "three of two": ({"answers": (*GOOD, picks("Disk"))}, ErrorCode.INVALID, "answers"),
    "five": ({"answers": (picks("Disk"),) * 5}, ErrorCode.INVALID, "answers"),
    "two for a single choice": ({"answers": (picks("Disk", "Both"), GOOD[1])}, ErrorCode.INVALID, "answers[0]"),
    "none for a multiple choice": ({"answers": (GOOD[0], Answer())}, ErrorCode.INVALID, "answers[1]"),
    "an unknown one": ({"answers": (picks("Nowhere"), GOOD[1])}, ErrorCode.INVALID, "answers[0]"),
    "another case": ({"answers": (picks("disk"), GOOD[1])}, ErrorCode.INVALID, "answers[0]"),
    "with white space": ({"answers": (picks("Disk "), GOOD[1])}, ErrorCode.INVALID, "answers[0]"),
    "reordered": ({"answers": (GOOD[0], picks("Both", "Disk"))}, ErrorCode.INVALID, "answers[1]"),
    "twice": ({"answers": (GOOD[0], picks("Disk", "Disk"))}, ErrorCode.INVALID, "answers[1]"),
    "selected and custom": ({"answers": (GOOD[0], Answer(("Disk",), "x"))}, ErrorCode.INVALID, "answers[1]"),
    "custom too long": ({"answers": (GOOD[0], Answer(custom="x" * 4097))}, ErrorCode.INVALID, "answers[1]"),
    "custom with NUL": ({"answers": (GOOD[0], Answer(custom="a\x00"))}, ErrorCode.INVALID, "answers[1]"),
    "a blank custom": ({"answers": (GOOD[0], Answer(custom=" \u2003\n"))}, ErrorCode.BLANK_ANSWER, "answers[1]"),
    "a blank chat": ({"chat": "\t \u3000"}, ErrorCode.BLANK_ANSWER, "chat"),
    "chat too long": ({"chat": "x" * (16 * 1024 + 1)}, ErrorCode.INVALID, "chat"),
}


class TestAnswers:
    @pytest.mark.parametrize(("given", "code", "path"), MISFITS.values(), ids=MISFITS)
    async def test_an_answer_that_does_not_fit_is_refused_with_its_place(
        self, system: System, given: dict[str, Any], code: ErrorCode, path: str
    ):
        client = await system.client()
        request = await ask(client, call=structured(args=MULTIPLE))

        with pytest.raises(Refusal) as error:
            await client.questions.resolve("s", request, **given)

        assert error.value.code is code
        assert error.value.message.startswith(path)
        found = await client.questions.get("s")
        assert found.pending is not None
        assert found.outcome is None

    async def test_answers_to_a_free_form_question_are_refused(self, system: System):
        client = await system.client()
        request = await ask(client, call=freeform())

        with pytest.raises(Refusal) as error:
            await client.questions.resolve("s", request, answers=[picks("Disk")])

        assert error.value.code is ErrorCode.INVALID

    async def test_an_answer_to_another_request_changes_nothing(self, system: System):
        client = await system.client()
        request = await ask(client)
        other = request_from_call("ask_user", "call-2", SINGLE)

        for attempt in (
            client.questions.resolve("s", other, answers=[picks("Disk")]),
            client.questions.reject("s", other),
        ):
            with pytest.raises(Refusal) as error:
                await attempt
            assert error.value.code is ErrorCode.MISMATCH
        assert (await client.questions.get("s", request.id)).pending is not None

    @pytest.mark.parametrize("digest", ["0" * 64, "upper", "short", "", "z" * 64])
    async def test_a_stale_digest_changes_nothing(self, system: System, digest: str):
        client = await system.client()
        request = await ask(client)
        digest = request.schema_digest.upper() if digest == "upper" else digest
        resolve = ResolveQuestion("s", request.id, digest, (picks("Disk"),))
        reject = RejectQuestion("s", request.id, digest)

        for name, body in (("question.resolve", resolve), ("question.reject", reject)):
            error = msgspec.json.decode(await raw(system, name, body, "ann"), type=ErrorBody)
            assert error.code in (ErrorCode.MISMATCH, ErrorCode.INVALID)
        assert (await client.questions.get("s", request.id)).pending is not None

    async def test_an_answer_in_a_session_that_asked_nothing_is_refused(self, system: System):
        client = await system.client()
        with pytest.raises(Refusal) as error:
            await client.questions.resolve("s", request_from_call("ask_user", "call-1", SINGLE), chat="x")
        assert error.value.code is ErrorCode.NO_PENDING

    async def test_an_answer_after_expiry_learns_that_it_is_too_late(self, system: System):
        client = await system.client()
        request = await ask(client, policy=ExpireAfter(1))
        assert (await client.wait(request, "s")).kind is OutcomeKind.EXPIRED

        with pytest.raises(Refusal) as error:
            await client.questions.resolve("s", request, answers=[picks("Disk")])

        assert error.value.code is ErrorCode.ALREADY_RESOLVED
        assert error.value.details["kind"] == "expired"
        assert error.value.details["decided_by"] == "policy"

    async def test_a_lone_surrogate_never_leaves_the_client(self, system: System):
        client = await system.client()
        request = await ask(client)
        for attempt in (
            client.questions.resolve("s", request, chat="\ud800"),
            client.questions.resolve("s", request, answers=[Answer(custom="\ud800")]),
            client.questions.get("s", "\ud800"),
            client.ask(structured("call-2"), "t", policy=AnswerAfter(1, chat="\ud800")),
        ):
            with pytest.raises(InvalidMessage):
                await attempt

    @pytest.mark.parametrize("op", ["a b", "a.b", "\ud800", "x" * 129])
    async def test_an_operation_id_that_is_none_never_leaves_the_client(self, system: System, op: str):
        client = await system.client()
        request = await ask(client)
        for attempt in (
            client.questions.resolve("s", request, chat="x", op=op),
            client.questions.reject("s", request, op=op),
        ):
            with pytest.raises(InvalidId):
                await attempt

    @pytest.mark.parametrize("name", ["question.resolve", "question.reject"])
    async def test_the_service_refuses_it_too(self, system: System, name: str):
        body = {"session": "s", "request_id": "q-1", "schema_digest": "0" * 64, "op": "a b"}
        error = msgspec.json.decode(await raw(system, name, body, "ann"), type=ErrorBody)
        assert error.code is ErrorCode.INVALID_ID


async def test_a_denial_does_not_replace_the_question_that_waits(system: System):
    client = await system.client()
    request = await ask(client)

    body = await raw(system, "question.ask", AskQuestion("s", "pool-1", "runner-1", structured("call-2")))

    assert msgspec.json.decode(body, type=QuestionAsked).denied is not None
    assert (await client.questions.resolve("s", request, answers=[picks("Disk")])).outcome.by == "runner-1"
