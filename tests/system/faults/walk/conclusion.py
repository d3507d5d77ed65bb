"""What the conclusion service does: takes tasks, asks for their evidence, tells their parents."""

import asyncio
from collections import Counter
from typing import Any

from tests.services.conclusion.tasks import concluded, finished, judged, success
from tests.system.faults.walk.scene import Scene
from tests.system.faults.walk.validation import deliver, poison_is_buried
from tests.system.patience import PATIENCE_MS, patiently
from turngate.jetstream.store import Store
from turngate.runner import TurnClient
from turngate_contracts import codec
from turngate_contracts.messages import SCHEMAS
from turngate_contracts.tasks import CheckMemoryRefs, MemoryRefsChecked
from turngate_protocol.conclusion.record import TaskConclusion, key_of, prompt_id

STORY = {f"conclusion.{what}": 1 for what in ("received", "downgraded", "prompt_sent")}


async def prepare(scene: Scene) -> None:
    """A runner with a file, and somebody who knows memories."""
    runner = await scene.runners.one("runner-1", "pool-1")
    root = scene.directory / scene.subjects.namespace
    root.mkdir()
    (root / "made.txt").write_text("made")
    await runner.serve_stat([root])

    async def known(message: Any) -> None:
        asked = codec.decode(message.data, CheckMemoryRefs, "a CheckMemoryRefs")
        await message.respond(codec.encode(MemoryRefsChecked(known=asked.refs)))

    await scene.observer.connection.subscribe(scene.subjects.memory_check(), cb=known)
    scene.notes |= {"runner": runner, "root": root, "tasks": [], "late": []}


async def usual(scene: Scene, tag: str) -> None:
    """A task from its end to the prompt of its parent; and again with other content, which changes nothing."""
    runner = await _tell(scene, tag)
    await _concluded(runner, tag)
    await patiently(runner.conclusions)
    await runner.finish_task("parent", finished(tag, success("other.txt"), scene.notes["root"]), timeout_ms=PATIENCE_MS)


async def alone(scene: Scene, tag: str) -> None:
    """The service that takes prompts is asked, and can't save: the parent is told later."""
    async with scene.refusing(scene.subjects.bucket_stream("turns")):
        runner = await _tell(scene, tag)
        await asyncio.sleep(2)
    await _concluded(runner, tag)


async def refused(scene: Scene, tag: str) -> None:
    """Nothing can be stored for a while."""
    async with scene.refusing(scene.subjects.bucket_stream("conclusions")):
        runner = await _tell(scene, tag)
        await asyncio.sleep(1)
    await _concluded(runner, tag)


async def spoiled(scene: Scene, tag: str) -> None:
    """What can't be read, and a task that was in hand too often to be trusted."""
    subject = scene.subjects.task_finished("pool-1", "runner-1", f"{tag}-bad")
    ack = await patiently(lambda: scene.requester.publish(subject, b'{"task":'))
    scene.notes.setdefault("poison", set()).add((ack.stream, ack.seq))
    await _concluded(await _tell(scene, tag), tag)


async def before_spoiled(scene: Scene, tag: str) -> None:
    """Have a task delivered some times before any service sees it."""
    await _tell(scene, f"{tag}-doubted")
    await deliver(scene, scene.subjects.stream("tasks"), "conclusion", 4)


async def settled(scene: Scene) -> int:
    """Each task went through each phase once, and each parent was told once."""
    runner, tasks = scene.notes["runner"], scene.notes["tasks"]
    for task in tasks:
        await _concluded(runner, task)
    await scene.observer.quiet()
    store = Store(scene.requester, scene.subjects, "conclusions", SCHEMAS[TaskConclusion])
    history = await scene.observer.history(store)
    assert sorted(history) == sorted(key_of("parent", task) for task in tasks)
    for key, revisions in history.items():
        states = [codec.decode(revision.body, TaskConclusion, "a state") for revision in revisions]
        happened = Counter(state.cause.type for state in states)
        assert happened.pop("conclusion.conflict", 0) <= 1, f"{key} has a conflict twice"
        assert happened == STORY, f"{key} went through {happened}"
        conclusion, gate = judged(states[-1])
        assert (conclusion.status, gate.missing_artifacts) == ("partial", ("invented.txt",)), key
    work = scene.subjects.stream("work")
    put_out = [m async for m in scene.observer.messages(work, scene.subjects.prompts("pool-1"))]
    told = sorted(message.subject.rpartition(".")[2] for message in put_out)
    assert told == sorted(prompt_id("parent", task) for task in tasks)
    await poison_is_buried(scene)
    return len(tasks)


async def _concluded(runner: TurnClient, task: str) -> None:
    """Wait until a task is settled, however long nobody answers."""
    await patiently(lambda: concluded(runner, task))


async def _tell(scene: Scene, task: str) -> TurnClient:
    runner: TurnClient = scene.notes["runner"]
    cited = success("made.txt", "invented.txt", memory_refs=("m-1",))
    scene.notes["tasks"].append(task)
    record = finished(task, cited, scene.notes["root"])
    await runner.finish_task("parent", record, timeout_ms=PATIENCE_MS)
    return runner
