"""A runner may be gone, slow or hostile: the task still concludes, in time, and nothing false is believed."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec import Struct
from msgspec.structs import replace

from tests.running import System
from tests.services.conclusion.tasks import concluded, finished, judged, success
from tests.waiting import wait_until
from turngate_contracts import codec
from turngate_contracts.errors import ErrorBody, ErrorCode
from turngate_contracts.tasks import MAX_PATH_BYTES, MAX_STAT_BYTES, MAX_STAT_PATHS, PathsStated, StatPaths
from turngate_protocol.conclusion import RefState, StatAnswer

PRESENT = StatAnswer(RefState.PRESENT, 5, 1)
Send = Callable[[Struct | bytes], None]
Behaviour = Callable[[StatPaths, Send, int], None]


class Impostor:
    """Answers stat requests for a runner as a test wants; `behave` gets each request, its number and how to answer."""

    def __init__(self, system: System, behave: Behaviour) -> None:
        self.requests: list[StatPaths] = []
        self._system = system
        self._behave = behave

    @classmethod
    async def of(cls, system: System, behave: Behaviour) -> "Impostor":
        impostor = cls(system, behave)
        await system.connection.listen(system.subjects.runner_stat("runner-1"), impostor.on_request)
        return impostor

    def on_request(self, _subject: bytes, reply: bytes, body: bytes, _head: bytes) -> None:
        def send(message: Struct | bytes) -> None:
            failed = isinstance(message, ErrorBody)
            head = b"NATS/1.0\r\nNats-Service-Error: no\r\nNats-Service-Error-Code: 429\r\n\r\n" if failed else b""
            data = message if isinstance(message, bytes) else codec.encode(message)
            self._system.connection.send(reply.decode(), data, headers=head)

        self.requests.append(codec.decode(body, StatPaths, "a StatPaths"))
        self._behave(self.requests[-1], send, len(self.requests))


def all_present(request: StatPaths) -> PathsStated:
    return PathsStated(request.session, request.task, (PRESENT,) * len(request.paths))


async def test_a_runner_that_is_not_there_leaves_the_refs_unchecked_within_the_timeout(impatient: System):
    runner = await impatient.client()  # it serves no files
    loop = asyncio.get_running_loop()
    began = loop.time()

    await runner.finish_task("parent", finished("t1", success("/w/a", "/w/b", "https://example.org")))

    conclusion, gate = judged(await concluded(runner))
    assert loop.time() - began < 15
    assert conclusion.status == "success"
    assert gate.uncheckable_artifacts == ("/w/a", "/w/b", "https://example.org")
    assert gate.unanswered == 2
    assert "no answer about 2 of the cited refs" in conclusion.warnings[0]
    assert impatient.conclusion is not None
    assert impatient.conclusion.counters.silent_runners == 1


async def test_a_runner_that_hears_and_says_nothing_does_the_same(impatient: System):
    await Impostor.of(impatient, lambda request, send, number: None)
    runner = await impatient.client()

    await runner.finish_task("parent", finished("t1", success("/w/a")))

    assert judged(await concluded(runner))[1].unanswered == 1


async def test_an_answer_that_comes_too_late_changes_nothing(impatient: System):
    late: list[Callable[[], None]] = []

    def behave(request: StatPaths, send: Send, _number: int) -> None:
        missing = PathsStated(request.session, request.task, (StatAnswer(RefState.MISSING),))
        late.append(lambda: send(missing))

    await Impostor.of(impatient, behave)
    runner = await impatient.client()
    await runner.finish_task("parent", finished("t1", success("/w/a")))
    before = await concluded(runner)

    late[0]()
    await runner.finish_task("parent", finished("t2", "a task that is handled after it"))
    await concluded(runner, "t2")

    assert await concluded(runner) == before
    assert judged(before)[0].status == "success"


@pytest.mark.parametrize(
    "spoil",
    [
        lambda right: replace(right, task="other"),
        lambda right: replace(right, session="other"),
        lambda right: replace(right, answers=right.answers[:-1]),
        lambda right: replace(right, answers=(*right.answers, PRESENT)),
    ],
    ids=["another-task", "another-session", "one-too-few", "one-too-many"],
)
async def test_an_answer_that_is_not_about_this_task_is_ignored_and_the_right_one_counts(
    system: System, spoil: Callable[[PathsStated], PathsStated]
):
    def behave(request: StatPaths, send: Send, _number: int) -> None:
        send(spoil(all_present(request)))
        send(all_present(request))

    await Impostor.of(system, behave)
    runner = await system.client()

    await runner.finish_task("parent", finished("t1", success("/w/a", "/w/b")))

    assert judged(await concluded(runner))[1].verified_artifacts == ("/w/a", "/w/b")


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"rubbish",
        b"\xff",
        b"[" * 10_000,
        b'{"session": 1}',
        b'{"session":"parent","task":"t1","answers":[{"state":"maybe"}]}',
        ErrorBody(ErrorCode.INTERNAL, "the disk is on fire"),
    ],
    ids=["empty", "rubbish", "not-utf8", "nested", "wrong-type", "no-such-state", "error"],
)
async def test_an_answer_that_is_none_leaves_the_refs_unchecked(system: System, answer: Struct | bytes):
    await Impostor.of(system, lambda request, send, number: send(answer))
    runner = await system.client()

    await runner.finish_task("parent", finished("t1", success("/w/a")))

    conclusion, gate = judged(await concluded(runner))
    assert conclusion.status == "success"
    assert gate.unanswered == 1


async def test_a_busy_runner_is_asked_again(system: System):
    def behave(request: StatPaths, send: Send, number: int) -> None:
        send(ErrorBody(ErrorCode.OVERLOADED, "busy") if number == 1 else all_present(request))

    impostor = await Impostor.of(system, behave)
    runner = await system.client()

    await runner.finish_task("parent", finished("t1", success("/w/a")))

    assert judged(await concluded(runner))[1].verified_artifacts == ("/w/a",)
    assert len(impostor.requests) == 2


async def test_a_runner_that_comes_back_in_time_is_still_asked(system: System, root: Path):
    runner = await system.client()
    await runner.finish_task("parent", finished("t1", success("made.txt", "no.txt"), root))
    await wait_until(runner.conclusions, why="the service answers")

    await runner.serve_stat([root])

    _, gate = judged(await concluded(runner))
    assert (gate.verified_artifacts, gate.missing_artifacts) == (("made.txt",), ("no.txt",))


async def test_sizes_that_no_file_has_are_not_shown(system: System):
    absurd = b'{"session":"parent","task":"t1","answers":[{"state":"present","size":%s},{"state":"present","size":-1}]}'
    await Impostor.of(system, lambda request, send, number: send(absurd % (b"9" * 400)))
    runner = await system.client()

    await runner.finish_task("parent", finished("t1", success("/w/a", "/w/b")))

    state = await concluded(runner)
    assert "  - /w/a\n  - /w/b" in state.message


@pytest.mark.parametrize(("directory", "batches"), [("/w", 3), ("/" + "w" * 3_000, 27)], ids=["many", "long"])
async def test_paths_are_asked_about_in_batches_by_number_and_size(system: System, directory: str, batches: int):
    impostor = await Impostor.of(system, lambda request, send, number: send(all_present(request)))
    runner = await system.client()
    cited = [str(number) for number in range(2_300)]

    await runner.finish_task("parent", finished("t1", success(*cited), directory))

    _, gate = judged(await concluded(runner))
    assert gate.verified_artifacts == tuple(cited)
    assert len(impostor.requests) == batches
    assert max(len(request.paths) for request in impostor.requests) <= MAX_STAT_PATHS
    assert max(sum(map(len, request.paths)) for request in impostor.requests) <= MAX_STAT_BYTES


async def test_a_path_longer_than_any_is_not_asked_about(system: System):
    impostor = await Impostor.of(system, lambda request, send, number: send(all_present(request)))
    runner = await system.client()
    long = f"/{'x' * MAX_PATH_BYTES}"

    await runner.finish_task("parent", finished("t1", success("/w/a", long)))

    _, gate = judged(await concluded(runner))
    assert [request.paths for request in impostor.requests] == [("/w/a",)]
    assert (gate.uncheckable_artifacts, gate.unanswered) == ((long,), 0)


async def test_what_was_answered_before_a_runner_fell_silent_counts(impatient: System):
    def behave(request: StatPaths, send: Send, number: int) -> None:
        if number == 1:
            send(all_present(request))

    await Impostor.of(impatient, behave)
    runner = await impatient.client()

    await runner.finish_task("parent", finished("t1", success(*(f"/w/{number}" for number in range(1_500)))))

    _, gate = judged(await concluded(runner))
    assert (len(gate.verified_artifacts), gate.unanswered) == (1_000, 500)
