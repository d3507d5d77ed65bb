"""Whatever a runner publishes, it gets a typed refusal or a recorded rejection, and the next message is served."""

import asyncio
import json
from typing import Any

import pytest

from tests.fundamentals.reports import CARD, DONE
from tests.running import System
from tests.waiting import wait_until
from turngate.jetstream.direct import Stored, read_page
from turngate.runner import TurnClient
from turngate_contracts import codec
from turngate_contracts.dead import DeadLetter
from turngate_contracts.errors import ErrorCode, InvalidId, InvalidMessage, PayloadTooLarge, Refusal
from turngate_contracts.messages import Refusal as RefusalMail
from turngate_protocol.report.model import REPORT_MAX
from turngate_protocol.report.session import Outcome

ENVELOPE: dict[str, Any] = {
    "session": "s",
    "turn": 1,
    "attempt": 1,
    "runner": "runner-1",
    "pool": "pool-1",
    "mutated": True,
    "report": DONE,
}


class Mail:
    """What arrives in a runner's mailbox as refusals."""

    def __init__(self) -> None:
        self.refusals: list[RefusalMail] = []

    def on_mail(self, _subject: bytes, _reply: bytes, body: bytes, _head: bytes) -> None:
        self.refusals.append(codec.decode(body, RefusalMail, "a Refusal"))


async def dead_letters(system: System) -> list[Stored]:
    stream = system.subjects.stream("dead")
    return (await read_page(system.requester, stream, 0, 256, f"{system.settings.namespace}.dead.>"))[0]


async def publish(system: System, body: bytes, *, session: str = "s", kind: str = "report") -> None:
    await system.requester.publish(f"{system.settings.namespace}.turn.{kind}.pool-1.runner-1.{session}", body)


async def assert_next_is_served(client: TurnClient) -> None:
    verdict = await client.submit_report("next", 1, DONE, mutated=True)
    assert verdict.outcome is Outcome.ACCEPTED


def envelope(**changes: Any) -> bytes:
    return json.dumps({**ENVELOPE, **changes}).encode()


UNDECODABLE = {
    "no-json": b"hello",
    "empty": b"",
    "not-utf8": b'{"session": "\xff"}',
    "a-scalar": b"7",
    "a-list": b"[]",
    "nested-deeply": b"[" * 10_000,
    "nested-deeply-in-a-field": b'{"session":' + b"[" * 10_000,
    "turn-0": envelope(turn=0),
    "turn-negative": envelope(turn=-1),
    "turn-text": envelope(turn="1"),
    "turn-huge": envelope(turn=10**400),
    "turn-float": envelope(turn=1.5),
    "attempt-0": envelope(attempt=0),
    "attempt-null": envelope(attempt=None),
    "nan": envelope().replace(b'"attempt": 1', b'"attempt": NaN'),
    "no-pool": b'{"session":"s","turn":1,"attempt":1,"runner":"runner-1"}',
    "pool-with-a-dot": envelope(pool="a.b"),
    "pool-with-a-wildcard": envelope(pool="*"),
    "pool-with-a-line-break": envelope(pool="a\nb"),
    "pool-too-long": envelope(pool="p" * 129),
    "another-runner": envelope(runner="runner-2"),
    "another-session": envelope(session="t"),
}


@pytest.mark.parametrize("body", [pytest.param(b, id=n) for n, b in UNDECODABLE.items()])
async def test_a_message_that_is_none_is_told_buried_and_passed(system: System, body: bytes):
    client, mail = await system.client(), Mail()
    await system.connection.listen(system.subjects.mailbox("runner-1", "refused"), mail.on_mail)

    await publish(system, body)

    await wait_until(lambda: mail.refusals, why="the runner is told")
    assert mail.refusals[0].error.code in (
        ErrorCode.INVALID_MESSAGE,
        ErrorCode.INVALID_ID,
        ErrorCode.IDENTITY_MISMATCH,
    )
    assert mail.refusals[0].sequence == 1
    assert len(mail.refusals[0].error.message) < 1000
    letters = await wait_until(lambda: dead_letters(system), why="it is in the dead letters")
    letter = codec.decode(letters[0].body, DeadLetter, "a DeadLetter")
    assert letter.body == body
    assert letter.reason == mail.refusals[0].error
    await assert_next_is_served(client)


async def test_an_ending_that_is_none_is_told_and_buried_too(system: System):
    mail = Mail()
    await system.connection.listen(system.subjects.mailbox("runner-1", "refused"), mail.on_mail)
    await publish(system, b'{"ending": "x"}', kind="ended")
    await wait_until(lambda: mail.refusals, why="the runner is told")
    await wait_until(lambda: dead_letters(system), why="it is in the dead letters")


@pytest.mark.parametrize("session", ["a b", "a.b", "*", ">", "a\r\nb", "", "s" * 129, "\u00e9", "a\x00b"])
async def test_an_id_that_could_become_another_subject_never_leaves_the_client(system: System, session: str):
    client = await system.client()
    with pytest.raises(InvalidId) as error:
        await client.submit_report(session, 1, DONE)
    assert error.value.code is ErrorCode.INVALID_ID
    assert "session" in str(error.value)


@pytest.mark.parametrize("session", ["a$b", "é", "s" * 129])
async def test_a_session_that_is_no_id_but_fits_a_subject_is_refused_by_the_service(system: System, session: str):
    client, mail = await system.client(), Mail()
    await system.connection.listen(system.subjects.mailbox("runner-1", "refused"), mail.on_mail)
    await publish(system, envelope(session=session), session=session)
    await wait_until(lambda: mail.refusals, why="the runner is told")
    assert mail.refusals[0].error.code is ErrorCode.INVALID_ID
    await assert_next_is_served(client)


def padded(size: int) -> bytes:
    """A good report of exactly this many bytes."""
    empty = json.dumps({**DONE, "ignored": ""}).encode()
    return json.dumps({**DONE, "ignored": "x" * (size - len(empty))}).encode()


REPORTS = {
    "no-json": b"hello",
    "not-utf8": b'{"headline": "\xff"}',
    "a-scalar": b"7",
    "a-text": b'"done"',
    "wrong-types": b'{"task_status": 1, "headline": [], "blocks": {"a": 1}}',
    "wrong-types-deep": b'{"blocks": [{"options": [{"id": {}}], "related_files": [1]}]}',
    "nested-deeply": b'{"x":' * 10_000 + b"1" + b"}" * 10_000,
    "nested-in-lists": b"[" * 10_000 + b"]" * 10_000,
    "nan": b'{"headline": NaN}',
    "huge-number": b'{"task_status": ' + b"9" * 5_000 + b"}",
    "lone-surrogate": b'{"headline": "\\ud800", "task_status": "failed"}',
    "nothing": b"",
    "null": b"null",
    "empty": b"{}",
    "duplicate-keys": b'{"headline": "a", "headline": "", "task_status": "x"}',
    "one-mebibyte": json.dumps({**DONE, "headline": "x" * 1024 * 1024}).encode(),
    "over-the-limit": padded(REPORT_MAX + 1),
}


@pytest.mark.parametrize("report", [pytest.param(b, id=n) for n, b in REPORTS.items()])
async def test_a_report_that_is_none_is_a_recorded_rejection(system: System, report: bytes):
    client = await system.client()

    verdict = await client.submit_report("s", 1, report, mutated=True)

    assert verdict.outcome is Outcome.REJECTED
    assert verdict.problems
    found = await client.get("s", 1, attempt=1)
    assert found.verdict is not None
    assert found.verdict.problems == verdict.problems
    await assert_next_is_served(client)


async def test_a_report_of_exactly_the_limit_is_judged_by_its_content(system: System):
    client = await system.client()
    verdict = await client.submit_report("s", 1, padded(REPORT_MAX), mutated=True)
    assert verdict.outcome is Outcome.ACCEPTED


async def test_a_report_that_no_message_could_carry_is_refused_before_it_is_sent(system: System):
    client = await system.client()
    with pytest.raises(PayloadTooLarge) as error:
        await client.submit_report("s", 1, b'"' + b"x" * client.connection.body_limit + b'"')
    assert error.value.limit == client.connection.body_limit
    await assert_next_is_served(client)


async def test_a_message_of_the_server_s_limit_with_headers_is_served(system: System):
    client = await system.client()
    report = b'"' + b"x" * (client.connection.body_limit - 4096) + b'"'
    verdict = await client.submit_report("s", 1, report)
    assert [p.code for p in verdict.problems] == ["report_too_large"]


@pytest.mark.parametrize(("turn", "attempt"), [(0, 1), (-1, 1), (1, 0), (2**31, 1), (True, 1), ("1", 1), (1.0, 1)])
async def test_a_number_that_is_none_never_leaves_the_client(system: System, turn: Any, attempt: Any):
    client = await system.client()
    with pytest.raises(InvalidMessage):
        await client.submit_report("s", turn, DONE, attempt=attempt)


async def test_the_same_attempt_with_other_content_is_a_conflict(system: System):
    client = await system.client()
    await client.submit_report("s", 1, CARD)
    with pytest.raises(Refusal) as error:
        await client.submit_report("s", 1, DONE)
    assert error.value.code is ErrorCode.ATTEMPT_CONFLICT


async def test_an_older_turn_after_a_newer_one_is_superseded(system: System):
    client = await system.client()
    await client.submit_report("s", 5, DONE, mutated=True)
    with pytest.raises(Refusal) as error:
        await client.submit_report("s", 4, DONE, mutated=True)
    assert error.value.code is ErrorCode.SUPERSEDED


async def test_a_runner_of_another_pool_is_refused(system: System):
    await (await system.client("runner-1", "pool-1")).submit_report("s", 1, DONE, mutated=True)
    with pytest.raises(Refusal) as error:
        await (await system.client("runner-2", "pool-2")).submit_report("s", 2, DONE, mutated=True)
    assert error.value.code is ErrorCode.POOL_MISMATCH


@pytest.mark.parametrize(
    ("turn", "number", "code"),
    [
        (1, 0, ErrorCode.OPTION_UNKNOWN),
        (1, 4, ErrorCode.OPTION_UNKNOWN),
        (2, 1, ErrorCode.TURN_UNKNOWN),
    ],
)
async def test_an_answer_that_fits_nothing_is_refused(system: System, turn: int, number: int, code: ErrorCode):
    client = await system.client()
    await client.submit_report("s", 1, CARD)
    with pytest.raises(Refusal) as error:
        await client.answer("s", turn, number)
    assert error.value.code is code


async def test_an_answer_to_a_turn_without_a_card_is_refused(system: System):
    client = await system.client()
    await client.submit_report("s", 1, DONE, mutated=True)
    with pytest.raises(Refusal) as error:
        await client.answer("s", 1, 1)
    assert error.value.code is ErrorCode.NO_CARD


async def test_an_answer_after_a_newer_turn_is_refused(system: System):
    client = await system.client()
    await client.submit_report("s", 1, CARD)
    await client.submit_report("s", 2, DONE, mutated=True)
    with pytest.raises(Refusal) as error:
        await client.answer("s", 1, 1)
    assert error.value.code is ErrorCode.SUPERSEDED


async def test_of_two_answers_at_once_one_wins_and_the_other_learns_who(system: System):
    client = await system.client()
    people = [await system.client(name) for name in ("ann", "bob", "cho", "dee")]
    await client.submit_report("s", 1, CARD)

    results = await asyncio.gather(*(p.answer("s", 1, 1 + i % 3) for i, p in enumerate(people)), return_exceptions=True)

    losers = [r for r in results if isinstance(r, Refusal)]
    winners = [r for r in results if not isinstance(r, BaseException)]
    assert len(winners) == 1
    assert [r.code for r in losers] == [ErrorCode.ALREADY_ANSWERED] * 3
    assert {r.details["actor"] for r in losers} == {winners[0].answer.actor}


REQUESTS = {
    "no-json": b"hello",
    "not-utf8": b"\xff",
    "a-scalar": b"7",
    "nested": b"[" * 10_000,
    "wrong-type": b'{"session": 1, "turn": "x"}',
    "bad-id": b'{"session": "a.b", "turn": 1, "id": "x", "pool": "p", "text": "t", "roles": ["a.b"], "runner": "me"}',
    "missing": b"{}",
}


@pytest.mark.parametrize("body", [pytest.param(b, id=n) for n, b in REQUESTS.items()])
@pytest.mark.parametrize("name", ["turn.get", "turn.answer", "turn.dismiss", "turn.prompt", "runner.join"])
async def test_a_request_that_is_none_gets_a_typed_error(system: System, name: str, body: bytes):
    pool = "pool-1" if name == "runner.join" else ""
    reply = await system.requester.request(system.subjects.api(name, "me", pool), body)
    error = json.loads(reply.body)
    assert error["code"] in ("invalid_message", "invalid_id")
    assert "Traceback" not in error["message"]
    assert reply.headers()[1]["Nats-Service-Error-Code"] == "400"
