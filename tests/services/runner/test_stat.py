"""A runner answers for its files: many in one request, bounded, and never in the way of its other work."""

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
import pytest_asyncio
from msgspec import Struct

from tests.running import System, running
from tests.waiting import wait_until
from turngate.evidence import Evidence, RootUnusable
from turngate.jetstream.embedded import EmbeddedServer
from turngate.jetstream.request import NoResponders
from turngate.runner import TurnClient, stat
from turngate_contracts import codec
from turngate_contracts.errors import ErrorBody, ErrorCode
from turngate_contracts.tasks import MAX_STAT_BYTES, MAX_STAT_PATHS, PathsStated, StatPaths
from turngate_protocol.conclusion import RefState, StatAnswer


@pytest_asyncio.fixture
async def bare(nats_server: EmbeddedServer, namespace: str) -> AsyncIterator[System]:
    """The streams, and no service."""
    async with running(nats_server.url, namespace, validation=False) as made:
        yield made


@pytest_asyncio.fixture
async def runner(bare: System) -> TurnClient:
    return await bare.client()


async def ask(system: System, body: bytes | Struct, runner: str = "runner-1") -> PathsStated | ErrorBody:
    data = body if isinstance(body, bytes) else codec.encode(body)
    reply = await system.requester.request(system.subjects.runner_stat(runner), data)
    if "Nats-Service-Error-Code" in reply.headers()[1]:
        return codec.decode(reply.body, ErrorBody, "an error")
    return codec.decode(reply.body, PathsStated, "a PathsStated")


def states(found: PathsStated | ErrorBody) -> list[RefState]:
    assert isinstance(found, PathsStated), found
    return [answer.state for answer in found.answers]


async def test_one_request_asks_about_many_files(bare: System, runner: TurnClient, tmp_path: Path):
    (tmp_path / "a").write_text("a")
    await runner.serve_stat([tmp_path])

    found = await ask(bare, StatPaths("s", "t", (f"{tmp_path}/a", f"{tmp_path}/b", "/etc/passwd")))

    assert isinstance(found, PathsStated)
    assert (found.session, found.task) == ("s", "t")
    assert states(found) == [RefState.PRESENT, RefState.MISSING, RefState.UNCHECKABLE]
    assert found.answers[0].size == 1


async def test_hashes_are_given_when_they_are_asked_for(bare: System, runner: TurnClient, tmp_path: Path):
    (tmp_path / "a").write_text("a")
    await runner.serve_stat([tmp_path])

    for wanted in (True, False):
        found = await ask(bare, StatPaths("s", "t", (f"{tmp_path}/a",), hash=wanted))
        assert isinstance(found, PathsStated)
        assert (found.answers[0].hash is not None) is wanted


async def test_a_root_that_is_none_is_refused_at_once(runner: TurnClient):
    with pytest.raises(RootUnusable):
        await runner.serve_stat(["/no/such/directory"])


@pytest.mark.parametrize(
    "body", [b"", b"rubbish", b"\xff", b"[" * 10_000, b"{}", b'{"session":"s","task":"t","paths":7}']
)
async def test_a_request_that_is_none_gets_a_typed_error(bare: System, runner: TurnClient, tmp_path: Path, body: bytes):
    await runner.serve_stat([tmp_path])
    found = await ask(bare, body)
    assert isinstance(found, ErrorBody)
    assert found.code is ErrorCode.INVALID_MESSAGE
    assert states(await ask(bare, StatPaths("s", "t", (str(tmp_path),)))) == [RefState.PRESENT]


async def test_requests_are_bounded_in_number_and_size(bare: System, runner: TurnClient, tmp_path: Path):
    await runner.serve_stat([tmp_path])

    assert len(states(await ask(bare, StatPaths("s", "t", ("/x",) * MAX_STAT_PATHS)))) == MAX_STAT_PATHS
    too_many = await ask(bare, StatPaths("s", "t", ("/x",) * (MAX_STAT_PATHS + 1)))
    too_long = await ask(bare, StatPaths("s", "t", ("x" * MAX_STAT_BYTES, "x")))
    one = await ask(bare, StatPaths("s", "t", ("/" + "x" * 2 * MAX_STAT_BYTES,)))

    assert isinstance(too_many, ErrorBody)
    assert isinstance(too_long, ErrorBody)
    assert states(one) == [RefState.UNCHECKABLE]


async def test_a_slow_disk_delays_no_other_work_and_what_is_too_much_is_refused(
    bare: System, runner: TurnClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    going_on = threading.Event()

    def slow(_self: Evidence, paths: Sequence[str], *, hashes: bool = False) -> list[StatAnswer]:
        going_on.wait(30)
        return [StatAnswer(RefState.PRESENT)] * len(paths)

    monkeypatch.setattr(Evidence, "look", slow)
    monkeypatch.setattr(stat, "MAX_WAITING", 3)
    service = await runner.serve_stat([tmp_path])
    waiting = [asyncio.create_task(ask(bare, StatPaths("s", "t", ("/x",)))) for _ in range(3)]
    await wait_until(lambda: len(service._tasks) == 3, why="all of them wait")

    refused = await ask(bare, StatPaths("s", "t", ("/x",)))
    await runner.connection.flush()  # the connection is served meanwhile
    going_on.set()

    assert isinstance(refused, ErrorBody)
    assert refused.code is ErrorCode.OVERLOADED
    assert [states(found) for found in await asyncio.gather(*waiting)] == [[RefState.PRESENT]] * 3


async def test_a_mistake_of_ours_is_an_error_and_not_silence(
    bare: System, runner: TurnClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(Evidence, "look", broken)
    await runner.serve_stat([tmp_path])
    found = await ask(bare, StatPaths("s", "t", ("/x",)))
    assert isinstance(found, ErrorBody)
    assert found.code is ErrorCode.INTERNAL


async def test_a_service_that_was_stopped_answers_no_more(bare: System, runner: TurnClient, tmp_path: Path):
    service = await runner.serve_stat([tmp_path])
    await service.stop()
    with pytest.raises(NoResponders):
        await ask(bare, StatPaths("s", "t", ("/x",)))


async def test_a_question_without_a_reply_subject_is_nobody_s(bare: System, runner: TurnClient, tmp_path: Path):
    service = await runner.serve_stat([tmp_path])
    bare.connection.send(bare.subjects.runner_stat("runner-1"), codec.encode(StatPaths("s", "t", ("/x",))))
    await ask(bare, StatPaths("s", "t", ("/x",)))
    assert service.answered == 1
