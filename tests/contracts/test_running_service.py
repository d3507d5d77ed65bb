"""What the running services really say and listen to is what the contract says, message by message.

A listener takes down everything that crosses the server in the namespace while a runner and a person play a story; each
message is then looked up in the generated document by its subject and checked against it, headers and body.
"""

import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from msgspec import Struct
from msgspec.structs import replace

from tests.contracts.conforming import (
    ESM_CHANNELS,
    asyncapi,
    channels_of,
    header_problems,
    payload_problems,
    problems,
    undocumented_headers,
)
from tests.running import System, running
from tests.waiting import wait_until
from turngate.jetstream.connect import parse_headers
from turngate.jetstream.embedded import EmbeddedServer
from turngate.jetstream.request import Reply
from turngate.runner import TurnClient
from turngate_contracts import codec
from turngate_contracts.asyncapi_channels import QUEUE
from turngate_contracts.catalogue import ERROR, REQUESTS
from turngate_contracts.dead import DeadEntry, DeadPage, DropDead, GetDead, ListDead, RetryDead
from turngate_contracts.errors import STATUS, ErrorBody, Refusal
from turngate_contracts.examples import CARD, EXAMPLES, PERSON, POOL, RUNNER
from turngate_contracts.headers import KV_OPERATION, SCHEMA
from turngate_contracts.messages import SCHEMAS
from turngate_contracts.rows import Request
from turngate_contracts.subjects import Subjects
from turngate_contracts.tasks import CheckMemoryRefs, MemoryRefsChecked, TaskFinished
from turngate_contracts.topology import CONCLUSION, DEADLETTER, SUPERVISOR, VALIDATION
from turngate_protocol.question import ExpireAfter, ToolCall

QUESTION = ToolCall("ask_user_text", "call-1", '{"question": "Shall the table be locked?"}')
TASK = EXAMPLES[TaskFinished].record  # type: ignore[attr-defined]
UNCHECKED = b'{"task_status":"completed","headline":"Done","blocks":[]}'
ASKED = [row for row in REQUESTS if row.service != SUPERVISOR]
STORED_ONLY = {"event.turns", "event.questions", "event.conclusions", "timer.due.question"}
"""Channels that nobody publishes to: the server itself fills them, and republishes what it stored."""


class Tap:
    """Takes down what crosses the server in one namespace."""

    def __init__(self, namespace: str) -> None:
        self.namespace = namespace
        self.seen: list[tuple[str, bytes, dict[str, str]]] = []

    def on_message(self, subject: bytes, reply: bytes, body: bytes, head: bytes) -> None:
        if reply.startswith(b"$JS.ACK"):
            return  # the server delivers what was published before
        name = subject.decode()
        if name.startswith((f"{self.namespace}.", f"$KV.{self.namespace}_")):
            self.seen.append((name, body, parse_headers(head)[1]))

    def channels(self) -> set[str]:
        return {channel for subject, _, _ in self.seen for channel in channels_of(subject, self.namespace)}


@pytest_asyncio.fixture
async def system(nats_server: EmbeddedServer, namespace: str) -> AsyncIterator[System]:
    """A system in which every service of the catalogue runs."""
    memory = Subjects(namespace).memory_check()
    async with running(
        nats_server.url, namespace, conclusion=True, deadletter=True, memory_subject=memory, stat_timeout_ms=200
    ) as made:
        yield made


@pytest.mark.parametrize("service", [VALIDATION, CONCLUSION, DEADLETTER])
async def test_the_endpoints_are_those_of_the_catalogue(system: System, service: str):
    reply = await system.requester.request(f"$SRV.INFO.{system.subjects.namespace}-{service}")

    endpoints = json.loads(reply.body)["endpoints"]

    assert {each["subject"]: each["metadata"]["request"] for each in endpoints} == {
        system.subjects.api_endpoint(row.name, by_pool=row.by_pool): SCHEMAS[row.request]
        for row in REQUESTS
        if row.service == service
    }
    assert {each["queue_group"] for each in endpoints} == {QUEUE}


@pytest.mark.parametrize("row", ASKED, ids=lambda row: row.name)
async def test_a_request_is_answered_with_its_reply(system: System, row: Request):
    await _a_waiting_card(system)
    await _a_waiting_question(system)
    await _a_concluded_task(system)
    request = EXAMPLES[row.request]
    if hasattr(request, "letter"):
        request = replace(request, letter=await _a_dead_letter(system))

    reply = await _ask(system, row.name, request)

    _, fields = reply.headers()
    name = SCHEMAS[row.reply]
    assert fields[SCHEMA] == name, reply.body
    assert header_problems(name, fields) == []
    assert problems(name, json.loads(reply.body)) == []


@pytest.mark.parametrize("row", ASKED, ids=lambda row: row.name)
async def test_a_request_that_can_not_be_read_is_answered_with_an_error(system: System, row: Request):
    reply = await system.requester.request(
        system.subjects.api(row.name, PERSON, "p" if row.by_pool else ""), b'{"session":'
    )

    _, fields = reply.headers()
    name = SCHEMAS[ERROR]
    assert fields[SCHEMA] == name
    assert header_problems(name, fields) == []
    assert problems(name, json.loads(reply.body)) == []
    error = codec.decode(reply.body, ErrorBody, "an error")
    assert fields["Nats-Service-Error-Code"] == str(STATUS[error.code])


async def test_everything_that_crosses_the_server_is_in_the_document(system: System):
    tap = Tap(system.subjects.namespace)
    await system.connection.listen(">", tap.on_message)
    expected = {
        name for name, channel in asyncapi()["channels"].items() if channel["address"] is not None
    } - STORED_ONLY
    expected -= ESM_CHANNELS  # of which `test_running_supervisor` tells

    await _story(system)

    await wait_until(lambda: tap.channels() >= expected, 10, "every channel of the document is used")
    assert tap.channels() == expected
    for subject, body, fields in tap.seen:
        assert _wrong(tap.namespace, subject, body, fields) == [], subject


async def test_events_carry_the_headers_and_the_state_of_the_document(system: System):
    await _a_waiting_card(system)
    client = await system.client("ui")

    events = await wait_until(lambda: _stored(client), why="the server sources the revision")

    assert {event.schema for event in events} == {"session_turns.v1"}
    assert [event.type for event in events][:1] == ["turngate.turn.report_accepted"]
    assert [problems(event.schema, json.loads(event.data)) for event in events] == [[]] * len(events)


def _wrong(namespace: str, subject: str, body: bytes, fields: dict[str, str]) -> list[str]:
    (channel,) = channels_of(subject, namespace)
    if not body and KV_OPERATION in fields:
        return []  # a tombstone says only that the key is gone
    (name,) = asyncapi()["channels"][channel]["messages"]
    if channel == "turn.ended" and b"seven" in body:
        return []  # the hostile message of the story
    plain = json.loads(body)
    return [
        *header_problems(name, fields),
        *undocumented_headers(name, fields),
        *payload_problems(name, plain),
        *problems(name, plain),
    ]


async def _story(system: System) -> None:
    """One of everything: a rejection, a card, a refusal, an answer, a dismissal, a prompt, a letter that is dead."""
    runner, person = await system.client(RUNNER, POOL), await system.client(PERSON, POOL)
    session = "orders-1"
    await runner.submit_report(session, 1, UNCHECKED, mutated=True)
    await runner.submit_report(session, 1, CARD, attempt=2, mutated=True)
    await runner.end_turn(session, 1)
    with contextlib.suppress(Refusal):
        await runner.submit_report(session, 1, CARD, attempt=3)
    await person.send_prompt(session, "task-1", "Task 1 has finished.")
    await wait_until(person.inbox, why="the inbox answers")
    await wait_until(lambda: _waits(person), why="the card waits in the inbox")
    await person.answer(session, 1, number=1)
    async with contextlib.aclosing(runner.prompts()) as prompts:
        await (await anext(prompts)).take()
    await runner.submit_report(session, 2, CARD)
    await person.dismiss(session, 2)
    await person.check_report(CARD)
    await person.get(session)
    await _a_question(runner, person, session)
    await _a_task(system, runner, session)
    await _ask(system, "report.schema", EXAMPLES[_row("report.schema").request])
    await _ask(system, "turn.list", EXAMPLES[_row("turn.list").request])
    letter = await _a_dead_letter(system)
    await _ask(system, "dead.get", GetDead(letter))
    await _ask(system, "dead.retry", RetryDead(letter))
    await wait_until(lambda: _dead_again(person, letter), why="what was retried is dead again")
    await _ask(system, "dead.drop", DropDead((await _dead(person))[-1].letter, "its sender was repaired"))


async def _a_question(runner: TurnClient, person: TurnClient, session: str) -> None:
    """One that its policy decides after a person was refused, and one that a person gives up."""
    asked = await runner.ask(QUESTION, session, policy=ExpireAfter(300))
    assert asked.pending is not None
    request = asked.pending.request
    with contextlib.suppress(Refusal):
        await person.questions.resolve(session, request, chat=" ")
    await person.questions.get(session, request.id)
    await runner.wait(request, session)
    asked = await runner.ask(ToolCall(QUESTION.name, "call-2", QUESTION.args), session)
    assert asked.pending is not None
    await person.questions.reject(session, asked.pending.request)


async def _a_task(system: System, runner: TurnClient, session: str) -> None:
    """One whose files and memories are asked about, and whose parent is told."""

    def on_check(_subject: bytes, reply: bytes, body: bytes, _head: bytes) -> None:
        asked = codec.decode(body, CheckMemoryRefs, "a CheckMemoryRefs")
        name = SCHEMAS[MemoryRefsChecked]
        head = f"NATS/1.0\r\n{SCHEMA}: {name}\r\n\r\n".encode()
        system.connection.send(reply.decode(), codec.encode(MemoryRefsChecked(asked.refs)), headers=head)

    await system.connection.listen(system.subjects.memory_check(), on_check)
    await runner.serve_stat([])
    await _finish(runner, session)
    await runner.conclusion(session, TASK.id, wait_ms=10_000)
    await runner.conclusions(session=session)


async def _finish(runner: TurnClient, session: str) -> None:
    await runner.finish_task(session, replace(TASK, parent_session=session))


async def _a_concluded_task(system: System) -> None:
    """The task that the examples speak of; nobody answers for its files."""
    runner = await system.client(RUNNER, POOL)
    await _finish(runner, TASK.parent_session)
    await runner.conclusion(TASK.parent_session, TASK.id, wait_ms=10_000)


async def _a_dead_letter(system: System) -> str:
    """A message that nothing could be done with; return its letter."""
    await system.requester.publish(system.subjects.turn_ended(POOL, RUNNER, "orders-1"), b'{"turn":"seven"}')
    person = await system.client(PERSON, POOL)
    page = await wait_until(lambda: _dead(person), why="the message is dead")
    return page[0].letter


async def _dead_again(person: TurnClient, letter: str) -> bool:
    return any(entry.first == letter for entry in await _dead(person))


async def _dead(person: TurnClient) -> tuple[DeadEntry, ...]:
    return (await person.call("dead.list", ListDead(), DeadPage)).entries


async def _stored(client: Any) -> list[Any]:
    return [event async for event in client.events(until_caught_up=True)]


async def _waits(person: Any) -> bool:
    return bool((await person.inbox()).entries)


async def _a_waiting_card(system: System) -> None:
    """The card that the examples speak of: turn 7 of their session."""
    runner = await system.client(RUNNER, POOL)
    turn = EXAMPLES[_row("turn.answer").request]
    await runner.submit_report(turn.session, turn.turn, CARD)  # type: ignore[attr-defined]


async def _a_waiting_question(system: System) -> None:
    """The question that the examples answer and give up."""
    await _ask(system, "question.ask", EXAMPLES[_row("question.ask").request])


async def _ask(system: System, name: str, request: Struct) -> Reply:
    # A runner may only join and ask for itself; the others may be anybody.
    caller = RUNNER if name in ("runner.join", "question.ask") else PERSON
    head = f"NATS/1.0\r\n{SCHEMA}: {SCHEMAS[type(request)]}\r\n\r\n".encode()
    subject = system.subjects.api(name, caller, getattr(request, "pool", POOL) if _row(name).by_pool else "")
    return await system.requester.request(subject, codec.encode(request), head)


def _row(name: str) -> Request:
    return next(row for row in REQUESTS if row.name == name)
