"""What the supervisor does: objectives through worker, critic and audit, commands, beats, timers, and lost runners."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

from tests import esm_answers as answers
from tests.system.esm_serial import problems
from tests.system.faults.walk.scene import Scene
from tests.system.faults.walk.validation import deliver, poison_is_buried
from tests.system.patience import PATIENCE_MS, patiently
from tests.waiting import wait_until
from turngate.jetstream.direct import read_newest
from turngate.jetstream.store import Store
from turngate.runner import TurnClient
from turngate.runner.adapters.scripted import ScriptedAdapter
from turngate.runner.host import RunnerHost
from turngate_contracts import codec
from turngate_contracts.errors import Refusal
from turngate_contracts.esm import (
    ClaimRole,
    ObjectiveFound,
    ReleaseRole,
    RoleClaimed,
    RoleEnded,
    RoleOffer,
    RoleReleased,
)
from turngate_contracts.headers import SCHEMA, block
from turngate_contracts.messages import SCHEMAS
from turngate_protocol.esm.continuation import wants
from turngate_protocol.esm.effects import DispatchRole
from turngate_protocol.esm.state import EsmState

POOL: Final = "pool-1"
HANDS: Final = "hands"
"""A pool whose runners are played by hand."""
CROWD: Final = 40
_QUICK: Final = {"delay_ms": 20}
_TALKS: Final = {"delay_ms": 500, "progress": ["I look", "I write"]}
SCENARIOS: Final[dict[str, Any]] = {
    "done-*": [
        {"worker": answers.WORKS | _TALKS, "critic": answers.PASSES, "audit": answers.PASSES},
        {"worker": answers.CLAIMS | _QUICK, "critic": answers.PASSES, "audit": answers.PASSES},
    ],
    "slow-*": [
        {"worker": answers.CLAIMS | _TALKS, "critic": answers.FAILS, "audit": answers.PASSES},
        {"worker": answers.CLAIMS | _QUICK, "critic": answers.PASSES, "audit": answers.PASSES},
    ],
    "hang-*": [{"worker": answers.HANGS, "recovery": answers.RESUMES}],
    "blocked-*": [{"worker": answers.BLOCKS, "critic": answers.PASSES, "audit": answers.PASSES}],
}


async def prepare(scene: Scene) -> None:
    """A host with scripted agents, a person, and a runner that is played by hand."""
    host = RunnerHost(
        "runner-1",
        ScriptedAdapter(SCENARIOS),
        pools=(POOL,),
        slots=8,
        beat_s=0.2,
        drain_ms=500,
        url=scene.url,
        namespace=scene.subjects.namespace,
    )
    await host.start()
    person, hand = await scene.runners.one("ann", POOL), await scene.runners.one("hand-1", HANDS)
    scene.notes |= {"host": host, "person": person, "hand": hand, "done": [], "cleared": []}


async def finish(scene: Scene) -> None:
    """Stop the host."""
    await scene.notes["host"].stop()


async def usual(scene: Scene, tag: str) -> None:
    """Objectives that end well, wait for a person, are stopped, and are lost."""
    await asyncio.gather(
        _done(scene, f"done-{tag}"),
        _hangs(scene, f"hang-{tag}"),
        _blocked(scene, f"blocked-{tag}"),
        _asked(scene),
    )


async def spoiled(scene: Scene, tag: str) -> None:
    """What can't be read, in each queue."""
    s = scene.subjects
    for subject in (
        *(s.esm_result("runner-1", f"{tag}-bad"), s.esm_start(f"{tag}-bad")),
        *(s.timer_due(kind, f"{tag}-bad") for kind in ("continuation", "watchdog")),
    ):
        ack = await patiently(partial(scene.requester.publish, subject, b'{"session":'))
        scene.notes.setdefault("poison", set()).add((ack.stream, ack.seq))
    await _done(scene, f"done-{tag}")


async def before_spoiled(scene: Scene, tag: str) -> None:
    """Have a result delivered some times before any service sees it; its objective does not exist."""
    ended = RoleEnded(f"{tag}-doubted", "hand-1", "run-1-worker", 1, "c1", response=answers.CONTINUE)
    subject = scene.subjects.esm_result("hand-1", f"{tag}-doubted")
    await scene.requester.publish(subject, codec.encode(ended), block({SCHEMA: SCHEMAS[RoleEnded]}))
    await deliver(scene, scene.subjects.stream("esm"), "supervisor", 4)


async def refused(scene: Scene, tag: str) -> None:
    """Nothing can be stored for a while: offers, then a result, then the next continuation."""
    session = f"slow-{tag}"
    async with scene.refusing(scene.subjects.stream("work")):
        await _create(scene, session)
        await asyncio.sleep(0.5)
    states = scene.subjects.bucket_stream("objectives")
    await _until(scene, session, _is_claimed)
    async with scene.refusing(states):
        await asyncio.sleep(1)
    await _until(scene, session, lambda found: found.state.continuation is None)
    async with scene.refusing(states):
        await asyncio.sleep(1.5)
    await _completes(scene, session)


async def crowd(scene: Scene, tag: str) -> None:
    """Many objectives at once, so that they are saved together where the server syncs each write."""
    sessions = [f"crowd-{tag}-{number}" for number in range(CROWD)]
    await asyncio.gather(*(_create(scene, session, HANDS) for session in sessions))
    await asyncio.gather(*(_clear(scene, session) for session in sessions))


async def lost(scene: Scene, tag: str) -> None:
    """A role run is given back and offered anew, and then lost."""
    await _lost(scene, f"lost-{tag}")


async def settled(scene: Scene) -> int:
    """Each objective has the end that it should, and a history that one process alone could have made."""
    person: TurnClient = scene.notes["person"]
    for session in scene.notes["done"]:
        await _completes(scene, session)
    await _quiet(scene)
    for session in (*scene.notes["done"], *scene.notes["cleared"]):
        found = await patiently(partial(person.objectives.get, session))
        history = [cause async for cause in person.objectives.history(session)]
        wrong = problems(found.state, history)
        assert wrong == [], f"{session}: {wrong}\n" + "\n".join(map(str, history))
        if session in scene.notes["done"]:
            assert found.state.objective is not None
        else:
            assert found.state.objective is None, f"{session} was cleared"
    entries, _, _ = await scene.observer.inbox.page(0, 1000)
    assert entries == [], f"nobody waits, and the inbox lists {[entry.key for entry in entries]}"
    await poison_is_buried(scene)
    return len(scene.notes["done"]) + len(scene.notes["cleared"])


async def _quiet(scene: Scene) -> None:
    """Wait until every result and every timer was taken; watchdogs of what goes on stay."""

    async def taken() -> bool:
        info = await scene.observer.stream(scene.subjects.stream("esm"))
        return int(info["state"]["messages"]) == 0

    await wait_until(taken, 60, "every result was taken")


async def _done(scene: Scene, session: str) -> None:
    await _create(scene, session)
    await _completes(scene, session)


async def _create(scene: Scene, session: str, pool: str = POOL) -> None:
    person: TurnClient = scene.notes["person"]
    text = f"Objective {session}"
    await patiently(lambda: person.objectives.create(session, text, pool=pool, op=f"create-{session}"))
    if session.startswith(("done-", "slow-")):
        scene.notes["done"].append(session)


async def _completes(scene: Scene, session: str) -> None:
    await _until(scene, session, lambda f: f.state.objective is not None and f.state.objective.status == "complete")


async def _hangs(scene: Scene, session: str) -> None:
    person: TurnClient = scene.notes["person"]
    do = person.objectives
    await _create(scene, session)
    await _until(scene, session, _is_claimed)
    await patiently(lambda: do.guide(session, "Look at the tests.", op=f"guide-{session}"))
    await patiently(lambda: do.edit(session, "Another text", op=f"edit-{session}"))
    await _until(scene, session, _is_claimed)
    await patiently(lambda: do.pause(session, op=f"pause-{session}"))
    await patiently(lambda: do.resume(session, op=f"resume-{session}"))
    await patiently(lambda: do.configure(session, pool=POOL, op=f"configure-{session}"))
    await _may_be_refused(lambda: do.run(session, op=f"run-{session}"))
    await _may_be_refused(lambda: do.update(session, "blocked", "no key", op=f"update-{session}"))
    await _clear(scene, session)


async def _blocked(scene: Scene, session: str) -> None:
    await _create(scene, session)
    await _until(scene, session, lambda f: f.state.objective is not None and f.state.objective.status == "blocked")

    async def listed() -> bool:
        entries, _, _ = await scene.observer.inbox.page(0, 1000)
        return any(entry.key == f"objective.{session}" for entry in entries)

    await wait_until(listed, 60, f"{session} waits in the inbox")
    await _clear(scene, session)


async def _lost(scene: Scene, session: str) -> None:
    """A role run that is claimed, given back, claimed again, and never heard of again."""
    hand: TurnClient = scene.notes["hand"]
    await _create(scene, session, HANDS)
    for number in (1, 2):
        offer = await _offered(scene, session)
        claim = f"{session}-{number}"
        asked = ClaimRole(session, offer.role_run_id, offer.generation, claim)
        try:
            await hand.call("role.claim", asked, RoleClaimed, timeout_ms=PATIENCE_MS, pool=HANDS)
        except Refusal:
            continue  # it was lost already, between a claim and its repeat
        if number == 1:
            released = ReleaseRole(session, offer.role_run_id, offer.generation, claim)
            await hand.call("role.release", released, RoleReleased, timeout_ms=PATIENCE_MS)
            await _offered_anew(scene, offer)
    await _until(scene, session, lambda found: not _is_claimed(found))
    await _clear(scene, session)


async def _clear(scene: Scene, session: str) -> None:
    person: TurnClient = scene.notes["person"]
    await patiently(lambda: person.objectives.clear(session, op=f"clear-{session}"))
    scene.notes["cleared"].append(session)


async def _offered(scene: Scene, session: str) -> DispatchRole:
    """Wait until a state offers a role run, and return it."""

    async def offers() -> list[DispatchRole]:
        return [effect for effect in wants(await _state(scene, session)) if isinstance(effect, DispatchRole)]

    return (await wait_until(offers, 60, f"{session} offers a role"))[-1]


async def _offered_anew(scene: Scene, first: DispatchRole) -> None:
    """Wait until the offer of a role run that was given back is a newer one."""
    s = scene.subjects
    subject = s.role_offer(HANDS, first.role.value, first.role_run_id)
    seen: set[int] = set()

    async def is_newer() -> bool:
        for stored in await patiently(partial(read_newest, scene.requester, s.stream("work"), [subject])):
            seen.add(codec.decode(stored.body, RoleOffer, "a RoleOffer").revision)
        state = await _state(scene, first.session_id)
        return max(seen, default=0) >= state.revision or bool(state.continuation is None)

    await wait_until(is_newer, 60, f"{first.role_run_id} is offered anew")


async def _state(scene: Scene, session: str) -> EsmState:
    store = Store(scene.requester, scene.subjects, "objectives", "")
    entry = await patiently(lambda: store.load(session))
    return codec.decode(entry.value, EsmState, "a state") if entry.value else EsmState(session)


async def _until(scene: Scene, session: str, holds: Any) -> None:
    person: TurnClient = scene.notes["person"]

    async def is_so() -> bool:
        found = await patiently(lambda: person.objectives.get(session))
        return bool(holds(found))

    await wait_until(is_so, 60, f"{session} gets on")


def _is_claimed(found: ObjectiveFound) -> bool:
    going = found.state.continuation
    return going is not None and going.role_run is not None and bool(going.role_run.claim_id)


async def _may_be_refused(ask: Callable[[], Awaitable[object]]) -> None:
    with contextlib.suppress(Refusal):
        await patiently(ask)


async def _asked(scene: Scene) -> None:
    """What only reads."""
    person: TurnClient = scene.notes["person"]
    await patiently(person.objectives.page)
    await patiently(person.objectives.runners)
