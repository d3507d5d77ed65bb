"""Telling that a task ended: bounded at the edge, stored, and safe to repeat."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.running import System, running
from turngate.jetstream.embedded import EmbeddedServer
from turngate.runner import Stored
from turngate.runner.tasks import NotConcluded, TaskNotStored, bound
from turngate_contracts import codec
from turngate_contracts.errors import ErrorCode, Overloaded, Refusal
from turngate_contracts.tasks import TaskFinished
from turngate_protocol.conclusion import BYTE_LIMITS, MAX_OUTPUT_BYTES, Task, over_limits

TASK = Task("t1", "completed", output="done")


@pytest_asyncio.fixture
async def bare(nats_server: EmbeddedServer, namespace: str) -> AsyncIterator[System]:
    """The streams, and no service."""
    async with running(nats_server.url, namespace, validation=False) as made:
        yield made


async def test_a_stored_task_is_in_its_stream_as_it_was_told(bare: System):
    client = await bare.client()

    stored = await client.finish_task("parent", TASK)

    assert (stored.session, stored.task, stored.output_cut) == ("parent", "t1", 0)
    subject = bare.subjects.task_finished("pool-1", "runner-1", "parent")
    reply = await bare.requester.request(f"$JS.API.DIRECT.GET.{bare.subjects.stream('tasks')}.{subject}")
    assert codec.decode(reply.body, TaskFinished, "a TaskFinished") == TaskFinished(
        "parent", "runner-1", "pool-1", TASK
    )


async def test_a_full_intake_is_told(bare: System):
    stream = bare.subjects.stream("tasks")
    info = await bare.requester.api(f"STREAM.INFO.{stream}")
    await bare.requester.api(f"STREAM.UPDATE.{stream}", {**info["config"], "max_msgs": 1})
    client = await bare.client()
    await client.finish_task("parent", TASK)

    with pytest.raises(Overloaded) as error:
        await client.finish_task("parent", TASK, timeout_ms=400)

    assert error.value.retry_after_ms == 5_000


async def test_without_a_server_it_gives_up_in_time(own_server: EmbeddedServer, namespace: str):
    async with running(own_server.url, namespace, validation=False) as system:
        client = await system.client()
        own_server.kill()
        with pytest.raises(TaskNotStored) as error:
            await client.finish_task("parent", TASK, timeout_ms=600)
        assert error.value.stored is not Stored.STORED
        own_server.start()


async def test_a_server_that_comes_back_stores_what_waited(own_server: EmbeddedServer, namespace: str):
    async with running(own_server.url, namespace, validation=False) as system:
        client = await system.client()
        own_server.kill()
        telling = asyncio.create_task(client.finish_task("parent", TASK, timeout_ms=60_000))

        own_server.start()

        assert (await telling).task == "t1"


async def test_waiting_for_a_conclusion_ends_in_time(bare: System, monkeypatch: pytest.MonkeyPatch):
    client = await bare.client()

    async def nobody(*_: object) -> None:
        raise Refusal(ErrorCode.NOT_FOUND, "not known")

    monkeypatch.setattr(client.tasks._calls, "call", nobody)
    with pytest.raises(NotConcluded):
        await client.conclusion("parent", "t1", wait_ms=120)


class TestBounding:
    def test_what_fits_stays_as_it_is(self):
        task = Task("t1", "completed", prompt="p", output="o", output_tail="t", error="e")
        assert bound(task) == task

    def test_the_ends_of_outputs_and_the_starts_of_others_are_kept(self):
        long = "start" + "x" * 10**6 + "end"

        kept = bound(Task("t1", "completed", prompt=long, output=long, output_tail=long, error=long))

        assert kept.output.endswith("xend")
        assert kept.output_tail.endswith("xend")
        assert kept.prompt.startswith("startx")
        assert kept.error.startswith("startx")
        assert over_limits(kept) == ()

    def test_no_character_is_cut_in_two(self):
        kept = bound(Task("t1", "completed", output="é€😀" * 200_000))
        assert "\ufffd" not in kept.output

    @settings(max_examples=100, deadline=None)
    @given(st.text(alphabet='a\x00"\\é\u2028😀\ud800', min_size=1, max_size=30), st.integers(1, 60_000))
    def test_every_output_fits_as_it_is_and_as_json(self, piece: str, times: int):
        output = piece * times

        kept = bound(Task("t1", "completed", output=output)).output

        assert len(kept.encode()) <= MAX_OUTPUT_BYTES
        assert len(codec.encode(kept)) - 2 <= MAX_OUTPUT_BYTES
        assert output.replace("\ud800", "\ufffd").endswith(kept)

    def test_names_are_left_to_be_refused(self):
        assert over_limits(bound(Task("t1", "completed", engine="e" * 300)))[0].field == "engine"
        assert BYTE_LIMITS["engine"] == 256
