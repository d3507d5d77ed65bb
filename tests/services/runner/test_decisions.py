"""What a client says when no verdict comes, and how it finds its verdict when mail is lost or services are away."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable

import pytest

from tests.fundamentals.reports import DONE
from tests.running import System, running
from tests.services.jetstream.raw import Proxy
from tests.waiting import wait_until
from turngate.jetstream.embedded import EmbeddedServer
from turngate.runner import Stored, TurnClient, VerdictTimeout, decisions
from turngate.validation.service import ValidationService
from turngate_contracts import codec
from turngate_contracts import messages as m
from turngate_contracts.errors import ErrorCode, Refusal
from turngate_contracts.headers import SCHEMA, block
from turngate_protocol.report.session import EndingOutcome, Outcome

SOON_MS = 300
"""How long these tests wait for a verdict that can't come."""


@pytest.fixture
async def idle(nats_server: EmbeddedServer, namespace: str) -> AsyncIterator[System]:
    """A provisioned namespace without a validation service."""
    async with running(nats_server.url, namespace, validation=False) as made:
        yield made


@pytest.fixture
def asking_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the truth asked for soon."""
    monkeypatch.setattr(decisions, "GET_AFTER_MS", (50,))


@contextlib.asynccontextmanager
async def validating(system: System) -> AsyncIterator[None]:
    service = ValidationService(system.connection, system.requester, system.settings)
    await service.start()
    try:
        yield
    finally:
        assert await service.stop()


async def intake(system: System) -> int:
    """How many messages were ever put into the intake."""
    info = await system.requester.api(f"STREAM.INFO.{system.subjects.stream('turns')}")
    return int(info["state"]["last_seq"])


async def has_stored(system: System, count: int = 1) -> bool:
    return await intake(system) >= count


@contextlib.asynccontextmanager
async def deaf(client: TurnClient, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """Lose what comes into a client's mailbox."""
    with monkeypatch.context() as patch:
        patch.setattr(client._decisions, "on_mail", lambda *_: None)
        yield


def counting_gets(client: TurnClient, monkeypatch: pytest.MonkeyPatch) -> list[decisions.Key]:
    """Return where each question of a client for the truth is noted from now on."""
    asked: list[decisions.Key] = []
    get = client._decisions._get

    def noted(key: decisions.Key, digest: str) -> Awaitable[m.TurnFound]:
        asked.append(key)
        return get(key, digest)

    monkeypatch.setattr(client._decisions, "_get", noted)
    return asked


# No verdict


async def test_without_a_service_a_report_is_stored_and_may_be_asked_for(idle: System):
    client = await idle.client()

    with pytest.raises(VerdictTimeout, match="it was stored: ask `get` later") as error:
        await client.submit_report("s", 1, DONE, timeout_ms=SOON_MS)

    assert error.value.stored is Stored.STORED
    assert error.value.code is ErrorCode.UNAVAILABLE
    assert error.value.details == {"stored": "stored"}
    assert await intake(idle) == 1


async def test_without_a_server_a_report_is_not_stored(own_server: EmbeddedServer, namespace: str):
    async with running(own_server.url, namespace, validation=False) as system:
        client = await system.client()
        await asyncio.to_thread(own_server.kill)
        await wait_until(lambda: not client.connection.is_connected, why="the client notices")

        with pytest.raises(VerdictTimeout, match="it is not stored: send it again") as error:
            await client.submit_report("s", 1, DONE, timeout_ms=SOON_MS)

        assert error.value.stored is Stored.NOT_STORED
        await asyncio.to_thread(own_server.start)


async def test_without_a_stream_a_report_is_not_stored(nats_server: EmbeddedServer, namespace: str):
    async with await TurnClient.connect("runner-1", url=nats_server.url, namespace=namespace) as client:
        with pytest.raises(VerdictTimeout) as error:
            await client.submit_report("s", 1, DONE, timeout_ms=SOON_MS)
    assert error.value.stored is Stored.NOT_STORED


async def test_a_confirmation_that_is_lost_leaves_it_unknown(idle: System, nats_server: EmbeddedServer):
    async with (
        Proxy.to(nats_server.port) as proxy,
        await TurnClient.connect("runner-1", url=proxy.url, namespace=idle.settings.namespace) as client,
    ):
        proxy.muted = True
        submitting = asyncio.create_task(client.submit_report("s", 1, DONE, timeout_ms=2_000))
        await wait_until(lambda: has_stored(idle), why="the stream has it")
        proxy.cut()

        with pytest.raises(VerdictTimeout, match="it may be stored: ask `get`, and send it again if") as error:
            await submitting

        assert error.value.stored is Stored.UNKNOWN


async def test_a_server_that_is_killed_after_it_confirmed_leaves_it_stored(own_server: EmbeddedServer, namespace: str):
    async with running(own_server.url, namespace, validation=False) as system:
        client = await system.client()
        submitting = asyncio.create_task(client.submit_report("s", 1, DONE, timeout_ms=3_000))
        await wait_until(lambda: has_stored(system), why="the stream has it")
        await wait_until(lambda: not client._requester._waiting, why="the client knows it")
        await asyncio.to_thread(own_server.kill)

        with pytest.raises(VerdictTimeout) as error:
            await submitting

        assert error.value.stored is Stored.STORED
        await asyncio.to_thread(own_server.start)


# A verdict all the same


async def test_a_verdict_whose_mail_is_lost_is_asked_for(
    system: System, asking_soon: None, monkeypatch: pytest.MonkeyPatch
):
    client = await system.client()
    async with deaf(client, monkeypatch):
        verdict = await client.submit_report("s", 1, DONE, mutated=True)
    assert verdict.outcome is Outcome.ACCEPTED


async def test_an_ending_whose_mail_is_lost_is_asked_for(
    system: System, asking_soon: None, monkeypatch: pytest.MonkeyPatch
):
    client = await system.client()
    async with deaf(client, monkeypatch):
        ended = await client.end_turn("s", 1, mutated=True)
    assert ended.outcome is EndingOutcome.REMINDER


async def test_a_refusal_whose_mail_is_lost_is_asked_for(
    system: System, asking_soon: None, monkeypatch: pytest.MonkeyPatch
):
    client = await system.client()
    await client.submit_report("s", 2, DONE, mutated=True)
    async with deaf(client, monkeypatch):
        with pytest.raises(Refusal) as error:
            await client.submit_report("s", 1, DONE, mutated=True)
    assert error.value.code is ErrorCode.SUPERSEDED


async def test_a_service_that_comes_back_judges_what_waited(
    idle: System, asking_soon: None, monkeypatch: pytest.MonkeyPatch
):
    client = await idle.client()
    asked = counting_gets(client, monkeypatch)
    submitting = asyncio.create_task(client.submit_report("s", 1, DONE, mutated=True))
    await wait_until(lambda: len(asked) == 3, why="the truth is asked for while nobody is there")
    assert await intake(idle) == 1, "nobody said that it is not known, so it was not published again"

    async with validating(idle):
        assert (await submitting).outcome is Outcome.ACCEPTED


async def test_a_service_that_restarts_judges_what_came_meanwhile(idle: System):
    client = await idle.client()
    async with validating(idle):
        await client.submit_report("s", 1, DONE, mutated=True)
    submitting = asyncio.create_task(client.submit_report("s", 2, DONE, mutated=True))
    await wait_until(lambda: has_stored(idle, 2), why="the report is stored")
    async with validating(idle):
        assert (await submitting).outcome is Outcome.ACCEPTED


async def test_a_submit_survives_a_server_that_restarts(own_server: EmbeddedServer, namespace: str):
    async with running(own_server.url, namespace) as system:
        client = await system.client()
        await asyncio.to_thread(own_server.kill)
        await wait_until(lambda: not client.connection.is_connected, why="the client notices")
        submitting = asyncio.create_task(client.submit_report("s", 1, DONE, mutated=True))
        await asyncio.to_thread(own_server.start)
        assert (await submitting).outcome is Outcome.ACCEPTED
        found = await client.get("s", 1, attempt=1)
        assert found.verdict is not None


# Publishing again


class Ignorant:
    """Answers `turn.get` as a service does that knows of nothing, once it is let."""

    def __init__(self, system: System) -> None:
        self.asked = 0
        self.silent = False
        self._system = system

    async def start(self) -> None:
        await self._system.connection.listen(self._system.subjects.api_endpoint("turn.get"), self._on_request)

    def _on_request(self, _subject: bytes, reply: bytes, _body: bytes, _head: bytes) -> None:
        self.asked += 1
        if self.silent:
            return
        body = b'{"code":"not_found","message":"not known"}'
        self._system.connection.send(reply.decode(), body, headers=b"NATS/1.0\r\nNats-Service-Error: x\r\n\r\n")


@pytest.fixture
async def ignorant(idle: System) -> Ignorant:
    made = Ignorant(idle)
    await made.start()
    return made


async def test_what_nobody_knows_is_published_again_ever_more_slowly(
    idle: System, ignorant: Ignorant, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(decisions, "GET_AFTER_MS", (50, 100, 200, 60_000))
    client = await idle.client()
    began = asyncio.get_running_loop().time()
    submitting = asyncio.create_task(client.submit_report("s", 1, DONE))

    await wait_until(lambda: has_stored(idle, 4), why="it is published again")

    assert asyncio.get_running_loop().time() - began >= 0.35
    assert ignorant.asked == 3
    submitting.cancel()
    await asyncio.gather(submitting, return_exceptions=True)
    assert await intake(idle) == 4


def test_the_waits_double_up_to_fifteen_seconds():
    assert decisions.GET_AFTER_MS == (2_000, 4_000, 8_000, 15_000)


async def test_a_nudge_that_comes_while_the_truth_is_asked_for_settles_at_once(
    idle: System, ignorant: Ignorant, asking_soon: None
):
    ignorant.silent = True
    client = await idle.client()
    submitting = asyncio.create_task(client.submit_report("s", 1, DONE, timeout_ms=4_000))
    await wait_until(lambda: ignorant.asked, why="the truth is asked for")

    refused = m.Refusal("T", 1, Refusal(ErrorCode.POOL_MISMATCH, "not yours").body(), "s", 1, 1)
    head = block({SCHEMA: m.SCHEMAS[m.Refusal]})
    idle.connection.send(idle.subjects.mailbox("runner-1", "refused"), codec.encode(refused), headers=head)

    with pytest.raises(Refusal) as error:
        await submitting
    assert error.value.code is ErrorCode.POOL_MISMATCH
    assert ignorant.asked == 1
