"""The delegated tasks of the demo: every kind of conclusion, and parents that were not told what they should be."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest_asyncio

from tests.running import System, running
from turngate.demo.delegating import POOL, Delegating, delegated, make_files, record
from turngate.jetstream.embedded import EmbeddedServer


@pytest_asyncio.fixture
async def concluding(nats_server: EmbeddedServer, namespace: str) -> AsyncIterator[System]:
    async with running(nats_server.url, namespace, conclusion=True) as made:
        yield made


async def told(system: System, root: Path) -> list[dict[str, Any]]:
    """What the parents are told of every task of the demo, as facts."""
    make_files(root)
    runner = await system.client("delegator", POOL)
    await runner.serve_stat([root])
    facts = []
    for task in delegated():
        await runner.finish_task(task.session, record(task, root))
        found = await runner.conclusion(task.session, task.task, wait_ms=20_000)
        facts.append({"kind": "told", "session": task.session, "text": found.state.message})
    return facts


async def test_every_conclusion_is_what_its_plot_says(concluding: System, tmp_path: Path):
    noted: list[str] = []
    delegating = Delegating(await concluding.client("you"), lambda *words: noted.append(" ".join(words)))
    for fact in await told(concluding, tmp_path):
        delegating.add(fact)

    await asyncio.wait_for(delegating.play(), 20)

    assert delegating.failures == []
    assert delegating.unfinished() == []
    assert delegating.summary() == {"count": 7, "failed": 1, "partial": 2, "success": 4, "parents_told": 7}
    assert all(note.isprintable() for note in noted), "a hostile conclusion must not reach the terminal as it is"


async def test_a_parent_that_was_told_twice_or_something_else_is_a_failure(concluding: System, tmp_path: Path):
    delegating = Delegating(await concluding.client("you"), lambda *_: None)
    facts = await told(concluding, tmp_path)
    for fact in [*facts[:1], *facts[:2], {**facts[2], "text": "something else"}, *facts[3:]]:
        delegating.add(fact)

    await asyncio.wait_for(delegating.play(), 20)

    assert delegating.failures == [
        "task task-1 of parent-honest: the parent was told 2 times",
        "task task-3 of parent-malformed: the parent was told 0 times",
    ]


async def test_parents_that_wait_are_told_of(concluding: System):
    delegating = Delegating(await concluding.client("you"), lambda *_: None)

    delegating.add({"kind": "error", "message": "delegator: no server"})

    assert delegating.unfinished() == ["7 of 7 tasks were not told to their parents"]
    assert delegating.failures == ["delegator: no server"]
