"""After a server that forgot its last events, readers go on behind what is still the same (decision 40)."""

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.services.jetstream.conftest import came_back
from tests.services.jetstream.readers import Bucket, make_events, reading
from tests.waiting import wait_until
from turngate.jetstream.connect import Connection
from turngate.jetstream.direct import Stored, read_page
from turngate.jetstream.embedded import EmbeddedServer
from turngate.jetstream.events import EventReader
from turngate.jetstream.request import Requester
from turngate.jetstream.resuming import MOST, Told, identity_of, place_of
from turngate_contracts.headers import block
from turngate_contracts.subjects import Subjects


def stored(number: int, identity: str) -> Stored:
    return Stored(number, "tg.event.turns.k", b"", {"Nats-Stream-Source": f"{identity} more of it"})


def test_an_event_is_the_revision_that_it_was_made_of_or_what_it_was_told_as():
    sourced = stored(7, "KV_tg_turns 5")
    told = Stored(7, "tg.event.progress.s", b"", {"ce-id": "run.3"})

    assert identity_of(sourced) == identity_of(replace(sourced, sequence=8))
    assert identity_of(sourced) != identity_of(stored(7, "KV_tg_turns 6"))
    assert identity_of(sourced) != identity_of(replace(sourced, body=b"what a bucket has there since it went back"))
    assert identity_of(told) == "tg.event.progress.s run.3"


@pytest.mark.parametrize(
    ("held", "first", "place"),
    [
        ({4: "a", 5: "b", 6: "c"}, 1, 6),
        ({4: "a", 5: "b"}, 1, 5),
        ({4: "a", 5: "x", 6: "c"}, 1, 4),
        ({4: "x", 5: "b", 6: "c"}, 1, 3),
        ({4: "a", 6: "c", 7: "d"}, 1, 4),
        ({6: "c", 7: "d"}, 6, 6),
        ({4: "a", 5: "b", 6: "c", 8: "x", 9: "e"}, 1, 6),
        ({}, 0, 3),
    ],
    ids=["it was", "the last lost", "others so numbered", "all differs", "one gone", "the oldest gone", "new", "empty"],
)
def test_a_reader_goes_on_behind_what_is_still_the_same(held: dict[int, str], first: int, place: int):
    told = [(4, "a"), (5, "b"), (6, "c"), *([(9, "e")] if 9 in held else [])]

    assert place_of(3, told, held, first) == place


OURS = [f"ours {n}" for n in range(6)]
LATER = [*OURS, *(f"ours {n}" for n in range(6, 9)), *(f"theirs {n}" for n in range(5))]


@given(
    kept=st.integers(0, 20),
    before=st.permutations([*OURS, *(f"news {n}" for n in range(4))]),
    again=st.permutations(LATER),
    whole=st.booleans(),
)
def test_whatever_was_lost_and_in_whichever_order_it_comes_again_each_is_told_once(
    kept: int, before: Sequence[str], again: Sequence[str], whole: bool
):
    """Also to a reader of one kind, whose numbers may be another kind's later; an agent's news do not come again."""
    first = [f"ours {100 + n}" for n in range(kept)]
    told, heard = Told(0), []
    for each in listing([*first, *before], whole):
        assert told.is_new(each)
        heard.append(identity_of(each))
    now = listing([*first, *again], whole)

    place = told.go_back(now, 1)
    heard += [identity_of(each) for each in now if each.sequence > place and told.is_new(each)]

    assert sorted(each for each in heard if not each.startswith("news")) == sorted(map(identity_of, now))


def listing(identities: Sequence[str], whole: bool) -> list[Stored]:
    """What a reader of everything, or of one kind, finds of a stream."""
    found = [stored(number, identity) for number, identity in enumerate(identities, 1)]
    return found if whole else [each for each in found if identity_of(each).startswith("ours")]


def test_a_stream_in_which_everything_differs_is_read_from_its_beginning():
    told = Told(100)
    for number in range(101, 101 + MOST):
        told.is_new(stored(number, f"old {number}"))

    assert told.go_back([stored(number, f"new {number}") for number in range(101, 800)], 1) == 0


@pytest.mark.parametrize("kind", ["", "turns"])
async def test_what_a_server_forgot_and_numbered_otherwise_is_told_once(
    own_connection: Connection,
    own_requester: Requester,
    own_server: EmbeddedServer,
    subjects: Subjects,
    tmp_path: Path,
    kind: str,
):
    await make_events(own_requester, subjects)
    turns = Bucket(own_requester, subjects)
    at = own_server.state_dir / "jetstream" / "$G" / "streams" / subjects.stream("events")
    async with reading(EventReader(own_connection, own_requester, subjects).follow(kind=kind)) as got:
        await turns.save_many(3)
        await wait_until(lambda: len(got.events) == 3)
        # What is on the disk at this moment is all that the server will find when it is killed later.
        own_server.stop()
        shutil.copytree(at, tmp_path / "as-it-was")
        own_server.start()
        await came_back(own_connection)
        progress = block({"ce-id": "run.1", "Nats-TTL": "60s"})
        await own_requester.publish(subjects.progress("s"), b"{}", progress)
        await turns.save_many(4)
        await wait_until(lambda: len(got.values) == (8 if not kind else 7))

        own_server.kill()
        shutil.rmtree(at)
        shutil.copytree(tmp_path / "as-it-was", at)
        own_server.start()
        await came_back(own_connection, 2)
        await turns.save_many(3)
        await wait_until(lambda: got.events[-1].data == turns.saved[-1][1], why="the newest is told")

    again, _ = await read_page(own_requester, subjects.stream("events"), 0, 256, f"{subjects.namespace}.event.>")
    assert len(again) == 10, "the news of an agent were lost, so all after it have other numbers"
    assert [(event.key, event.data) for event in got.events if event.kind == "turns"] == turns.saved
