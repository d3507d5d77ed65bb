"""What the dead-letter service does: buries what is given up, and lets people retry and drop it."""

import asyncio
import contextlib
from collections import Counter
from functools import partial
from typing import Final

from tests.fundamentals.reports import DONE
from tests.system.faults.walk.scene import Scene
from tests.system.patience import PATIENCE_MS, patiently
from tests.waiting import wait_until
from turngate.jetstream.consume import ConsumeLoop, Delivery, OnDelivery
from turngate.jetstream.store import Event, Store
from turngate_contracts import codec
from turngate_contracts.dead import DeadDecided, DeadFound, DeadLetter, DeadPage, DropDead, GetDead, ListDead, RetryDead
from turngate_contracts.headers import SCHEMA, block
from turngate_contracts.messages import SCHEMAS, ReportSubmitted, wrap_report
from turngate_protocol.report.session import Prompt

TENTH_NS: Final = 100_000_000
POOL: Final = "pool-1"


async def prepare(scene: Scene) -> None:
    """A person, and a pool's consumer."""
    scene.notes |= {"person": await scene.runners.person(), "retried": [], "dropped": [], "kept": []}
    runner = await scene.runners.one("runner-1", POOL)
    for stream, config in scene.observer.topology.pool_consumers(POOL):
        wanted = {"stream_name": stream, "config": config}
        await scene.requester.api(f"CONSUMER.DURABLE.CREATE.{stream}.{config['durable_name']}", wanted)
    scene.notes["runner"] = runner


async def before(scene: Scene, tag: str) -> None:
    """Let the server give up two reports, and a runner end a prompt and a state that it can't use."""
    s = scene.subjects
    turns = s.stream("turns")
    await _take_retried(scene)
    await scene.consumer(turns, "validation", max_deliver=2, ack_wait=TENTH_NS)
    for name in ("again", "never"):
        raw, _ = wrap_report(codec.encode(DONE))
        report = ReportSubmitted(f"{tag}-{name}", 1, 1, "runner-1", POOL, report=raw)
        subject = s.turn_report("pool-1", "runner-1", f"{tag}-{name}")
        await scene.requester.publish(subject, codec.encode(report), block({SCHEMA: SCHEMAS[ReportSubmitted]}))
    await _given_up(scene, turns)
    prompt = Prompt(f"{tag}-prompt", f"{tag}-again", "Go on.", "service", 1)
    await scene.requester.publish(s.prompt(POOL, prompt.id), codec.encode(prompt), block({SCHEMA: SCHEMAS[Prompt]}))
    await _ended_unread(scene, s.stream("work"), s.prompt_consumer(POOL))
    store = Store(scene.requester, s, "questions", "count.v1")
    await store.save(f"{tag}-state", b"{}", 0, Event("x", 1, wants=True))
    await _ended_unread(scene, store.stream, "questions-reconciler")


async def usual(scene: Scene, tag: str) -> None:
    """People list what is dead, retry most of it and drop the rest."""
    person = scene.notes["person"]
    letters: dict[str, str] = {}

    async def all_dead() -> bool:
        page = await patiently(lambda: person.call("dead.list", ListDead(limit=1000), DeadPage))
        for entry in page.entries:
            for name in ("again", "never", "prompt", "state"):
                if entry.subject.endswith(f"{tag}-{name}"):
                    letters[name] = entry.letter
        return len(letters) == 4

    await wait_until(all_dead, 60, f"four messages of {tag} are dead")
    for name, letter in letters.items():
        await patiently(partial(person.call, "dead.get", GetDead(letter), DeadFound))
        request = DropDead(letter, "of no use") if name == "never" else RetryDead(letter, "once more")
        verb = "dead.drop" if name == "never" else "dead.retry"
        await person.call(verb, request, DeadDecided, timeout_ms=PATIENCE_MS)
        scene.notes["dropped" if name == "never" else "retried"].append((f"{tag}-{name}", letter))


async def before_refused(scene: Scene, tag: str) -> None:
    """Have letters refused from the start."""
    await before(scene, tag)
    scene.notes["refusing"] = refusing = contextlib.AsyncExitStack()
    await refusing.enter_async_context(scene.refusing(scene.subjects.stream("dead")))


async def refused(scene: Scene, tag: str) -> None:
    """Letters can be stored again only after a while."""
    await asyncio.sleep(0.5)
    await scene.notes["refusing"].aclose()
    await usual(scene, tag)


async def settled(scene: Scene) -> int:
    """Each message has one letter; what was retried stands where it belongs once, what was dropped nowhere."""
    s, observer = scene.subjects, scene.observer

    async def undone() -> list[str]:
        found = [m async for m in observer.messages(s.stream("dead"), s.dead_letters())]
        letters = [codec.decode(m.body, DeadLetter, "a DeadLetter") for m in found]
        assert len({letter.letter for letter in letters}) == len(letters), "a letter is there twice"
        assert len(letters) == len(scene.notes["retried"]) + len(scene.notes["dropped"]), "a letter too many or too few"
        return [letter.letter for letter in letters if letter.status not in ("retried", "dropped")]

    async def all_done() -> bool:
        return not await undone()

    await wait_until(all_done, 60, "every decision is carried out")
    await _take_retried(scene)
    wanted = Counter({name: 1 for name, _ in scene.notes["retried"]})
    # A state that is saved again is the same event, and whoever is given it twice does the same: only once counts.
    taken = Counter({name: 1 if name.endswith("-state") else times for name, times in scene.notes["taken"].items()})
    assert taken == wanted, f"retried and not taken: {wanted - taken}; taken more often: {taken - wanted}"
    return len(scene.notes["retried"]) + len(scene.notes["dropped"])


async def _take_retried(scene: Scene) -> None:
    """Do what services and runners would do with what was retried, and count it."""
    s = scene.subjects
    taken = scene.notes.setdefault("taken", Counter())

    def take(delivery: Delivery) -> None:
        taken[delivery.subject.rpartition(".")[2]] += 1
        delivery.ack()

    for stream, consumer in (
        (s.stream("turns"), "validation"),
        (s.stream("work"), s.prompt_consumer(POOL)),
        (s.bucket_stream("questions"), "questions-reconciler"),
    ):
        await deliver_all(scene, stream, consumer, take)


async def _given_up(scene: Scene, stream: str) -> None:
    """Take messages until the server delivers none of them any more."""
    await deliver_all(scene, stream, "validation", lambda delivery: delivery.drop())


async def _ended_unread(scene: Scene, stream: str, consumer: str) -> None:
    await deliver_all(scene, stream, consumer, lambda delivery: delivery.term("invalid_message"))


async def deliver_all(scene: Scene, stream: str, consumer: str, end: OnDelivery) -> None:
    """Take all that a consumer gives, ending each in one way, until it gives nothing more."""
    loop = ConsumeLoop(scene.observer.connection, stream, consumer, end)
    await loop.start()

    async def idle() -> bool:
        info = await scene.observer.consumer(stream, consumer)
        return not info["num_pending"] and not info["num_ack_pending"]

    await wait_until(idle, 20, f"{consumer} gives nothing more")
    await loop.stop()
