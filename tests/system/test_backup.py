"""A backup that was taken under load, restored into another server: each bucket is its own replay, and work goes on."""

import asyncio
import json
import random
from pathlib import Path
from typing import Any

import pytest

from tests.fundamentals.reports import CARD
from tests.fundamentals.test_6_ask import CALL
from tests.system.load import Load
from tests.system.nothing_lost import assert_events_tell_all
from tests.system.observer import Observer
from tests.system.replay import replayed
from tests.system.runners import Runners
from tests.waiting import wait_until
from turngate.backup.create import create
from turngate.backup.manifest import Manifest
from turngate.backup.restore import restore
from turngate.jetstream.direct import Stored
from turngate.jetstream.embedded import EmbeddedServer
from turngate.jetstream.store import Store
from turngate.process import running
from turngate.runner import TurnClient
from turngate.settings import Settings
from turngate_contracts import codec
from turngate_contracts.topology import Durability
from turngate_protocol.report.session import Prompt, SessionTurns

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

SERVICES = ("validation", "conclusion", "supervisor", "deadletter")
BEFORE = 150
MEANWHILE = 100


async def test_a_backup_taken_under_load_restores_to_its_own_replay_and_the_services_go_on(
    own_server: EmbeddedServer, observer: Observer, runners: Runners, namespace: str, tmp_path: Path
):
    settings = Settings(nats_url=own_server.url, namespace=namespace, durability=Durability.RELAXED)
    person = await runners.person()
    async with running(settings, SERVICES):
        await person.objectives.create("objective", "make the tests pass", pool="nobody")
        await person.ask(CALL, "asking")
        async with Load(await runners.several(2), person, random.randrange(10**6), in_flight=16) as load:
            await load.reached(BEFORE)
            backup = asyncio.create_task(
                create(observer.requester, settings.topology(), tmp_path / "backup", lambda _stream, _size: None)
            )
            await load.goes_on(MEANWHILE)
            manifest = await backup
    original = {bucket: await observer.history(store) for bucket, store in _buckets(observer).items()}

    with EmbeddedServer(tmp_path / "restored", sync_always=False) as server:
        copy = await Observer.connect(server.url, namespace)
        try:
            await restore(copy.requester, settings.topology(), tmp_path / "backup", lambda _stream, _size: None)
            for bucket, store in _buckets(copy).items():
                assert _facts(await copy.history(store)) == _facts(_up_to(manifest, store.stream, original[bucket]))
            history = await copy.history(copy.turns)
            for session, revisions in history.items():
                replayed(session, revisions, load.ledger)
            await copy.assert_sequences_rise()

            there = Settings(nats_url=server.url, namespace=namespace, durability=Durability.RELAXED)
            async with running(there, SERVICES):
                await _assert_it_is_whole(copy, load)
                await _assert_it_goes_on(there, load, set(history))
            await copy.assert_sequences_rise()
        finally:
            await copy.close()


def _buckets(observer: Observer) -> dict[str, Store]:
    names = ("turns", "questions", "conclusions", "objectives")
    return {name: Store(observer.requester, observer.subjects, name, "") for name in names}


def _up_to(manifest: Manifest, stream: str, history: dict[str, list[Stored]]) -> dict[str, list[Stored]]:
    (last,) = (entry.last_sequence for entry in manifest.streams if entry.stream == stream)
    cut = {key: [r for r in revisions if r.sequence <= last] for key, revisions in history.items()}
    return {key: revisions for key, revisions in cut.items() if revisions}


def _facts(history: dict[str, list[Stored]]) -> dict[str, list[Any]]:
    """What is stored of each revision, headers and time included; but not how many come behind it."""
    return {
        key: [
            (r.sequence, r.body, {name: value for name, value in r.fields.items() if name != "Nats-Num-Pending"})
            for r in revisions
        ]
        for key, revisions in history.items()
    }


async def _assert_it_is_whole(copy: Observer, load: Load) -> None:
    """What the states want was done, and what waits for people is listed, whatever the streams were read before."""
    await copy.hasten()
    await copy.quiet()
    await copy.events_are_complete()
    history = await copy.history(copy.turns)
    await _assert_newest_is_the_replay(copy, load, history)
    assert_events_tell_all(history, await copy.events())
    entries, _, _ = await copy.inbox.page(0, 100_000)
    listed = [entry.key for entry in entries]
    assert "question.asking" in listed
    await _assert_cards_are_listed(copy, history)
    work = [s async for s in copy.messages(copy.subjects.stream("work"), f"{copy.subjects.namespace}.work.>")]
    prompts = [codec.decode(s.body, Prompt, "a Prompt").id for s in work if ".prompt." in s.subject]
    assert len(prompts) == len(set(prompts))
    assert any(".role.worker." in s.subject for s in work), "the objective's role is offered"
    wanted = {prompt.id for states in history.values() for r in states for prompt in _state(r).outgoing}
    assert wanted <= set(prompts), "a prompt that a state wanted is not there"


async def _assert_newest_is_the_replay(copy: Observer, load: Load, history: dict[str, list[Stored]]) -> None:
    """As for faults; but what was sent after the backup is unknown here."""
    newest = await copy.newest(copy.turns, history)
    for session, revisions in history.items():
        assert newest[session].value == codec.encode(replayed(session, revisions, load.ledger))


async def _assert_cards_are_listed(copy: Observer, history: dict[str, list[Stored]]) -> None:
    waiting = {session for session, revisions in history.items() if _state(revisions[-1]).waiting}
    entries, _, _ = await copy.inbox.page(0, 100_000, "card.*")
    assert {entry.key.removeprefix("card.") for entry in entries} == waiting


async def _assert_it_goes_on(there: Settings, load: Load, known: set[str]) -> None:
    """Whoever was told a verdict before the backup is told the same, and new turns are played."""
    client = await TurnClient.connect("runner-1", pool="pool-1", url=there.nats_url, namespace=there.namespace)
    async with client:
        again = 0
        for (session, turn, attempt), entry in load.ledger.reports.items():
            if entry.client.identity == client.identity and session in known and entry.verdict is not None:
                found = await client.get(session, turn, attempt=attempt)
                if found.verdict is not None:
                    assert (found.verdict.outcome, found.verdict.at) == (entry.verdict.outcome, entry.verdict.at)
                    again += 1
        assert again > 10
        verdict = await client.submit_report("after", 1, json.dumps(CARD), mutated=True)
        assert verdict.outcome == "accepted"

        async def listed() -> Any:
            return any(entry.session == "after" for entry in (await client.inbox(limit=1000, kind="card")).entries)

        await wait_until(listed, why="the new card is listed")


def _state(revision: Stored) -> SessionTurns:
    return codec.decode(revision.body, SessionTurns, "a state")
