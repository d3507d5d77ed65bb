"""Waiting for an outcome: through lost nudges, lost connections and restarts, and never for something never asked."""

import asyncio

import pytest

from tests.running import System, running
from tests.services.validation.asking import SINGLE, ask, freeform, picks, structured
from tests.waiting import wait_until
from turngate.jetstream.embedded import EmbeddedServer
from turngate.runner import OutcomeTimeout, TurnClient, questions
from turngate_contracts.errors import ErrorCode, InvalidMessage, Refusal
from turngate_protocol.question import Outcome, OutcomeKind, Request, ToolCall, request_from_call, tool_result


async def waiting(client: TurnClient, request: Request, session: str = "s") -> "asyncio.Task[Outcome]":
    """A wait that has looked at the truth already, and now rests on its mailbox."""
    task = asyncio.create_task(client.wait(request, session))
    await client.questions.get(session)
    await asyncio.sleep(0)
    assert not task.done()
    return task


async def test_the_outcome_comes_by_mailbox(system: System):
    runner, person = await system.client(), await system.client("ann")
    request = await ask(runner)
    waits = await waiting(runner, request)

    await person.questions.resolve("s", request, answers=[picks("Disk")])

    outcome = await waits
    assert tool_result(outcome).content == '{"answers":[{"selections":["Disk"]}]}'


async def test_several_may_wait_for_the_same_question(system: System):
    runner, person = await system.client(), await system.client("ann")
    request = await ask(runner)
    several = [await waiting(runner, request) for _ in range(5)]

    decided = await person.questions.reject("s", request)

    assert [wait.by for wait in await asyncio.gather(*several)] == [decided.outcome.by] * 5


async def test_a_lost_nudge_only_takes_longer(system: System, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(questions, "POLL_S", 0.1)
    asking, person = await system.client("runner-1"), await system.client("ann")
    request = await ask(asking)
    other = await system.client("runner-2")  # its mailbox gets no nudge for the question of runner-1
    waits = await waiting(other, request)

    await person.questions.resolve("s", request, chat="Go on.")

    assert (await waits).by == "ann"


async def test_it_waits_through_a_restart_of_the_server(own_server: EmbeddedServer, namespace: str):
    async with running(own_server.url, namespace) as system:
        runner, person = await system.client(), await system.client("ann")
        request = await ask(runner)
        waits = await waiting(runner, request)

        await asyncio.to_thread(own_server.kill)
        await wait_until(lambda: not runner.connection.is_connected, why="the runner notices")
        await asyncio.to_thread(own_server.start)
        await person.questions.resolve("s", request, answers=[picks("Disk")])

        assert (await waits).by == "ann"


async def test_an_answer_while_nobody_listened_is_asked_for_on_reconnect(own_server: EmbeddedServer, namespace: str):
    async with running(own_server.url, namespace) as system:
        runner = await system.client()
        request = await ask(runner)
        waits = await waiting(runner, request)
        await asyncio.to_thread(own_server.restart)
        # The nudge may come before the runner is back, and then nobody hears it.
        person = await system.client("ann")

        await person.questions.resolve("s", request, answers=[picks("Memory")])

        assert (await waits).resolution is not None


async def test_a_new_client_gets_the_recorded_outcome_at_once(system: System):
    runner, person = await system.client(), await system.client("ann")
    request = await ask(runner)
    await runner.close()
    await person.questions.resolve("s", request, answers=[picks("Disk")])

    restarted = await system.client()

    assert (await restarted.wait(request.id, "s", timeout_ms=5_000)).by == "ann"


async def test_waiting_ends_in_time_and_may_begin_again(system: System):
    runner, person = await system.client(), await system.client("ann")
    request = await ask(runner)

    with pytest.raises(OutcomeTimeout) as error:
        await runner.wait(request, "s", timeout_ms=50)
    await person.questions.reject("s", request)

    assert request.id in error.value.message
    assert (await runner.wait(request, "s")).kind is OutcomeKind.CANCELLED


async def test_a_wait_that_is_given_up_leaves_nothing_behind(system: System):
    runner = await system.client()
    request = await ask(runner)
    waits = await waiting(runner, request)

    waits.cancel()
    await asyncio.gather(waits, return_exceptions=True)

    assert not runner.questions._waiting


@pytest.mark.parametrize("asks", [False, True], ids=["no-session", "another-question"])
async def test_waiting_for_what_was_never_asked_says_so(system: System, asks: bool):
    runner = await system.client()
    if asks:
        await ask(runner)

    with pytest.raises(Refusal) as error:
        await runner.wait(request_from_call("ask_user", "call-2", SINGLE), "s")

    assert error.value.code is ErrorCode.NO_PENDING


class TestReconciling:
    async def test_nothing_pending_is_nothing(self, system: System):
        assert await (await system.client()).reconcile([], "s") is None

    async def test_a_call_of_another_tool_is_left_to_its_owner(self, system: System):
        runner = await system.client()
        calls = [ToolCall("shell", "call-1", "{}"), structured("call-2")]
        assert await runner.reconcile(calls, "s") is None

    async def test_the_first_call_decides(self, system: System):
        runner = await system.client()
        request = await ask(runner)

        found = await runner.reconcile([structured(), freeform("call-2")], "s")

        assert found is not None
        assert found.pending is not None
        assert found.pending.request == request

    async def test_one_that_never_reached_the_service_is_asked_now(self, system: System):
        runner = await system.client()

        found = await runner.reconcile([freeform()], "s", turn=2)

        assert found is not None
        assert found.pending is not None
        assert found.pending.turn == 2

    async def test_one_that_can_not_be_read_is_denied_as_it_was(self, system: System):
        runner = await system.client()

        found = await runner.reconcile([ToolCall("ask_user", "call-1", "{}")], "s")

        assert found is not None
        assert found.denied is not None
        assert found.denied.offer == "ask_user_text"


async def test_a_tool_that_asks_nothing_never_leaves_the_client(system: System):
    with pytest.raises(InvalidMessage):
        await (await system.client()).ask(ToolCall("shell", "call-1", "{}"), "s")


async def test_mail_that_can_not_be_read_disturbs_nobody(system: System):
    runner, person = await system.client(), await system.client("ann")
    request = await ask(runner)
    waits = await waiting(runner, request)
    subject = system.subjects.mailbox("runner-1", "outcome")
    for body in (b"", b"hello", b'{"session": "s"}', b"[" * 1000):
        system.connection.send(subject, body)
    await system.connection.flush()

    await person.questions.resolve("s", request, chat="Go on.")

    assert (await waits).by == "ann"
