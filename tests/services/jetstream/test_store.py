"""One bucket's keys: read whole, saved only on the revision that they were derived from."""

import asyncio
from datetime import UTC, datetime

import pytest

from tests.services.jetstream.conftest import make_bucket
from tests.waiting import wait_until
from turngate.clock import system_clock
from turngate.jetstream.connect import Connection
from turngate.jetstream.embedded import EmbeddedServer
from turngate.jetstream.request import NoResponders, NotConnected, Requester
from turngate.jetstream.store import Conflict, Entry, Event, Store
from turngate_contracts import headers as h
from turngate_contracts.errors import Unavailable
from turngate_contracts.subjects import Subjects

AT = 1_700_000_000_123
EVENT = Event("count.changed", AT)


async def save(store: Store, key: str, *values: bytes) -> int:
    """Save values one after the other."""
    revision = (await store.load(key)).revision
    for value in values:
        revision = await store.save(key, value, revision, EVENT)
    return revision


async def stand_in(connection: Connection, subject: str, body: bytes, head: bytes = b"") -> None:
    """Answer in JetStream's place what no server of one node says."""

    def answer(_subject: bytes, reply: bytes, _body: bytes, _head: bytes) -> None:
        connection.send(reply.decode(), body, headers=head)

    await connection.listen(subject, answer)
    await connection.flush()


# Load and save


async def test_a_key_that_never_was_has_no_revision(store: Store) -> None:
    assert await store.load("k") == Entry("k", 0, None)


async def test_what_is_saved_is_loaded_with_its_revision(store: Store) -> None:
    first = await store.save("k", b"1", 0, EVENT)
    second = await store.save("k", b"2", first, EVENT)

    entry = await store.load("k")
    assert (entry.value, entry.revision) == (b"2", second)
    assert second > first


async def test_keys_do_not_meet(store: Store) -> None:
    await save(store, "a", b"1")
    await save(store, "b.c", b"2")

    assert [(await store.load(key)).value for key in ("a", "b.c", "b")] == [b"1", b"2", None]


async def test_a_save_on_an_older_revision_conflicts_and_changes_nothing(store: Store) -> None:
    first = await store.save("k", b"1", 0, EVENT)
    await store.save("k", b"2", first, EVENT)

    with pytest.raises(Conflict):
        await store.save("k", b"3", first, EVENT)

    assert (await store.load("k")).value == b"2"


async def test_a_key_is_made_once(store: Store) -> None:
    await store.save("k", b"1", 0, EVENT)

    with pytest.raises(Conflict):
        await store.save("k", b"2", 0, EVENT)


async def test_of_many_saves_on_one_revision_one_is_stored(store: Store) -> None:
    revision = await save(store, "k", b"0")

    outcomes = await asyncio.gather(
        *(store.save("k", b"%d" % number, revision, EVENT) for number in range(1, 51)), return_exceptions=True
    )

    stored = [number for number, outcome in enumerate(outcomes, start=1) if not isinstance(outcome, Conflict)]
    assert len(stored) == 1
    assert (await store.load("k")).value == b"%d" % stored[0]


async def test_a_save_is_a_cloud_event(store: Store, subjects: Subjects) -> None:
    revision = await save(store, "k", b"{}")
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

    await store.save("k", b"{}", revision, Event("count.changed", AT, wants=True, trace_parent=trace))

    headers = (await store.load("k")).headers()
    assert {name: headers[name] for name in headers if name.startswith("ce-") or name in _OURS} == {
        "ce-specversion": "1.0",
        "ce-id": f"k.{revision}",
        "ce-source": f"/turngate/{subjects.namespace}/turns",
        "ce-type": "turngate.count.changed",
        "ce-subject": "k",
        "ce-time": "2023-11-14T22:13:20.123Z",
        "content-type": "application/json",
        h.SCHEMA: "count.v1",
        h.WANTS: "1",
        h.TRACE_PARENT: trace,
    }


_OURS = ("content-type", h.SCHEMA, h.WANTS, h.TRACE_PARENT)


async def test_a_save_that_wants_nothing_says_so_by_its_headers(store: Store) -> None:
    await save(store, "k", b"{}")

    headers = (await store.load("k")).headers()
    assert h.WANTS not in headers
    assert h.TRACE_PARENT not in headers


@pytest.mark.parametrize("at", [0, 999, AT, AT + 877])
async def test_the_time_of_an_event_is_kept_to_the_millisecond(store: Store, at: int) -> None:
    await store.save("k", b"{}", 0, Event("count.changed", at))

    told = (await store.load("k")).headers()["ce-time"]
    assert datetime.fromisoformat(told) == datetime.fromtimestamp(at / 1000, UTC)


# Tombstones (hazard 17)


@pytest.fixture
async def questions(requester: Requester, subjects: Subjects) -> Store:
    """A bucket with a history and one subject a key: only in such a one may a key be deleted."""
    return await make_bucket(requester, subjects, "questions")


async def test_a_deleted_key_has_a_revision_and_no_value(questions: Store) -> None:
    revision = await save(questions, "k", b"1")

    deleted = await questions.delete("k", revision, {h.SOURCE_REVISION: "7"}, ttl_s=60)

    entry = await questions.load("k")
    assert (entry.value, entry.revision, entry.headers()[h.SOURCE_REVISION]) == (None, deleted, "7")


async def test_a_deleted_key_can_be_saved_again_on_its_tombstone(questions: Store) -> None:
    deleted = await questions.delete("k", await save(questions, "k", b"1"), {}, ttl_s=60)

    with pytest.raises(Conflict):
        await questions.save("k", b"2", 0, EVENT)
    await questions.save("k", b"2", deleted, EVENT)

    assert (await questions.load("k")).value == b"2"


async def test_an_older_revision_can_not_be_deleted(questions: Store) -> None:
    revision = await save(questions, "k", b"1")
    await save(questions, "k", b"2")

    with pytest.raises(Conflict):
        await questions.delete("k", revision, {}, ttl_s=60)

    assert (await questions.load("k")).value == b"2"


async def test_a_tombstone_leaves_by_itself_and_the_key_can_be_made_anew(
    requester: Requester, subjects: Subjects
) -> None:
    inbox = await make_bucket(requester, subjects, "inbox")  # keeps one revision a key
    await inbox.delete("k", await save(inbox, "k", b"1"), {}, ttl_s=1)

    await wait_until(lambda: _is_unknown(inbox, "k"))

    await inbox.save("k", b"2", 0, EVENT)
    assert (await inbox.load("k")).value == b"2"


async def test_where_there_is_a_history_a_tombstone_that_leaves_uncovers_the_value_before(questions: Store) -> None:
    # Not what anybody wants, and why only the inbox deletes: it keeps one revision a key.
    revision = await save(questions, "k", b"1")
    await questions.delete("k", revision, {}, ttl_s=1)

    await wait_until(lambda: _is_at(questions, "k", revision))


async def _is_at(store: Store, key: str, revision: int) -> bool:
    return (await store.load(key)).revision == revision


async def _is_unknown(store: Store, key: str) -> bool:
    return (await store.load(key)).revision == 0


async def test_a_marker_of_the_server_is_no_value(store: Store, requester: Requester, subjects: Subjects) -> None:
    await requester.publish(
        subjects.revision("turns", "k", wants=False), b"", h.block({"Nats-Marker-Reason": "MaxAge"})
    )

    entry = await store.load("k")
    assert (entry.value, entry.revision) == (None, 1)


async def test_the_server_says_when_a_revision_was_stored(store: Store) -> None:
    before = system_clock()()
    await save(store, "k", b"1")

    assert before - 1_000 <= (await store.load("k")).stored_at() <= system_clock()() + 1_000


# Pages


async def all_pages(store: Store, limit: int) -> list[list[str]]:
    cursor, more, pages = 0, True, []
    while more:
        entries, cursor, more = await store.page(cursor, limit)
        pages.append([entry.key for entry in entries])
    return pages


@pytest.mark.parametrize(("count", "limit", "sizes"), [(0, 3, [0]), (2, 3, [2]), (3, 3, [3]), (7, 3, [3, 3, 1])])
async def test_pages_hold_the_keys_in_the_order_of_their_saves(
    store: Store, count: int, limit: int, sizes: list[int]
) -> None:
    for number in range(count):
        await save(store, f"k{count - number}", b"1")

    pages = await all_pages(store, limit)

    assert [len(page) for page in pages] == sizes
    assert [key for page in pages for key in page] == [f"k{count - number}" for number in range(count)]


async def test_a_page_may_be_longer_than_one_read(store: Store) -> None:
    await asyncio.gather(*(save(store, f"k{number}", b"1") for number in range(600)))

    entries, _, more = await store.page(0, 590)

    assert len({entry.key for entry in entries}) == 590
    assert more


async def test_tombstones_are_passed_over_and_do_not_count(requester: Requester, subjects: Subjects) -> None:
    inbox = await make_bucket(requester, subjects, "inbox")
    for number in range(6):
        revision = await save(inbox, f"k{number}", b"1")
        if number % 2:
            await inbox.delete(f"k{number}", revision, {}, ttl_s=60)

    assert await all_pages(inbox, 2) == [["k0", "k2"], ["k4"]]


# What goes wrong


async def test_a_bucket_that_does_not_exist_is_told_at_once(requester: Requester, subjects: Subjects) -> None:
    missing = Store(requester, subjects, "turns", "count.v1")

    with pytest.raises(NoResponders):
        await missing.load("k")
    with pytest.raises(NoResponders):
        await missing.save("k", b"1", 0, EVENT)
    with pytest.raises(NoResponders):
        await missing.page(0, 10)


async def test_a_server_that_is_down_is_told_at_once(
    own_connection: Connection, own_requester: Requester, own_server: EmbeddedServer, subjects: Subjects
) -> None:
    store = await make_bucket(own_requester, subjects)
    own_server.kill()
    await wait_until(lambda: not own_connection.is_connected)

    with pytest.raises(NotConnected):
        await store.load("k")
    with pytest.raises(NotConnected):
        await store.save("k", b"1", 0, EVENT)


async def test_the_conflict_of_a_stream_with_replicas_is_a_conflict(
    connection: Connection, requester: Requester, subjects: Subjects
) -> None:
    store = Store(requester, subjects, "turns", "count.v1")
    refusal = b'{"error": {"code": 400, "err_code": 10164, "description": "wrong last sequence"}}'
    await stand_in(connection, store.subject("k"), refusal)

    with pytest.raises(Conflict):
        await store.save("k", b"1", 0, EVENT)


@pytest.mark.parametrize("status", ["408 Bad Request", "413 Too Many Results", "429 Too Many Requests"])
@pytest.mark.parametrize("bucket", ["turns", "questions"])
async def test_an_answer_that_is_no_message_is_not_taken_for_a_state(
    connection: Connection, requester: Requester, subjects: Subjects, bucket: str, status: str
) -> None:
    store = Store(requester, subjects, bucket, "count.v1")
    head = f"NATS/1.0 {status}\r\n\r\n".encode()
    await stand_in(connection, f"$JS.API.DIRECT.GET.{store.stream}.{store.subject('k')}", b"", head)
    await stand_in(connection, f"$JS.API.DIRECT.GET.{store.stream}", b"", head)

    with pytest.raises(Unavailable, match=status):
        await store.load("k")
    with pytest.raises(Unavailable, match=status):
        await store.page(0, 10)
