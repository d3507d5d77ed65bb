"""Conclusions with real processes: each task is judged by its own host, and SIGKILL of anything changes nothing.

The conclusion service is killed at each step that a listener can see on the server: when a task or a state is
delivered to it, when it saves, asks, prompts and acknowledges. Whatever the step, there is one conclusion and one
prompt for the parent of each task.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest
import pytest_asyncio

from tests.services.conclusion.tasks import concluded, finished, judged, success
from tests.system.hosts import Hosts
from tests.system.observer import Observer
from tests.system.patience import PATIENCE_MS, patiently
from tests.system.processes import Fleet, ValidationProcess
from tests.system.runners import Runners
from tests.waiting import wait_until
from turngate.jetstream.connect import Connection
from turngate.jetstream.direct import Stored
from turngate.jetstream.embedded import EmbeddedServer
from turngate.jetstream.store import Store
from turngate.runner import TurnClient
from turngate_contracts import codec
from turngate_contracts.messages import SCHEMAS
from turngate_contracts.subjects import Subjects
from turngate_protocol.conclusion.record import ConclusionPhase, TaskConclusion, key_of, prompt_id

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

SETTLED_S = 120
PATIENT = "15000"
"""How long runners may take, in ms, where they do answer."""


@pytest_asyncio.fixture
async def hosts(own_server: EmbeddedServer, namespace: str, tmp_path: Path) -> AsyncIterator[Hosts]:
    """Makes runner processes, which have all ended when the test has."""
    made = Hosts(own_server.url, namespace, tmp_path)
    yield made
    await made.end()


async def test_the_same_ref_is_judged_on_the_host_of_its_task(fleet: Fleet, hosts: Hosts, runners: Runners):
    await fleet.start()
    await fleet.start(service="conclusion", TURNGATE_STAT_TIMEOUT_MS=PATIENT)
    one = await hosts.start("host-1", "result.txt")
    two = await hosts.start("host-2", "other.txt")
    cited = success("result.txt", f"{one.root}/result.txt")

    await one.tell("parent", finished("t1", cited, one.root))
    await two.tell("parent", finished("t2", cited, two.root))

    reader = await runners.person()
    conclusion, gate = judged(await concluded(reader, "t1"))
    assert (conclusion.status, gate.verified_artifacts) == ("success", ("result.txt", f"{one.root}/result.txt"))
    conclusion, gate = judged(await concluded(reader, "t2"))
    assert (conclusion.status, gate.missing_artifacts) == ("partial", ("result.txt",))
    assert gate.uncheckable_artifacts == (f"{one.root}/result.txt",)  # no root of this host holds it
    fleet.assert_no_crash_was_logged()


async def test_a_runner_killed_before_it_answers_leaves_its_task_concluded(
    fleet: Fleet, hosts: Hosts, runners: Runners, observer: Observer
):
    await fleet.start()
    await fleet.start(service="conclusion", TURNGATE_STAT_TIMEOUT_MS="1500")
    host = await hosts.start("host-1", "result.txt", deaf=True)
    asked = asyncio.Event()
    await observer.connection.listen(observer.subjects.runner_stat("host-1"), lambda *_: asked.set())

    await host.tell("parent", finished("t1", success("result.txt", "invented.txt"), host.root))
    await asked.wait()
    host.kill()

    conclusion, gate = judged(await concluded(await runners.person(), "t1"))
    assert conclusion.status == "success"
    assert gate.uncheckable_artifacts == ("result.txt", "invented.txt")
    assert gate.unanswered == 2
    assert "no answer about 2" in conclusion.warnings[0]
    fleet.assert_no_crash_was_logged()


class Point(NamedTuple):
    """Where to kill: a filter of what crosses the server, and which of that it is."""

    name: str
    subjects: str
    matches: Callable[[bytes, bytes], bool] = lambda _reply, _body: True


class Trap:
    """Kills a process when something crosses the server; it can be set again."""

    def __init__(self, process: ValidationProcess, connection: Connection) -> None:
        self._process = process
        self._connection = connection

    async def set(self, point: Point) -> Callable[[], Awaitable[None]]:
        """Kill the process at the next thing that matches; what is returned waits until it was killed."""
        killed = asyncio.Event()

        def on_message(_subject: bytes, reply: bytes, body: bytes, _head: bytes) -> None:
            if not killed.is_set() and point.matches(reply, body):
                self._process.kill()
                killed.set()

        listening = await self._connection.listen(point.subjects, on_message)
        await self._connection.flush()

        async def sprung() -> None:
            await asyncio.wait_for(killed.wait(), 60)
            # Whoever listens to a dead process's inbox keeps the server sending to it.
            await self._connection.unlisten(listening)

        return sprung


def points(subjects: Subjects) -> list[Point]:
    """Every step of a task that can be seen on the server, in their order."""
    tasks = f"$JS.ACK.{subjects.stream('tasks')}."
    states = f"$JS.ACK.{subjects.bucket_stream('conclusions')}."

    def delivered(acknowledgement: str) -> Callable[[bytes, bytes], bool]:
        return lambda reply, _body: reply.startswith(acknowledgement.encode())

    def saved(phase: ConclusionPhase) -> Callable[[bytes, bytes], bool]:
        return lambda _reply, body: codec.decode(body, TaskConclusion, "a state").phase is phase

    states_saved = subjects.key("conclusions", ">")
    return [
        Point("the task is delivered", "_INBOX.>", delivered(tasks)),
        Point("the task is saved", states_saved, saved(ConclusionPhase.RECEIVED)),
        Point("the task is acknowledged", f"{tasks}>"),
        Point("the state is delivered", "_INBOX.>", delivered(states)),
        Point("the runner is asked", subjects.runner_stat("runner-1")),
        Point("the verdict is saved", states_saved, saved(ConclusionPhase.JUDGED)),
        Point("the state is acknowledged", f"{states}>"),
        Point("the prompt is asked for", subjects.api_endpoint("turn.prompt")),
        Point("the prompt is put out", subjects.prompts("pool-1")),
        Point("the end is saved", states_saved, saved(ConclusionPhase.SETTLED)),
    ]


async def test_killed_at_any_step_there_is_one_conclusion_and_one_prompt(
    fleet: Fleet, runners: Runners, observer: Observer, tmp_path: Path
):
    await fleet.start()
    (process,) = await fleet.start(service="conclusion", TURNGATE_STAT_TIMEOUT_MS=PATIENT)
    runner = await a_runner(runners, tmp_path)
    trap = Trap(process, observer.connection)
    steps = points(observer.subjects)

    for number, step in enumerate(steps):
        sprung = await trap.set(step)
        task = finished(f"t{number}", success("made.txt", "invented.txt"), tmp_path, model=step.name)
        await runner.finish_task("parent", task)
        await sprung()
        process.start()
        await process.ready()

    assert process.kills == len(steps)
    await assert_each_once(observer, [f"t{number}" for number in range(process.kills)])
    fleet.assert_no_crash_was_logged()


async def test_killed_under_load_there_is_one_conclusion_and_one_prompt_for_each_task(
    fleet: Fleet, runners: Runners, observer: Observer, tmp_path: Path
):
    await fleet.start()
    processes = await fleet.start(2, service="conclusion", TURNGATE_STAT_TIMEOUT_MS=PATIENT)
    runner = await a_runner(runners, tmp_path)
    tasks = [f"t{number}" for number in range(80)]

    async def tell() -> None:
        for task in tasks:
            await runner.finish_task("parent", finished(task, success("made.txt", "invented.txt"), tmp_path))

    telling = asyncio.create_task(tell())
    chance = random.Random(7)
    for _ in range(4):
        process = chance.choice(processes)
        handled = await observed(observer, tasks)
        await wait_until(partial(_more, observer, tasks, handled), 60, "tasks go on")
        process.kill()
        process.start()
        await process.ready()
    await telling

    assert sum(process.kills for process in processes) == 4
    await assert_each_once(observer, tasks)
    fleet.assert_no_crash_was_logged()


async def test_a_server_killed_under_load_concludes_each_task_once(
    own_server: EmbeddedServer, fleet: Fleet, runners: Runners, observer: Observer, tmp_path: Path
):
    await fleet.start()
    await fleet.start(service="conclusion", TURNGATE_STAT_TIMEOUT_MS=PATIENT)
    runner = await a_runner(runners, tmp_path)
    tasks = [f"t{number}" for number in range(80)]

    async def tell() -> None:
        for task in tasks:
            cited = success("made.txt", "invented.txt")
            await runner.finish_task("parent", finished(task, cited, tmp_path), timeout_ms=PATIENCE_MS)

    telling = asyncio.create_task(tell())
    for _ in range(2):
        handled = await patiently(partial(observed, observer, tasks))
        await wait_until(partial(_more, observer, tasks, handled), 60, "tasks go on")
        await asyncio.to_thread(own_server.kill)
        await wait_until(lambda: not observer.connection.is_connected, why="clients notice that the server is gone")
        await asyncio.to_thread(own_server.start)
    await telling

    await assert_each_once(observer, tasks)
    fleet.assert_no_crash_was_logged()


async def a_runner(runners: Runners, root: Path) -> TurnClient:
    """A runner with a file, whose parent session waits for no answer."""
    runner = await runners.one("runner-1", "pool-1")
    (root / "made.txt").write_text("made")
    await runner.serve_stat([root])
    return runner


async def history(observer: Observer) -> dict[str, list[TaskConclusion]]:
    """Every revision of every conclusion."""
    store = Store(observer.requester, observer.subjects, "conclusions", SCHEMAS[TaskConclusion])
    found = await observer.history(store)
    return {key: [_state(stored) for stored in revisions] for key, revisions in found.items()}


async def observed(observer: Observer, tasks: list[str]) -> int:
    """How many of the tasks are settled."""
    found = await history(observer)
    newest = [found[key][-1].phase for task in tasks if (key := key_of("parent", task)) in found]
    return newest.count(ConclusionPhase.SETTLED)


async def _more(observer: Observer, tasks: list[str], than: int) -> bool:
    now = await patiently(partial(observed, observer, tasks))
    return now > than or now == len(tasks)


async def assert_each_once(observer: Observer, tasks: list[str]) -> None:
    """Wait until all tasks are settled; then each went through each phase once, and each parent was told once."""

    async def all_settled() -> bool:
        return await patiently(partial(observed, observer, tasks)) == len(tasks)

    await wait_until(all_settled, SETTLED_S, "every task is settled")
    found = await history(observer)
    assert sorted(found) == sorted(key_of("parent", task) for task in tasks)
    for key, revisions in found.items():
        phases = [state.phase for state in revisions]
        assert phases == [ConclusionPhase.RECEIVED, ConclusionPhase.JUDGED, ConclusionPhase.SETTLED], key
        conclusion, gate = judged(revisions[-1])
        assert conclusion.status == "partial"
        assert gate.missing_artifacts == ("invented.txt",)
    stream = observer.subjects.stream("work")
    put_out = [m async for m in observer.messages(stream, observer.subjects.prompts("pool-1"))]
    told = sorted(message.subject.rpartition(".")[2] for message in put_out)
    assert told == sorted(prompt_id("parent", task) for task in tasks)


def _state(stored: Stored) -> TaskConclusion:
    return codec.decode(stored.body, TaskConclusion, "a state")
