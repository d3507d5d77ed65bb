"""Walking: one lane of points after the other, some lanes at once."""

import asyncio
import contextlib
import logging
import random
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from tests.system.faults.findings import Findings
from tests.system.faults.nurslings import Nursery, Nursling
from tests.system.faults.walk.scene import Scene, scene
from tests.system.faults.walk.table import Walk, Way
from tests.waiting import wait_until
from turngate.jetstream.crash import CRASHED, VARIABLE

REACHED_S: Final = 25
"""How long a process may take to come to its point."""
FLOW_S: Final = 90


class Lane(Struct, frozen=True):
    """Points of one service that are walked in one namespace, one after the other."""

    walk: Walk
    points: Sequence[tuple[Way, str]]


async def walk_lanes(
    lanes: Sequence[Lane], url: str, directory: Path, at_once: int
) -> tuple[Findings, dict[str, set[str]]]:
    """Walk lanes, so many at once; returns what was found, and the effects that each service was seen to have."""
    slots = asyncio.Semaphore(at_once)
    reached: dict[str, set[str]] = {}
    logging.getLogger("turngate.runner").setLevel(logging.ERROR)  # runners are told that nobody answers
    async with Nursery(directory) as nursery:

        async def one(lane: Lane) -> Findings:
            async with slots:
                return await _walk(lane, nursery, url, directory, reached)

        found = await asyncio.gather(*map(one, lanes))
    return Findings.sum(found), reached


async def _walk(lane: Lane, nursery: Nursery, url: str, directory: Path, reached: dict[str, set[str]]) -> Findings:
    walk = lane.walk
    async with scene(nursery, url, f"t{uuid.uuid4().hex[:8]}", directory) as here:
        beside = [await here.clean(service) for service in walk.beside]
        if hasattr(walk.module, "prepare"):
            await walk.module.prepare(here)
        problems: list[str] = []
        for number, (way, point) in enumerate(lane.points):
            try:
                await _cycle(here, walk.service, way, point, f"w{number}")
            except Exception as error:  # noqa: BLE001  the walk goes on: what else is wrong is worth knowing
                problems.append(f"{walk.service} at {point}: {error!r}")
        process = await here.clean(walk.service)
        acknowledged = 0
        try:
            acknowledged = await walk.module.settled(here)
        except Exception as error:  # noqa: BLE001  the other lanes go on
            problems.append(f"{walk.service} after {[point for _, point in lane.points]}: {error!r}")
        await here.drain(process)
        if hasattr(walk.module, "finish"):
            await walk.module.finish(here)
        for other in beside:
            await here.drain(other)
        reached.setdefault(walk.service, set()).update(here.reached)
        return Findings(acknowledged=acknowledged + len(lane.points), problems=tuple(problems))


async def _cycle(here: Scene, service: str, way: Way, point: str, tag: str) -> None:
    """End one process at a point of its flow, and have a clean one bring the flow to its end."""
    began = time.monotonic()
    if way.before is not None:
        await way.before(here, tag)
    given = {name: value.format(namespace=here.subjects.namespace, tag=tag) for name, value in way.variables.items()}
    doomed = await here.start(service, **given, **{VARIABLE: point})
    await wait_until(lambda: doomed.ready or doomed.exit is not None, REACHED_S, "it is ready or has ended")
    flow = asyncio.create_task(way.flow(here, tag))
    try:
        await _ends_there(doomed, flow)
    finally:
        here.note_reached(doomed)
        if doomed.exit is None:
            await here.drain(doomed)
    clean = await here.clean(service)
    async with asyncio.timeout(FLOW_S):
        try:
            await flow
        except TimeoutError:
            raise AssertionError(f"its flow hangs after {FLOW_S} s") from None
    await here.drain(clean)
    print(f"{service} {point}: {time.monotonic() - began:.1f} s")


async def _ends_there(doomed: Nursling, flow: "asyncio.Task[None]") -> None:
    try:
        code = await doomed.ended(REACHED_S)
    except AssertionError:
        with contextlib.suppress(asyncio.CancelledError):
            if flow.done() and flow.exception() is not None:
                raise AssertionError(f"its flow failed: {flow.exception()!r}") from None
        raise AssertionError(f"the point was not reached in {REACHED_S} s: {doomed.log()[-1500:]}") from None
    assert code == CRASHED, f"it ended with {code}: {doomed.log()[-1500:]}"


def shuffled(points: Sequence[tuple[Way, str]], lanes: int, seed: int) -> list[list[tuple[Way, str]]]:
    """Deal points out to lanes, in an order drawn from a seed."""
    order = list(points)
    random.Random(seed).shuffle(order)
    return [order[n::lanes] for n in range(lanes) if order[n::lanes]]
