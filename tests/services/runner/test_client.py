"""The client's connection: made whole or not at all, and when it is closed nothing waits; what a full intake says."""

import asyncio
import time
from typing import Any

import pytest

from tests.fundamentals.reports import DONE
from tests.running import System, running
from tests.waiting import wait_until
from turngate.jetstream.connect import Connection, NoServer
from turngate.jetstream.embedded import EmbeddedServer
from turngate.jetstream.request import JetStreamError, Requester
from turngate.runner import ClientClosed, TurnClient, VerdictTimeout, decisions
from turngate.validation.service import ValidationService
from turngate_contracts.errors import ErrorCode, InvalidId, Overloaded, Refusal, Unavailable
from turngate_contracts.topology import QUEUED_PER_SUBJECT, VALIDATION
from turngate_protocol.conclusion import Task
from turngate_protocol.report.session import Outcome

AT_ONCE_S = 10.0
"""Far less than what a client waits by default."""


async def update_stream(system: System, **changes: Any) -> None:
    stream = system.subjects.stream("turns")
    config = (await system.requester.api(f"STREAM.INFO.{stream}"))["config"]
    await system.requester.api(f"STREAM.UPDATE.{stream}", {**config, **changes})


# Connecting


@pytest.mark.parametrize("fails", ["the requests", "the mailbox"])
async def test_a_connection_that_can_t_be_used_is_closed(
    nats_server: EmbeddedServer, namespace: str, monkeypatch: pytest.MonkeyPatch, fails: str
):
    opened: list[Connection] = []
    listen = Connection.listen

    async def failing(self: Connection, subject: str, *args: Any, **kwargs: Any) -> Any:
        opened.append(self)
        if fails == "the requests" or subject.startswith(namespace):
            raise OSError("no more of it")
        return await listen(self, subject, *args, **kwargs)

    monkeypatch.setattr(Connection, "listen", failing)
    before = asyncio.all_tasks()

    with pytest.raises(OSError, match="no more of it"):
        await TurnClient.connect("runner-1", url=nats_server.url, namespace=namespace)

    assert opened[0].is_closed
    await wait_until(lambda: asyncio.all_tasks() == before, why="its tasks are ended")


@pytest.mark.parametrize("field", ["identity", "pool", "namespace"])
async def test_an_id_that_could_become_another_subject_is_refused_before_connecting(field: str):
    given: dict[str, Any] = {"identity": "runner-1", "pool": "pool-1", "namespace": "tg", field: "a.*"}
    with pytest.raises(InvalidId):
        await TurnClient.connect(**given, url="nats://127.0.0.1:1")


async def test_without_a_server_connecting_says_how_to_start_one():
    with pytest.raises(NoServer, match="turngate up"):
        await TurnClient.connect("runner-1", url="nats://127.0.0.1:1", timeout_ms=200)


# Closing


async def test_a_closed_client_fails_at_once(system: System):
    client = await system.client()
    await client.close()

    began = time.monotonic()
    for asked in (
        client.submit_report("s", 1, DONE),
        client.end_turn("s", 1),
        client.get("s"),
        client.answer("s", 1, 1),
        client.finish_task("s", Task("t1", "completed", output="done")),
        client.conclusion("s", "t1", wait_ms=60_000),
        anext(client.prompts()),
    ):
        with pytest.raises(ClientClosed, match="the client runner-1 is closed; connect another one") as error:
            await asked
        assert error.value.code is ErrorCode.UNAVAILABLE
    assert time.monotonic() - began < AT_ONCE_S


async def test_closing_twice_is_closing_once(system: System):
    client = await system.client()
    await client.close()
    await client.close()


async def test_what_waits_for_a_verdict_fails_when_the_client_is_closed(nats_server: EmbeddedServer, namespace: str):
    async with running(nats_server.url, namespace, validation=False) as system:
        client = await system.client()
        submitting = asyncio.create_task(client.submit_report("s", 1, DONE))
        await wait_until(lambda: _messages(system), why="the report is stored")

        began = time.monotonic()
        await client.close()
        with pytest.raises(ClientClosed):
            await submitting

        assert time.monotonic() - began < AT_ONCE_S


async def test_whoever_waits_for_prompts_is_told_when_the_client_is_closed(system: System):
    client = await system.client()
    waiting = asyncio.create_task(anext(client.prompts()))
    await wait_until(lambda: _is_asked_for_prompts(system), why="it asks for prompts")

    began = time.monotonic()
    await client.close()
    with pytest.raises(ClientClosed):
        await waiting

    assert time.monotonic() - began < AT_ONCE_S


async def test_what_is_being_published_fails_when_the_client_is_closed(own_server: EmbeddedServer, namespace: str):
    async with running(own_server.url, namespace, validation=False) as system:
        client = await system.client()
        await asyncio.to_thread(own_server.kill)
        await wait_until(lambda: not client.connection.is_connected, why="the client notices")
        submitting = asyncio.create_task(client.submit_report("s", 1, DONE))
        asking = asyncio.create_task(client.get("s"))

        began = time.monotonic()
        await client.close()
        for waiting in (submitting, asking):
            with pytest.raises(ClientClosed):
                await waiting

        assert time.monotonic() - began < AT_ONCE_S
        await asyncio.to_thread(own_server.start)


async def test_a_client_whose_requests_can_t_be_stopped_is_closed_all_the_same(
    system: System, monkeypatch: pytest.MonkeyPatch
):
    client = await system.client()
    stop = Requester.stop

    async def failing(self: Requester) -> None:
        await stop(self)
        raise OSError("no")

    with monkeypatch.context() as patch:
        patch.setattr(Requester, "stop", failing)
        with pytest.raises(OSError, match="no"):
            await client.close()
    assert client.connection.is_closed


# A full intake


async def test_a_full_intake_is_told_with_when_to_try_again(nats_server: EmbeddedServer, namespace: str):
    async with running(nats_server.url, namespace, validation=False) as system:
        client = await system.client()
        await update_stream(system, max_msgs=1)
        with pytest.raises(VerdictTimeout):
            await client.submit_report("s", 1, DONE, timeout_ms=300)

        with pytest.raises(Overloaded, match="the intake is full: the services are behind; try again in 5 s") as error:
            await client.submit_report("t", 1, DONE, timeout_ms=500)

        assert error.value.code is ErrorCode.OVERLOADED
        assert error.value.retry_after_ms == 5_000
        with pytest.raises(Overloaded):
            await client.end_turn("t", 1, timeout_ms=500)


async def test_a_report_waits_for_room_in_a_full_intake(nats_server: EmbeddedServer, namespace: str):
    async with running(nats_server.url, namespace, validation=False) as system:
        client = await system.client()
        await update_stream(system, max_msgs=1)
        await system.requester.publish(system.subjects.turn_ended("pool-1", "runner-1", "s"), b"{}")
        published: list[bytes] = []
        subject = system.subjects.turn_report("pool-1", "runner-1", "t")
        await system.connection.listen(subject, lambda subject, *_: published.append(subject))
        waiting = asyncio.create_task(client.submit_report("t", 1, DONE, timeout_ms=20_000))
        await wait_until(lambda: len(published) >= 2, why="it was refused once")

        service = ValidationService(system.connection, system.requester, system.settings)
        await service.start()

        assert (await waiting).outcome is Outcome.ACCEPTED
        await service.stop()


async def test_a_session_that_has_too_much_waiting_is_refused_and_others_are_not(
    nats_server: EmbeddedServer, namespace: str
):
    async with running(nats_server.url, namespace, validation=False) as system:
        client = await system.client()
        noisy, quiet = (system.subjects.turn_report("pool-1", "runner-1", name) for name in ("noisy", "quiet"))
        await asyncio.gather(*(system.requester.publish(noisy, b"{}") for _ in range(QUEUED_PER_SUBJECT)))

        with pytest.raises(Overloaded, match="this session has in it what it may"):
            await client.submit_report("noisy", 1, DONE, timeout_ms=400)

        assert (await system.requester.publish(quiet, b"{}")).seq == QUEUED_PER_SUBJECT + 1


async def test_a_full_intake_does_not_refuse_what_waits_in_it_already(system: System, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(decisions, "GET_AFTER_MS", (50,))
    client = await system.client()
    stream = system.subjects.stream("turns")
    await system.requester.api(f"CONSUMER.PAUSE.{stream}.{VALIDATION}", {"pause_until": "2100-01-01T00:00:00Z"})
    await update_stream(system, max_msgs=1)
    published: list[str] = []
    await system.connection.listen(
        system.subjects.turn_report("pool-1", "runner-1", "s"),
        lambda subject, *_: published.append(subject.decode()[-1]),
    )
    first = asyncio.create_task(client.submit_report("s", 1, DONE, mutated=True))
    await wait_until(lambda: _messages(system), why="the report is stored")
    await wait_until(lambda: published.count("s") > 1, why="it is published again")
    with pytest.raises(Refusal):
        await client.submit_report("t", 1, DONE, mutated=True, timeout_ms=500)

    await system.requester.api(f"CONSUMER.PAUSE.{stream}.{VALIDATION}", {})

    assert (await first).outcome is Outcome.ACCEPTED
    await wait_until(lambda: _is_empty(system), why="there is room")
    assert (await client.submit_report("t", 1, DONE, mutated=True)).outcome is Outcome.ACCEPTED


async def test_a_stream_that_refuses_for_good_is_told(nats_server: EmbeddedServer, namespace: str):
    async with running(nats_server.url, namespace, validation=False) as system:
        client = await system.client()
        await update_stream(system, max_msg_size=100)
        with pytest.raises(Unavailable, match="could not be stored: message size exceeds maximum") as error:
            await client.submit_report("s", 1, DONE)
        assert not isinstance(error.value, VerdictTimeout)


async def _messages(system: System) -> int:
    info = await system.requester.api(f"STREAM.INFO.{system.subjects.stream('turns')}")
    return int(info["state"]["messages"])


async def _is_empty(system: System) -> bool:
    return not await _messages(system)


async def _is_asked_for_prompts(system: System) -> bool:
    stream, consumer = system.subjects.stream("work"), system.subjects.prompt_consumer("pool-1")
    try:
        info = await system.requester.api(f"CONSUMER.INFO.{stream}.{consumer}")
    except JetStreamError:  # it is made when the client joins
        return False
    return int(info["num_waiting"]) > 0
