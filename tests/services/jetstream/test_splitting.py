"""The turns of topology version 2 are brought to the two subjects of version 3, whoever does it, and how often."""

import asyncio
from typing import Any

import pytest
from msgspec import structs

from tests.services.jetstream import version_two
from tests.services.jetstream.conftest import Connecting, Requesting
from tests.services.jetstream.reconciling import Performer, all_acked, delivered
from tests.services.jetstream.works import revisions
from tests.waiting import wait_until
from turngate.jetstream import provision as provision_module
from turngate.jetstream import splitting
from turngate.jetstream.again import save_as
from turngate.jetstream.connect import Connection
from turngate.jetstream.direct import PAGE, Stored, read_page
from turngate.jetstream.embedded import EmbeddedServer
from turngate.jetstream.provision import Provisioned, TopologyStuck, provision, stream_version
from turngate.jetstream.reconcile import Reconciler
from turngate.jetstream.request import NoResponders, Requester
from turngate.jetstream.store import Event, Store
from turngate_contracts import headers as h
from turngate_contracts.subjects import Subjects
from turngate_contracts.topology import TOPOLOGY_VERSION, TURNS_RECONCILER, VERSION_KEY, Durability, Topology

RESTING = {"s1": b"2", "wants": b"2", "rest": b"2"}
WANTING = {"s2": b"3", "s3": b"3"}
STATES = RESTING | WANTING
OLD = 2 * len(RESTING) + 3 * len(WANTING)
"""How many revisions version 2 has saved of them."""
RESTS = Event("count.changed", 1_700_000_000_123)


@pytest.fixture
def topology(subjects: Subjects) -> Topology:
    return Topology(subjects, Durability.RELAXED)


@pytest.fixture
def turns(requester: Requester, subjects: Subjects) -> Store:
    """The bucket as this version reads and saves it."""
    return Store(requester, subjects, "turns", "count.v1")


@pytest.fixture
async def older(requester: Requester, topology: Topology) -> Topology:
    """A namespace of version 2 with states: some want something, and some have."""
    await version_two.make(requester, topology)
    await fill(requester, topology)
    return topology


async def fill(requester: Requester, topology: Topology) -> None:
    """Save the states as version 2 did; the events have them all."""
    subjects = topology.subjects
    for key, newest in STATES.items():
        revision = 0
        for number in range(1, int(newest) + 1):
            wants = (key in WANTING) == (number == int(newest))
            revision = await version_two.save(requester, subjects, key, b"%d" % number, revision, wants=wants)
    await requester.publish(subjects.key("questions", "s1"), b"1", h.block({"ce-id": "s1.0"}))
    await wait_until(lambda: _has_events(requester, subjects, OLD + 1), why="version 2 has its events")


async def _has_events(requester: Requester, subjects: Subjects, count: int) -> bool:
    return len(await events_of(requester, subjects)) == count


async def events_of(requester: Requester, subjects: Subjects) -> list[Stored]:
    return (await read_page(requester, subjects.stream("events"), 0, PAGE, ">"))[0]


async def last_sequence(store: Store) -> int:
    return int((await store.requester.api(f"STREAM.INFO.{store.stream}"))["state"]["last_seq"])


def told(fields: dict[str, str]) -> dict[str, str]:
    """What a revision's own headers say; the others are about its place."""
    return {name: value for name, value in fields.items() if not name.startswith("Nats-")}


# What comes of it


async def test_events_that_were_not_taken_over_yet_are_told_before_the_keys_are_moved(
    requester: Requester, topology: Topology
) -> None:
    await version_two.make(requester, topology)
    sessions, revisions_each = 100, 5
    for number in range(sessions):
        revision = 0
        for value in range(revisions_each):
            revision = await version_two.save(requester, topology.subjects, f"s{number}", b"%d" % value, revision)

    await provision(requester, topology)
    await wait_until(lambda: _has_told(requester, topology.subjects, sessions * (revisions_each + 1)))


async def _has_told(requester: Requester, subjects: Subjects, count: int) -> bool:
    state = (await requester.api(f"STREAM.INFO.{subjects.stream('events')}"))["state"]
    return int(state["messages"]) == count


async def test_every_newest_state_is_loaded_as_it_was(requester: Requester, older: Topology, turns: Store) -> None:
    before = {stored.subject.rpartition(".")[2]: stored for stored in await _all_old(turns)}

    done = await provision(requester, older)

    assert (done.created, turns.stream in done.updated) == ((), True)
    found = {key: await turns.load(key) for key in STATES}
    assert {key: entry.value for key, entry in found.items()} == STATES
    for key, entry in found.items():
        assert told(entry.headers()) == told(before[key].fields), key
    assert {key for key, entry in found.items() if h.WANTS in entry.headers()} == set(WANTING)
    assert await stream_version(requester, turns.stream) == TOPOLOGY_VERSION
    assert await provision(requester, older) == Provisioned()


async def _all_old(turns: Store) -> list[Stored]:
    """Every revision, oldest first, wherever it stands."""
    return (await read_page(turns.requester, turns.stream, 0, PAGE, ">"))[0]


async def test_each_state_can_be_saved_upon_and_stands_where_its_wants_say(
    requester: Requester, older: Topology, turns: Store
) -> None:
    await provision(requester, older)

    for key in STATES:
        await turns.save(key, b"new", (await turns.load(key)).revision, RESTS)

    for key in STATES:
        subjects = [each.subject for each in await revisions(turns, key)]
        expected = [older.subjects.revision("turns", key, wants=wants) for wants in (key in WANTING, False)]
        assert subjects == expected


async def test_what_wanted_something_is_performed_and_nothing_else_is_delivered(
    connection: Connection, requester: Requester, older: Topology, turns: Store
) -> None:
    await provision(requester, older)
    performer = Performer()
    reconciler = Reconciler(connection, turns, TURNS_RECONCILER, performer)

    await reconciler.start()
    await wait_until(lambda: len(performer.performed) == len(WANTING))
    await wait_until(lambda: all_acked(turns))
    await reconciler.stop(1_000)

    assert dict(performer.performed) == WANTING
    assert await delivered(turns) == len(WANTING)


async def test_what_a_process_of_version_2_hands_back_is_done_once_and_ends(
    connection: Connection, requester: Requester, older: Topology, turns: Store
) -> None:
    in_hand: list[str] = []
    inbox = connection.new_inbox()
    await connection.listen(inbox, lambda _subject, reply, *_: in_hand.append(reply.decode()))
    pull = f"$JS.API.CONSUMER.MSG.NEXT.{turns.stream}.{TURNS_RECONCILER}"
    connection.send(pull, b'{"batch":%d}' % OLD, inbox)
    await wait_until(lambda: len(in_hand) == OLD, why="a process of version 2 has every revision in hand")
    await provision(requester, older)
    performer = Performer()
    reconciler = Reconciler(connection, turns, TURNS_RECONCILER, performer)

    await reconciler.start()
    for reply in in_hand:
        connection.send(reply, b"-NAK")
    await wait_until(lambda: all_acked(turns), why="nothing of version 2 comes again for ever")
    await wait_until(lambda: len(performer.performed) == len(WANTING))
    await reconciler.stop(1_000)

    assert dict(performer.performed) == WANTING


async def test_the_events_go_on_by_the_same_names(requester: Requester, older: Topology, turns: Store) -> None:
    before = await events_of(requester, older.subjects)

    await provision(requester, older)
    await turns.save("s1", b"new", (await turns.load("s1")).revision, RESTS)
    count = len(before) + len(STATES) + 1
    await wait_until(lambda: _has_events(requester, older.subjects, count), why="what was moved is told once more")

    found = await events_of(requester, older.subjects)
    assert [each.sequence for each in found[: len(before)]] == [each.sequence for each in before]
    names = {older.subjects.event("turns", key) for key in STATES} | {older.subjects.event("questions", "s1")}
    assert {each.subject for each in found} == names
    moved = found[len(before) : -1]
    assert {each.fields["ce-id"] for each in moved} <= {each.fields["ce-id"] for each in before}
    assert found[-1].body == b"new"


async def test_more_keys_than_fit_into_one_read_are_moved(
    requester: Requester, topology: Topology, turns: Store
) -> None:
    await version_two.make(requester, topology)
    keys = [f"k{number}" for number in range(PAGE + 44)]
    for key in keys:
        await version_two.save(requester, topology.subjects, key, key.encode(), wants=key.endswith("7"))

    await provision(requester, topology)

    entries = await asyncio.gather(*map(turns.load, keys))
    assert [entry.value for entry in entries] == [key.encode() for key in keys]


async def test_a_bucket_without_states_and_a_server_without_a_bucket_have_nothing_to_move(
    requester: Requester, topology: Topology, turns: Store
) -> None:
    await version_two.make(requester, topology)

    await provision(requester, topology)

    assert await last_sequence(turns) == 0
    assert await stream_version(requester, turns.stream) == TOPOLOGY_VERSION


# Several times, at once, and half of it


async def test_three_processes_at_once_move_each_key_once(
    connecting: Connecting, requesting: Requesting, nats_server: EmbeddedServer, older: Topology, turns: Store
) -> None:
    requesters = [await requesting(await connecting(nats_server.url)) for _ in range(3)]

    await asyncio.gather(*(provision(requester, older) for requester in requesters))

    assert await last_sequence(turns) == OLD + len(STATES)
    assert await stream_version(turns.requester, turns.stream) == TOPOLOGY_VERSION
    assert await provision(requesters[0], older) == Provisioned()


async def test_one_that_comes_late_moves_nothing_over_a_state_that_changed(
    requester: Requester, older: Topology, turns: Store
) -> None:
    await provision(requester, older)
    newer = await turns.save("s2", b"newer", (await turns.load("s2")).revision, RESTS)
    await _set_back(requester, turns.stream)

    await provision(requester, older)

    assert await turns.load("s2") == structs.replace(await turns.load("s2"), revision=newer, value=b"newer")
    assert await last_sequence(turns) == newer
    assert await stream_version(requester, turns.stream) == TOPOLOGY_VERSION


async def _set_back(requester: Requester, stream: str) -> None:
    """Have a bucket say that it is of version 2, as one process may while another is still moving keys."""
    config = (await requester.api(f"STREAM.INFO.{stream}"))["config"]
    metadata = {**config["metadata"], VERSION_KEY: str(version_two.VERSION)}
    await requester.api(f"STREAM.UPDATE.{stream}", {**config, "metadata": metadata})


@pytest.mark.parametrize("moved", range(len(STATES) + 1))
async def test_one_that_dies_after_some_keys_leaves_the_others_to_the_next(
    requester: Requester, older: Topology, turns: Store, monkeypatch: pytest.MonkeyPatch, moved: int
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(splitting, "save_as", _dying_after(moved))
        patched.setattr(splitting.log, "info", _Dying(0))  # after the last key, before the version is written
        with pytest.raises(Died):
            await provision(requester, older)
    assert await stream_version(requester, turns.stream) == version_two.VERSION
    assert await last_sequence(turns) == OLD + moved

    await provision(requester, older)

    assert {key: (await turns.load(key)).value for key in STATES} == STATES
    assert await last_sequence(turns) == OLD + len(STATES)
    assert await stream_version(requester, turns.stream) == TOPOLOGY_VERSION


class Died(BaseException):
    """What stands for the end of the process."""


class _Dying:
    """Counts calls and dies at the one after the last that it lets through."""

    def __init__(self, left: int) -> None:
        self._left = left

    def __call__(self, *_: Any) -> None:
        if self._left == 0:
            raise Died
        self._left -= 1


def _dying_after(count: int) -> Any:
    dying = _Dying(count)

    async def save_or_die(*given: Any) -> int:
        dying()
        return await save_as(*given)

    return save_or_die


# What it must not do


async def test_a_process_of_version_2_saves_nothing_behind_the_move(
    requester: Requester, older: Topology, turns: Store
) -> None:
    revision = max(stored.sequence for stored in await _all_old(turns) if stored.subject.endswith(".s1"))
    await provision(requester, older)

    with pytest.raises(NoResponders):
        await version_two.save(requester, older.subjects, "s1", b"behind", revision)

    assert (await turns.load("s1")).value == STATES["s1"]


@pytest.mark.parametrize(("before", "after"), [(86_400_000, 3_600_000), (0, 3_600_000), (3_600_000, 86_400_000)])
async def test_an_upgrade_that_changes_the_age_too_lets_no_state_leave_before_it_is_moved(
    requester: Requester, topology: Topology, turns: Store, monkeypatch: pytest.MonkeyPatch, before: int, after: int
) -> None:
    await version_two.make(requester, structs.replace(topology, retention_ms=before))
    ages: list[int] = []

    async def split(*given: Any) -> int:
        ages.append(await _age(requester, turns.stream))
        return await splitting.split(*given)

    monkeypatch.setattr(provision_module, "split", split)

    await provision(requester, structs.replace(topology, retention_ms=after))

    assert ages == [max(before, after) if before else 0]
    assert await _age(requester, turns.stream) == after


async def _age(requester: Requester, stream: str) -> int:
    """The age in ms at which a stream's messages leave; 0 for never."""
    return int((await requester.api(f"STREAM.INFO.{stream}"))["config"].get("max_age", 0)) // 1_000_000


async def test_a_bucket_that_is_full_is_left_as_it_is_and_moved_once_it_has_room(
    requester: Requester, topology: Topology, turns: Store
) -> None:
    full = structs.replace(topology, bucket_bytes=1_024)
    await version_two.make(requester, full)
    await version_two.save(requester, topology.subjects, "s1", b"x" * 400, wants=True)

    with pytest.raises(TopologyStuck, match=f"stream {turns.stream} can't be.*maximum bytes exceeded"):
        await provision(requester, full)

    assert await stream_version(requester, turns.stream) == version_two.VERSION
    await provision(requester, structs.replace(topology, bucket_bytes=1024 * 1024))
    assert (await turns.load("s1")).value == b"x" * 400
