"""A save whose confirmation gets lost is found and not made twice; works that were under way can be repeated."""

import functools

from tests.services.jetstream.conftest import Connecting, Requesting, came_back, make_bucket
from tests.services.jetstream.raw import Proxy
from tests.services.jetstream.works import Work, add, decode, make_lanes, revisions, run, stored, told
from tests.waiting import wait_until
from turngate.jetstream.connect import Connection
from turngate.jetstream.embedded import EmbeddedServer
from turngate.jetstream.request import Requester
from turngate.jetstream.store import Store
from turngate_contracts.subjects import Subjects


async def unconfirmed(store: Store, behind: Requester, proxy: Proxy, subjects: Subjects) -> Work:
    """Add "b" after "a" behind a proxy that holds back the confirmation, and return its work once "b" is stored."""
    behind.publish_nowait = functools.partial(behind.publish_nowait, timeout_ms=500)  # type: ignore[method-assign]
    lanes = make_lanes(Store(behind, subjects, "turns", "count.v1"))
    await run(lanes, add("k", "a"))
    proxy.muted = True
    work = add("k", "b")
    lanes.submit(work)
    await wait_until(lambda: _has(store, "b"))
    return work


async def test_a_save_whose_confirmation_is_late_is_found_and_not_made_twice(
    store: Store, connecting: Connecting, requesting: Requesting, proxy: Proxy, subjects: Subjects
) -> None:
    work = await unconfirmed(store, await requesting(await connecting(proxy.url)), proxy, subjects)

    proxy.muted = False
    await told([work])

    assert (work.error, work.revision) == (None, (await store.load("k")).revision)
    assert len(work.seen) == 1
    assert len(await revisions(store)) == 2


async def test_a_lost_save_under_a_newer_one_is_decided_on_the_newer_state(
    store: Store, connecting: Connecting, requesting: Requesting, proxy: Proxy, subjects: Subjects
) -> None:
    work = await unconfirmed(store, await requesting(await connecting(proxy.url)), proxy, subjects)

    await run(make_lanes(store), add("k", "c"))
    proxy.muted = False
    await told([work])

    assert work.error is None
    assert work.state is not None
    assert work.state.added == ("a", "b", "c")
    assert len(await revisions(store)) == 3


async def test_a_save_interrupted_after_it_was_stored_is_found_by_the_repeat(
    store: Store, connecting: Connecting, requesting: Requesting, proxy: Proxy, subjects: Subjects
) -> None:
    connection = await connecting(proxy.url)
    lanes = make_lanes(Store(await requesting(connection), subjects, "turns", "count.v1"))
    await run(lanes, add("k", "a"))

    proxy.muted = True
    work = add("k", "b")
    lanes.submit(work)
    await wait_until(lambda: _has(store, "b"))
    proxy.muted = False
    proxy.cut()
    await told([work])
    assert work.error is not None  # its message comes again
    await came_back(connection)
    repeat = add("k", "b")
    await run(lanes, repeat)

    assert repeat.error is None
    assert len(await revisions(store)) == 2


async def test_works_under_way_when_the_server_is_killed_are_told_and_can_be_repeated(
    own_connection: Connection, own_requester: Requester, own_server: EmbeddedServer, subjects: Subjects
) -> None:
    store = await make_bucket(own_requester, subjects)
    lanes = make_lanes(store)
    names = [(f"k{number % 5}", f"n{number}") for number in range(100)]
    first = [add(key, name) for key, name in names]
    for work in first:
        lanes.submit(work)
    await wait_until(lambda: any(work.told for work in first))

    own_server.kill()
    await told(first)
    own_server.start()
    await came_back(own_connection)
    again = [add(key, name) for key, name in names]
    await run(lanes, *again)

    assert {work.error for work in again} == {None}
    for key in {key for key, _ in names}:
        added = (await stored(store, key)).added
        assert sorted(added) == sorted(name for owner, name in names if owner == key)


async def _has(store: Store, name: str) -> bool:
    entry = await store.load("k")
    return entry.value is not None and name in decode(entry.value).added
