"""What nobody handles any more is found: by the server's advisories, and by the reaper where there are none."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from msgspec.structs import replace

from tests.running import System, running
from tests.services.deadletter.letters import (
    RUNNER,
    configure_intake,
    deliver,
    intake,
    letters_of,
    publish_report,
)
from tests.waiting import wait_until
from turngate.clock import system_clock
from turngate.deadletter.adoption import adopt
from turngate.deadletter.advisories import exhausted
from turngate.deadletter.burial import Burial
from turngate.deadletter.letters import Letters
from turngate.deadletter.places import Places
from turngate.deadletter.reaper import MOST_MOVES, Consumer, Reaper
from turngate.deadletter.retrying import Retrying, finish_all
from turngate.jetstream.consume import ConsumeLoop, Delivery
from turngate.jetstream.deadletter import DeadLetters
from turngate.jetstream.embedded import EmbeddedServer
from turngate.jetstream.provision import ensure_consumer
from turngate.validation.service import ValidationService
from turngate_contracts import codec
from turngate_contracts import headers as h
from turngate_contracts.dead import DeadLetter, FoundBy, LetterStatus
from turngate_contracts.errors import ErrorBody, ErrorCode
from turngate_contracts.messages import SCHEMAS, ReportSubmitted
from turngate_contracts.topology import VALIDATION
from turngate_protocol.report.session import Prompt


@pytest.fixture
async def idle(nats_server: EmbeddedServer, namespace: str) -> AsyncIterator[System]:
    """A provisioned namespace in which only the dead-letter service runs."""
    async with running(nats_server.url, namespace, validation=False, deadletter=True) as made:
        yield made


@pytest.fixture
async def bare(nats_server: EmbeddedServer, namespace: str) -> AsyncIterator[System]:
    """A provisioned namespace without services."""
    async with running(nats_server.url, namespace, validation=False) as made:
        yield made


def reaper_of(system: System) -> Reaper:
    places = Places(system.requester, system.settings.topology())
    return Reaper(system.requester, Burial(DeadLetters(system.requester, system.subjects, system_clock()), places))


# By advisory


async def test_an_exhausted_message_is_buried_with_its_origin_and_leaves_its_queue(idle: System):
    await configure_intake(idle, max_deliver=2, ack_wait=100_000_000)
    sequence = await publish_report(idle)

    await deliver(idle, 2)

    (letter,) = await wait_until(lambda: letters_of(idle), why="it is buried")
    assert (letter.reason.code, letter.found_by, letter.deliveries) == (ErrorCode.EXHAUSTED, FoundBy.ADVISORY, 2)
    assert (letter.stream, letter.sequence) == (idle.subjects.stream("turns"), sequence)
    assert letter.subject == idle.subjects.turn_report("pool-1", RUNNER, "s1")
    assert letter.consumer == VALIDATION
    assert codec.decode(letter.body, ReportSubmitted, "a ReportSubmitted").session == "s1"
    await wait_until(lambda: _is_empty(idle), why="it has left the queue")


async def test_what_a_runner_ends_unread_is_buried_and_keeps_its_subject(idle: System):
    subject = idle.subjects.prompt("pool-1", "p1")
    for stream, config in idle.settings.topology().pool_consumers("pool-1"):
        await ensure_consumer(idle.requester, stream, config)
    await idle.requester.publish(subject, b"no prompt")

    def end(delivery: Delivery) -> None:
        delivery.term("invalid_message")

    loop = ConsumeLoop(idle.connection, idle.subjects.stream("work"), idle.subjects.prompt_consumer("pool-1"), end)
    await loop.start()

    (letter,) = await wait_until(lambda: letters_of(idle), why="it is buried")
    assert (letter.reason.code, letter.body) == (ErrorCode.INVALID_MESSAGE, b"no prompt")
    assert (letter.stream, letter.subject) == (idle.subjects.stream("work"), subject)
    info = await idle.requester.api(f"STREAM.INFO.{letter.stream}")
    assert info["state"]["messages"] == 1
    await loop.stop()


async def test_a_prompt_that_is_retried_takes_the_place_of_the_dead_one(idle: System):
    places = Places(idle.requester, idle.settings.topology())
    stream, subject = idle.subjects.stream("work"), idle.subjects.prompt("pool-1", "p1")
    body = codec.encode(Prompt("p1", "s1", "pool-1", "Go on.", 1))
    head = h.block({h.SCHEMA: SCHEMAS[Prompt]})
    sequence = (await idle.requester.publish(subject, body, head)).seq
    burial = Burial(DeadLetters(idle.requester, idle.subjects, system_clock()), places)
    stored = await places.load(stream, sequence)
    assert stored is not None
    await burial.bury(stream, stored, _reason(), FoundBy.ADVISORY)
    letters = Letters(idle.requester, idle.subjects, system_clock())

    found, _ = await Retrying(idle.requester, letters, places).retry((await letters_of(idle))[0].letter, "ann", "")

    newest = await places.newest(stream, subject)
    assert newest is not None
    assert (newest.body, newest.fields[h.RETRY_OF]) == (body, found.letter.letter)
    assert found.letter.status is LetterStatus.RETRIED
    assert await places.load(stream, sequence) is None


@pytest.mark.parametrize("version", [2, 3])
async def test_a_state_that_is_retried_is_saved_once_more_as_it_is(bare: System, version: int):
    places = Places(bare.requester, bare.settings.topology())
    stream, subject = bare.subjects.bucket_stream("turns"), bare.subjects.revision("turns", "s1", wants=True)
    head = h.block({h.WANTS: "1", "ce-id": "s1.0", h.EXPECTED_SEQUENCE: "0"})
    revision = (await bare.requester.publish(subject, b'{"op":"x"}', head)).seq
    stored = await places.load(stream, revision)
    assert stored is not None
    if version == 2:  # the letter was written before the state was moved
        stored = replace(stored, subject=bare.subjects.unsplit("turns", "s1"))
    burial = Burial(DeadLetters(bare.requester, bare.subjects, system_clock()), places)
    await burial.bury(stream, stored, _reason(), FoundBy.LOOP)
    letters = Letters(bare.requester, bare.subjects, system_clock())
    (letter,) = await letters_of(bare)
    assert (letter.body, letter.stream) == (b"", stream)

    found, _ = await Retrying(bare.requester, letters, places).retry(letter.letter, "ann", "")

    newest = await places.newest(stream, subject)
    assert newest is not None
    assert (newest.sequence, newest.body) == (revision + 1, b'{"op":"x"}')
    assert (newest.fields[h.WANTS], newest.fields["ce-id"]) == ("1", "s1.0")
    assert found.letter.decided is not None
    assert found.letter.decided.sequence == revision + 1


async def test_namespaces_on_one_server_do_not_see_each_others_advisories(nats_server: EmbeddedServer, namespace: str):
    async with (
        running(nats_server.url, namespace, validation=False, deadletter=True) as one,
        running(nats_server.url, f"{namespace}x", validation=False, deadletter=True) as other,
    ):
        await configure_intake(one, max_deliver=2, ack_wait=100_000_000)
        await publish_report(one)
        await deliver(one, 2)
        await wait_until(lambda: letters_of(one), why="it is buried")

        info = await other.requester.api(f"STREAM.INFO.{other.subjects.stream('advisories')}")
        assert info["state"]["last_seq"] == 0
        assert await letters_of(other) == []


async def test_letters_of_an_earlier_version_get_subjects_of_their_own(bare: System):
    turns, dead = bare.subjects.stream("turns"), bare.subjects.stream("dead")
    body = b'{"turn":"seven"}'
    for sequence in (4, 5):
        letter = DeadLetter(turns, sequence, bare.subjects.turn_ended("pool-1", RUNNER, "s1"), _reason(), 1, 1, body)
        await bare.requester.publish(bare.subjects.dead(turns), codec.encode(letter))
    await bare.requester.publish(bare.subjects.dead(turns), b"no letter")
    places = Places(bare.requester, bare.settings.topology())

    adopted = [await adopt(bare.requester, bare.subjects, places) for _ in range(2)]

    assert adopted == [2, 0]
    found = await letters_of(bare)
    assert [(letter.sequence, letter.body, letter.size) for letter in found] == [(4, body, 16), (5, body, 16)]
    assert (await bare.requester.api(f"STREAM.INFO.{dead}"))["state"]["messages"] == 3


# By the reaper


async def test_an_exhausted_message_without_an_advisory_is_buried_at_the_second_look(bare: System):
    await configure_intake(bare, max_deliver=2, ack_wait=100_000_000)
    await publish_report(bare)
    await deliver(bare, 2)
    reaper = reaper_of(bare)

    await reaper.look()
    assert await letters_of(bare) == []
    await reaper.look()

    (letter,) = await letters_of(bare)
    assert (letter.reason.code, letter.found_by) == (ErrorCode.EXHAUSTED, FoundBy.REAPER)
    assert await _is_empty(bare)


async def test_what_is_waiting_or_in_hand_is_left_alone(bare: System):
    held: list[Delivery] = []
    loop = ConsumeLoop(bare.connection, bare.subjects.stream("turns"), VALIDATION, held.append)
    await publish_report(bare)
    reaper = reaper_of(bare)

    await reaper.look()
    await reaper.look()
    await loop.start()
    await wait_until(lambda: held, why="it is in hand")
    await reaper.look()
    await reaper.look()

    assert reaper.counts.total() == 0
    assert (await intake(bare))["last_seq"] == 1
    held.pop().ack()
    await loop.stop()


async def test_what_was_left_behind_is_published_again_and_decided_once(bare: System, monkeypatch: pytest.MonkeyPatch):
    await publish_report(bare, turn=2)
    second = await publish_report(bare, turn=3)
    reaper = _below_the_floor(reaper_of(bare), second, monkeypatch)

    await reaper.look()
    await reaper.look()

    assert reaper.counts == {"moved": 2}
    assert (await intake(bare))["first_seq"] == second + 1
    service = ValidationService(bare.connection, bare.requester, bare.settings)
    await service.start()
    await wait_until(lambda: service.counters.verdicts.total() == 2, why="both are decided")
    assert await service.stop()


async def test_what_is_left_behind_again_and_again_is_buried(bare: System, monkeypatch: pytest.MonkeyPatch):
    subject = bare.subjects.turn_ended("pool-1", RUNNER, "s1")
    await bare.requester.publish(subject, b"{}", h.block({h.MOVED: str(MOST_MOVES)}))
    reaper = _below_the_floor(reaper_of(bare), 1, monkeypatch)

    await reaper.look()
    await reaper.look()

    assert reaper.counts == {"buried": 1}
    assert len(await letters_of(bare)) == 1


async def test_what_a_full_queue_has_no_room_for_goes_out_when_it_has(bare: System, monkeypatch: pytest.MonkeyPatch):
    stream = bare.subjects.stream("turns")
    config = (await bare.requester.api(f"STREAM.INFO.{stream}"))["config"]
    sequence = await publish_report(bare)
    await bare.requester.api(f"STREAM.UPDATE.{stream}", {**config, "max_msgs": 1})
    reaper = _below_the_floor(reaper_of(bare), sequence, monkeypatch)

    await reaper.look()
    await reaper.look()

    assert reaper.counts == {"held": 1}
    (letter,) = await letters_of(bare)
    assert letter.status is LetterStatus.RETRYING
    assert await _is_empty(bare)
    letters = Letters(bare.requester, bare.subjects, system_clock())
    retrying = Retrying(bare.requester, letters, Places(bare.requester, bare.settings.topology()))
    assert await finish_all(retrying, letter.at + 60_000) == 1
    assert (await intake(bare))["messages"] == 1


async def test_a_retry_that_a_kill_left_unfinished_goes_out_later_and_once(bare: System):
    places = Places(bare.requester, bare.settings.topology())
    sequence = await publish_report(bare)
    stream = bare.subjects.stream("turns")
    stored = await places.load(stream, sequence)
    assert stored is not None
    await Burial(DeadLetters(bare.requester, bare.subjects, system_clock()), places).bury(
        stream, stored, _reason(), FoundBy.ADVISORY
    )
    letters = Letters(bare.requester, bare.subjects, system_clock())
    retrying = Retrying(bare.requester, letters, places)
    letter = (await letters_of(bare))[0].letter
    # Killed right after it was marked: nothing went out.
    marked, _ = await letters.decide(letter, lambda there: _marked(letters, there))

    now = system_clock()() + 60_000
    await asyncio.gather(finish_all(retrying, now), finish_all(retrying, now))

    assert marked.letter.status is LetterStatus.RETRYING
    assert (await letters_of(bare))[0].status is LetterStatus.RETRIED
    assert (await intake(bare))["messages"] == 1


def _marked(letters: Letters, there: DeadLetter) -> DeadLetter:
    return replace(there, status=LetterStatus.RETRYING, decided=letters.decided("ann", ""))


def _below_the_floor(reaper: Reaper, floor: int, monkeypatch: pytest.MonkeyPatch) -> Reaper:
    """As a kill of the server leaves it now and then, which no test can bring about at will."""

    async def consumers(stream: str) -> list[Consumer]:
        return [Consumer(VALIDATION, ">", floor, floor, idle=False)] if stream.endswith("_TURNS") else []

    monkeypatch.setattr(reaper, "_consumers", consumers)
    return reaper


def _reason() -> ErrorBody:
    return exhausted("prompts-pool-1")


async def _is_empty(system: System) -> bool:
    return bool((await intake(system))["messages"] == 0)
