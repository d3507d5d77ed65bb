"""Requests are answered once, whatever is in them and whatever their handler does, and never with a traceback."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from msgspec import Struct

from tests.services.jetstream.conftest import Connecting, Requesting, came_back
from tests.services.jetstream.raw import RawClient
from tests.waiting import wait_until
from turngate.jetstream import api as api_module
from turngate.jetstream.api import Api, Call
from turngate.jetstream.connect import Connection
from turngate.jetstream.embedded import EmbeddedServer
from turngate.jetstream.request import NoResponders, Reply, Requester
from turngate_contracts import codec
from turngate_contracts.errors import ErrorBody, ErrorCode, Refusal
from turngate_contracts.headers import SCHEMA
from turngate_contracts.messages import GetTurn, PromptQueued
from turngate_contracts.subjects import Subjects

BODY = b'{"session": "s"}'
SECRET = "a secret of the service"


class Handler:
    """Answers a GetTurn with its session's name, or does what it is told to."""

    def __init__(self) -> None:
        self.calls: list[tuple[Call, GetTurn]] = []
        self.then: Callable[[Call], None] = lambda call: call.answer(PromptQueued("answer", held=False))

    def __call__(self, call: Call, request: GetTurn) -> None:
        self.calls.append((call, request))
        self.then(call)


@pytest.fixture
async def api(connection: Connection, subjects: Subjects) -> AsyncIterator[Api]:
    made = await Api.start(connection, subjects, "test", "1.0.0")
    yield made
    await made.stop()


@pytest.fixture
async def handler(api: Api) -> Handler:
    """What answers `turn.get` on the shared server."""
    made = Handler()
    await api.add("turn.get", GetTurn, made)
    return made


class Asking:
    """Asks `turn.get` as a caller."""

    def __init__(self, requester: Requester, subjects: Subjects) -> None:
        self._requester = requester
        self._prefix = f"{subjects.namespace}.api.turn.get"

    async def __call__(self, body: bytes = BODY, caller: str = "caller", headers: bytes = b"") -> Reply:
        return await self._requester.request(f"{self._prefix}.{caller}", body, headers)


@pytest.fixture
def ask(requester: Requester, subjects: Subjects, handler: Handler) -> Asking:
    return Asking(requester, subjects)


def error_of(reply: Reply) -> ErrorBody:
    """Return the error of a reply whose headers say the same."""
    error = codec.decode(reply.body, ErrorBody, "an error")
    headers = reply.headers()[1]
    assert headers[SCHEMA] == "error.v1"
    assert headers["Nats-Service-Error-Code"].isdecimal()
    assert headers["Nats-Service-Error"].isascii()
    return error


def is_answered(reply: Reply) -> bool:
    return reply.body == b'{"id":"answer","held":false}' and reply.headers()[1] == {SCHEMA: "prompt_queued.v1"}


# Answers


async def test_a_request_is_answered_and_its_caller_is_known(ask: Asking, handler: Handler) -> None:
    assert is_answered(await ask())

    ((call, request),) = handler.calls
    assert (call.caller, request) == ("caller", GetTurn("s"))


async def test_a_request_may_be_answered_after_its_handler_returned(ask: Asking, handler: Handler) -> None:
    handler.then = lambda call: None
    waiting = asyncio.create_task(ask())
    await wait_until(lambda: handler.calls)
    other = asyncio.create_task(ask())
    await wait_until(lambda: len(handler.calls) == 2)  # the endpoint is not held up by the first

    for call, _ in handler.calls:
        call.answer(PromptQueued("answer", held=False))

    assert is_answered(await waiting)
    assert is_answered(await other)


async def test_work_that_waits_answers_with_its_result_or_its_error(api: Api, ask: Asking, handler: Handler) -> None:
    async def result() -> PromptQueued:
        await asyncio.sleep(0)
        return PromptQueued("answer", held=False)

    async def failure() -> PromptQueued:
        await asyncio.sleep(0)
        raise Refusal(ErrorCode.NO_CARD, "there is none", session="s")

    handler.then = lambda call: api.run(call, result())
    assert is_answered(await ask())
    handler.then = lambda call: api.run(call, failure())
    assert error_of(await ask()) == ErrorBody(ErrorCode.NO_CARD, "there is none", {"session": "s"})


async def test_a_request_without_a_reply_subject_is_handled_and_harms_nothing(
    connection: Connection, subjects: Subjects, ask: Asking, handler: Handler
) -> None:
    connection.send(subjects.api("turn.get", "caller"), BODY)
    await wait_until(lambda: handler.calls)

    assert is_answered(await ask())


async def test_an_empty_body_is_an_empty_object(ask: Asking) -> None:
    assert "session" in error_of(await ask(b"")).message


async def test_micro_clients_find_the_service_and_its_endpoints(
    requester: Requester, subjects: Subjects, handler: Handler
) -> None:
    info = json.loads((await requester.request(f"$SRV.INFO.{subjects.namespace}-test")).body)

    assert [(each["name"], each["subject"]) for each in info["endpoints"]] == [
        ("turn-get", f"{subjects.namespace}.api.turn.get.*")
    ]
    assert info["endpoints"][0]["metadata"] == {"request": "get_turn.v1"}


# Bad requests


@pytest.mark.parametrize(
    "body",
    [b"{", b"\xff\xfe", b"[]", b"null", b"1", b'{"session": 1}', b'{"session": "s", "turn": "one"}', b"[" * 100_000],
    ids=["cut", "not UTF-8", "list", "null", "number", "wrong type", "wrong type of another field", "deep"],
)
async def test_a_body_that_is_not_the_message_is_told_and_the_next_is_served(
    ask: Asking, handler: Handler, body: bytes
) -> None:
    reply = await ask(body)

    error = error_of(reply)
    assert error.code is ErrorCode.INVALID_MESSAGE
    assert error.message.startswith("the body is not a GetTurn: ")
    assert reply.headers()[1]["Nats-Service-Error-Code"] == "400"
    assert handler.calls == []
    assert is_answered(await ask())


@pytest.mark.parametrize("caller", ["a$b", "ü", "x" * 129, "a:b", "a\x01b"])
async def test_a_caller_that_is_no_id_is_told_and_the_next_is_served(
    ask: Asking, handler: Handler, caller: str
) -> None:
    assert error_of(await ask(caller=caller)).code is ErrorCode.INVALID_ID

    assert handler.calls == []
    assert is_answered(await ask())


@pytest.mark.parametrize(
    ("caller", "headers"),
    [(b"\xff", b""), (b"caller", b"NATS/1.0"), (b"caller", b"NATS/1.0 \xff\xfe\xfd\r\n\r\n")],
    ids=["a caller that is not UTF-8", "a header block of its first line only", "a status that is not UTF-8"],
)
async def test_a_malformed_request_is_dropped_and_the_next_is_served(
    raw: RawClient, subjects: Subjects, ask: Asking, caller: bytes, headers: bytes
) -> None:
    await raw.publish(f"{subjects.namespace}.api.turn.get.".encode() + caller, BODY, b"nobody", headers)

    assert is_answered(await ask())


# Handlers that fail


async def test_what_a_service_raises_is_told_as_internal_and_kept_in_its_log(
    ask: Asking, handler: Handler, caplog: pytest.LogCaptureFixture
) -> None:
    def mistake(_call: Call) -> None:
        raise ValueError(SECRET)

    handler.then = mistake
    reply = await ask()

    assert error_of(reply).code is ErrorCode.INTERNAL
    for told in (reply.body, reply.head):
        assert SECRET.encode() not in told
        assert b"ValueError" not in told
        assert b"Traceback" not in told
    assert SECRET in caplog.text
    assert reply.headers()[1]["Nats-Service-Error-Code"] == "500"


async def test_a_typed_error_keeps_its_code_its_words_and_its_details(ask: Asking, handler: Handler) -> None:
    def refuse(_call: Call) -> None:
        raise Refusal(ErrorCode.ALREADY_ANSWERED, "too late\r\nNats-Forged: ü", option="yes")

    handler.then = refuse
    reply = await ask()

    assert error_of(reply) == ErrorBody(ErrorCode.ALREADY_ANSWERED, "too late\r\nNats-Forged: ü", {"option": "yes"})
    headers = reply.headers()[1]
    assert "Nats-Forged" not in headers
    assert headers["Nats-Service-Error-Code"] == "409"


async def test_details_that_can_not_be_sent_are_left_out(ask: Asking, handler: Handler) -> None:
    def refuse(_call: Call) -> None:
        raise Refusal(ErrorCode.NO_CARD, "there is none", odd=object())

    handler.then = refuse

    assert error_of(await ask()) == ErrorBody(ErrorCode.NO_CARD, "there is none")


async def test_an_answer_that_is_no_message_of_ours_is_told_as_internal(ask: Asking, handler: Handler) -> None:
    handler.then = lambda call: call.answer(Odd())

    assert error_of(await ask()).code is ErrorCode.INTERNAL


class Odd(Struct):
    """A Struct that the contracts do not know."""


async def test_an_answer_that_is_too_large_is_told(connection: Connection, ask: Asking, handler: Handler) -> None:
    handler.then = lambda call: call.answer(PromptQueued("x" * connection.max_payload, held=False))

    reply = await ask()

    assert error_of(reply).code is ErrorCode.PAYLOAD_TOO_LARGE
    assert reply.headers()[1]["Nats-Service-Error-Code"] == "413"


async def test_only_the_first_answer_is_sent(ask: Asking, handler: Handler, connection: Connection) -> None:
    heard: list[bytes] = []
    await connection.listen("_INBOX.>", lambda _s, _r, body, _h: heard.append(body))

    def answer_and_fail(call: Call) -> None:
        call.answer(PromptQueued("answer", held=False))
        call.answer(PromptQueued("second", held=False))
        raise ValueError("a mistake after the answer")

    handler.then = answer_and_fail
    assert is_answered(await ask())
    await connection.flush()

    assert heard == [b'{"id":"answer","held":false}']


# The end, and restarts (hazard 24)


async def test_a_stopping_instance_answers_what_it_took(
    connecting: Connecting, nats_server: EmbeddedServer, ask: Asking, subjects: Subjects
) -> None:
    other = await Api.start(await connecting(nats_server.url), subjects, "test", "1.0.0")
    second = Handler()
    await other.add("turn.get", GetTurn, second)

    waiting = [asyncio.create_task(ask()) for _ in range(300)]
    await wait_until(lambda: second.calls)
    await other.stop()
    waiting += [asyncio.create_task(ask()) for _ in range(20)]

    # A request that the stopping instance swallowed would run out of time after 5 s.
    async with asyncio.timeout(4):
        assert all(map(is_answered, await asyncio.gather(*waiting)))
    assert len(second.calls) < 320


async def test_stopping_finishes_what_is_under_way(api: Api, ask: Asking, handler: Handler) -> None:
    go = asyncio.Event()

    async def work() -> PromptQueued:
        await go.wait()
        return PromptQueued("answer", held=False)

    handler.then = lambda call: api.run(call, work())
    waiting = asyncio.create_task(ask())
    await wait_until(lambda: handler.calls)
    stopping = asyncio.create_task(api.stop())
    await asyncio.sleep(0)

    go.set()

    assert is_answered(await waiting)
    await stopping


async def test_what_is_not_finished_in_time_is_told_to_ask_again(
    api: Api, ask: Asking, handler: Handler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api_module, "STOP_S", 0.1)

    async def work() -> PromptQueued:
        await asyncio.Event().wait()
        raise AssertionError

    handler.then = lambda call: api.run(call, work())
    waiting = asyncio.create_task(ask())
    await wait_until(lambda: handler.calls)

    await api.stop()

    assert error_of(await waiting).code is ErrorCode.UNAVAILABLE


async def test_nobody_answers_after_the_stop(api: Api, ask: Asking) -> None:
    await api.stop()

    with pytest.raises(NoResponders):
        await ask()


async def test_a_service_answers_again_after_a_restart_and_can_stop_while_disconnected(
    connecting: Connecting, requesting: Requesting, own_server: EmbeddedServer, subjects: Subjects
) -> None:
    connection = await connecting(own_server.url)
    api = await Api.start(connection, subjects, "test", "1.0.0")
    await api.add("turn.get", GetTurn, Handler())
    caller = await connecting(own_server.url)
    ask: Any = Asking(await requesting(caller), subjects)

    own_server.kill()
    own_server.start()
    await came_back(connection)
    await came_back(caller)
    assert is_answered(await ask())

    own_server.kill()
    await wait_until(lambda: not connection.is_connected)
    async with asyncio.timeout(8):
        await api.stop()
