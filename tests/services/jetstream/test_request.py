"""Requests share one inbox: each gets its own answer, or learns once why there is none."""

import asyncio
import gc
import weakref
from collections.abc import Callable

import pytest

from tests.services.jetstream.conftest import Connecting, Requesting, came_back
from tests.waiting import wait_until
from turngate.jetstream.connect import Connection
from turngate.jetstream.embedded import EmbeddedServer
from turngate.jetstream.request import (
    WRONG_SEQUENCE,
    Interrupted,
    JetStreamError,
    NoResponders,
    NotConnected,
    NotPermitted,
    Reply,
    Requester,
    RequestTimeout,
)
from turngate_contracts import headers as h
from turngate_contracts.errors import PayloadTooLarge
from turngate_contracts.subjects import Subjects

LONG_MS = 100_000
"""A timeout that no test lasts."""

Answer = Callable[[bytes], list[bytes]]


class Service:
    """A core NATS service; it answers with what `answer` makes of a body, or keeps where to answer."""

    def __init__(self, connection: Connection, answer: Answer | None) -> None:
        self.replies: list[str] = []
        self._connection = connection
        self._answer = answer

    def __call__(self, _subject: bytes, reply: bytes, body: bytes, _head: bytes) -> None:
        self.replies.append(reply.decode())
        for answer in self._answer(body) if self._answer else ():
            self._connection.send(reply.decode(), answer)


async def serve(connection: Connection, subject: str, answer: Answer | None = None) -> Service:
    service = Service(connection, answer)
    await connection.listen(subject, service)
    await connection.flush()
    return service


async def make_stream(requester: Requester, subjects: Subjects) -> str:
    name = subjects.stream("plain")
    config = {"name": name, "subjects": [f"{subjects.namespace}.in.>"], "storage": "memory"}
    await requester.api(f"STREAM.CREATE.{name}", config)
    return name


class Outcomes:
    """What a callback was called with."""

    def __init__(self) -> None:
        self.all: list[object] = []

    def __call__(self, outcome: object) -> None:
        self.all.append(outcome)


# Answers


async def test_each_of_two_thousand_requests_gets_its_own_answer(
    connection: Connection, requester: Requester, namespace: str
) -> None:
    await serve(connection, f"{namespace}.echo", lambda body: [body])
    bodies = [b"%d" % number for number in range(2000)]

    replies = await asyncio.gather(*(requester.request(f"{namespace}.echo", body) for body in bodies))

    assert [reply.body for reply in replies] == bodies


async def test_an_answer_carries_its_headers(connection: Connection, requester: Requester, namespace: str) -> None:
    def answer(_subject: bytes, reply: bytes, _body: bytes, _head: bytes) -> None:
        connection.send(reply.decode(), b"", headers=h.block({"A": "b"}))

    await connection.listen(f"{namespace}.x", answer)

    assert (await requester.request(f"{namespace}.x")).headers() == (0, {"A": "b"})


async def test_a_second_answer_is_ignored(connection: Connection, requester: Requester, namespace: str) -> None:
    await serve(connection, f"{namespace}.x", lambda _: [b"first", b"second"])
    outcomes = Outcomes()

    requester.request_nowait(f"{namespace}.x", b"", outcomes)
    await connection.flush()
    await connection.flush()

    assert [reply.body for reply in outcomes.all if isinstance(reply, Reply)] == [b"first"]
    assert connection.dropped_malformed == 0


async def test_several_answers_are_collected_up_to_the_last(
    connection: Connection, requester: Requester, namespace: str
) -> None:
    await serve(connection, f"{namespace}.x", lambda _: [b"1", b"2", b"3", b"end", b"too late"])

    replies = await requester.collect(f"{namespace}.x", b"", lambda reply: reply.body == b"end")

    assert [reply.body for reply in replies] == [b"1", b"2", b"3"]


async def test_a_collection_without_an_end_runs_out_of_time(
    connection: Connection, requester: Requester, namespace: str
) -> None:
    await serve(connection, f"{namespace}.x", lambda _: [b"1", b"2"])

    with pytest.raises(RequestTimeout):
        await requester.collect(f"{namespace}.x", b"", lambda _: False, timeout_ms=50)


async def test_a_mistake_in_judging_the_end_reaches_who_collects(
    connection: Connection, requester: Requester, namespace: str
) -> None:
    await serve(connection, f"{namespace}.x", lambda _: [b"1"])

    def mistake(_reply: Reply) -> bool:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await requester.collect(f"{namespace}.x", b"", mistake, timeout_ms=LONG_MS)


# No answer


async def test_a_request_that_nobody_answers_runs_out_of_time(
    connection: Connection, requester: Requester, namespace: str
) -> None:
    await serve(connection, f"{namespace}.silent")

    with pytest.raises(RequestTimeout, match=rf"no answer from {namespace}.silent within 50 ms"):
        await requester.request(f"{namespace}.silent", timeout_ms=50)


async def test_a_late_answer_reaches_nobody(connection: Connection, requester: Requester, namespace: str) -> None:
    service = await serve(connection, f"{namespace}.silent")
    outcomes = Outcomes()
    requester.request_nowait(f"{namespace}.silent", b"", outcomes, timeout_ms=50)
    await wait_until(lambda: outcomes.all)

    connection.send(service.replies[0], b"late")
    await connection.flush()

    assert [type(outcome) for outcome in outcomes.all] == [RequestTimeout]
    assert connection.dropped_malformed == 0


async def test_an_answer_to_a_request_that_was_cancelled_reaches_nobody(
    connection: Connection, requester: Requester, namespace: str
) -> None:
    service = await serve(connection, f"{namespace}.silent")
    waiting = [
        asyncio.create_task(requester.request(f"{namespace}.silent", timeout_ms=LONG_MS)),
        asyncio.create_task(requester.collect(f"{namespace}.silent", b"", lambda _: True, timeout_ms=LONG_MS)),
    ]
    await wait_until(lambda: len(service.replies) == 2)

    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    for reply in service.replies:
        connection.send(reply, b"late")
    await connection.flush()

    assert connection.dropped_malformed == 0


async def test_a_subject_without_a_service_is_told_at_once(requester: Requester, namespace: str) -> None:
    with pytest.raises(NoResponders, match=f"{namespace}.nobody"):
        await requester.request(f"{namespace}.nobody", timeout_ms=LONG_MS)


async def test_requests_under_way_are_interrupted_when_the_server_is_killed(
    own_connection: Connection, own_requester: Requester, own_server: EmbeddedServer
) -> None:
    await serve(own_connection, "silent")
    waiting = asyncio.gather(
        *(own_requester.request("silent", timeout_ms=LONG_MS) for _ in range(50)),
        own_requester.collect("silent", b"", lambda _: True, timeout_ms=LONG_MS),
        return_exceptions=True,
    )
    await own_connection.flush()

    own_server.kill()

    assert {type(outcome) for outcome in await waiting} == {Interrupted}


async def test_a_request_while_disconnected_is_not_sent(
    own_connection: Connection, own_requester: Requester, own_server: EmbeddedServer
) -> None:
    own_server.kill()
    await wait_until(lambda: not own_connection.is_connected)

    with pytest.raises(NotConnected):
        await own_requester.request("x", timeout_ms=LONG_MS)


async def test_a_callback_may_ask_again_while_it_learns_of_a_disconnect(
    own_connection: Connection, own_requester: Requester, own_server: EmbeddedServer
) -> None:
    await serve(own_connection, "silent")
    again = Outcomes()
    for _ in range(10):
        own_requester.request_nowait(
            "silent", b"", lambda _: own_requester.request_nowait("silent", b"", again), timeout_ms=LONG_MS
        )
    await own_connection.flush()

    own_server.kill()

    await wait_until(lambda: len(again.all) == 10)
    assert {type(outcome) for outcome in again.all} == {NotConnected}


async def test_requests_are_answered_again_after_a_restart(
    own_connection: Connection, own_requester: Requester, own_server: EmbeddedServer
) -> None:
    await serve(own_connection, "echo", lambda body: [body])
    own_server.kill()
    own_server.start()
    await came_back(own_connection)

    assert (await own_requester.request("echo", b"again")).body == b"again"


async def test_a_request_that_is_too_large_is_not_sent(requester: Requester, namespace: str) -> None:
    too_large = b"x" * (requester.connection.max_payload + 1)

    with pytest.raises(PayloadTooLarge):
        await requester.request(f"{namespace}.x", too_large, timeout_ms=LONG_MS)


async def test_a_request_that_permissions_refuse_fails_at_once(
    connecting: Connecting, requesting: Requesting, tmp_path_factory: pytest.TempPathFactory
) -> None:
    users = '{user: "guest", password: "guest", permissions: {publish: ["allowed.>"], subscribe: [">"]}}'
    with EmbeddedServer(
        tmp_path_factory.mktemp("restricted"),
        sync_always=False,
        extra_config=f"authorization {{ users: [ {users} ] }}",
    ) as server:
        connection = await connecting(f"nats://guest:guest@127.0.0.1:{server.port}")
        requester = await requesting(connection)
        allowed = asyncio.create_task(requester.request("allowed.x", timeout_ms=LONG_MS))

        with pytest.raises(NotPermitted, match=r"may not publish to Forbidden\.x"):
            await requester.request("Forbidden.x", timeout_ms=LONG_MS)

        with pytest.raises(NoResponders):
            await allowed
        await requester.stop()
        await connection.close()


# Callbacks


@pytest.mark.parametrize("kind", ["answered", "no responders", "timeout", "not sent"])
async def test_a_callback_that_raises_is_called_once_and_harms_no_other(
    connection: Connection, requester: Requester, namespace: str, kind: str
) -> None:
    await serve(connection, f"{namespace}.answered", lambda body: [body])
    await serve(connection, f"{namespace}.timeout")
    body = b"x" * (connection.max_payload + 1) if kind == "not sent" else b""
    calls = Outcomes()

    def mistake(outcome: object) -> None:
        calls(outcome)
        raise ZeroDivisionError

    requester.request_nowait(f"{namespace}.{kind.replace(' ', '')}", body, mistake, timeout_ms=50)
    await wait_until(lambda: calls.all)
    with pytest.raises(RequestTimeout):  # hence the sweeper has been round once more, and lives
        await requester.request(f"{namespace}.timeout", timeout_ms=150)

    assert len(calls.all) == 1
    assert (await requester.request(f"{namespace}.answered", b"x")).body == b"x"


# The end


async def test_stopping_fails_what_waits_and_what_comes_later(
    connection: Connection, requesting: Requesting, namespace: str
) -> None:
    requester = await requesting(connection)
    await serve(connection, f"{namespace}.silent")
    waiting = asyncio.create_task(requester.request(f"{namespace}.silent", timeout_ms=LONG_MS))
    await asyncio.sleep(0)

    await requester.stop()

    with pytest.raises(Interrupted):
        await waiting
    with pytest.raises(NotConnected):
        await requester.request(f"{namespace}.silent", timeout_ms=LONG_MS)


async def test_a_stopped_requester_leaves_nothing_behind_on_its_connection(connection: Connection) -> None:
    requester = await Requester.start(connection)
    await requester.request("$JS.API.INFO")
    gone = weakref.ref(requester)

    await requester.stop()
    del requester
    gc.collect()

    assert gone() is None


# JetStream


async def test_a_refusal_of_the_api_carries_its_number_and_words(requester: Requester) -> None:
    with pytest.raises(JetStreamError, match=r"STREAM\.INFO\.NONE: stream not found") as refusal:
        await requester.api("STREAM.INFO.NONE")

    assert (refusal.value.code, refusal.value.err_code) == (404, 10059)


async def test_a_publish_returns_where_the_message_is_stored(requester: Requester, subjects: Subjects) -> None:
    stream = await make_stream(requester, subjects)

    first = await requester.publish(f"{subjects.namespace}.in.x", b"1", h.block({h.MESSAGE_ID: "a"}))
    again = await requester.publish(f"{subjects.namespace}.in.x", b"1", h.block({h.MESSAGE_ID: "a"}))

    assert (first.stream, first.seq, first.duplicate) == (stream, 1, False)
    assert (again.stream, again.seq, again.duplicate) == (stream, 1, True)


async def test_a_publish_without_a_stream_is_told_at_once(requester: Requester, namespace: str) -> None:
    with pytest.raises(NoResponders):
        await requester.publish(f"{namespace}.none", b"", timeout_ms=LONG_MS)


async def test_a_lost_compare_and_set_is_told_apart(requester: Requester, subjects: Subjects) -> None:
    await make_stream(requester, subjects)
    subject = f"{subjects.namespace}.in.x"
    await requester.publish(subject, b"1")

    with pytest.raises(JetStreamError) as refusal:
        await requester.publish(subject, b"2", h.block({h.EXPECTED_SEQUENCE: "0"}))

    assert refusal.value.err_code in WRONG_SEQUENCE


@pytest.mark.parametrize("answer", [b"", b"{}", b"nonsense", b'{"seq": "x"}', b"\xff"])
async def test_an_answer_that_is_no_confirmation_is_an_error(
    connection: Connection, requester: Requester, namespace: str, answer: bytes
) -> None:
    await serve(connection, f"{namespace}.x", lambda _: [answer])

    with pytest.raises(JetStreamError, match="the answer is not JetStream's"):
        await requester.publish(f"{namespace}.x", b"")
