"""Streams and buckets are safe by configuration, and two namespaces never meet on one server."""

import itertools
from typing import Any

import pytest

from turngate_contracts.catalogue import DEAD, INTAKE, STATES, WORK
from turngate_contracts.rows import Intake, Work
from turngate_contracts.subjects import Subjects
from turngate_contracts.topology import MOST_DELIVERIES, TOPOLOGY_VERSION, VERSION_KEY, Durability, Topology

TOPOLOGY = Topology()
STREAMS = {stream["name"]: stream for stream in TOPOLOGY.streams()}
BUCKETS = [stream for stream in STREAMS.values() if stream["name"].startswith("KV_")]


def overlap(one: str, other: str) -> bool:
    """Whether some subject matches both patterns."""
    a, b = one.split("."), other.split(".")
    for left, right in itertools.zip_longest(a, b, fillvalue=""):
        if ">" in (left, right):
            return bool(left and right)
        if "" in (left, right) or ("*" not in (left, right) and left != right):
            return False
    return True


def subjects_of(topology: Topology) -> list[str]:
    return [subject for stream in topology.streams() for subject in stream["subjects"]]


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("a.b", "a.b", True),
        ("a.*", "a.b", True),
        ("a.>", "a.b.c", True),
        ("a.>", "a", False),
        ("a.b", "a.c", False),
        ("a.*", "a.b.c", False),
        ("*.b", "a.*", True),
    ],
)
def test_overlap_is_what_nats_says(one: str, other: str, expected: bool):
    assert overlap(one, other) is expected
    assert overlap(other, one) is expected


@pytest.mark.parametrize("other", ["tg2", "t", "turn", "tgturns", "kv"])
def test_two_namespaces_share_nothing(other: str):
    mine, theirs = TOPOLOGY, Topology(Subjects(other))

    assert not {s["name"].upper() for s in mine.streams()} & {s["name"].upper() for s in theirs.streams()}
    for one, another in itertools.product(subjects_of(mine), subjects_of(theirs)):
        assert not overlap(one, another), (one, another)


def test_no_two_streams_take_the_same_subject():
    for one, other in itertools.combinations(subjects_of(TOPOLOGY), 2):
        assert not overlap(one, other), (one, other)


@pytest.mark.parametrize("durability", Durability)
@pytest.mark.parametrize("replicas", [1, 3])
def test_every_stream_carries_the_version(durability: Durability, replicas: int):
    for stream in Topology(Subjects(), durability, replicas).streams():
        assert stream["metadata"] == {VERSION_KEY: str(TOPOLOGY_VERSION)}
        assert stream["num_replicas"] == replicas
        assert stream["description"]


@pytest.mark.parametrize("bucket", BUCKETS, ids=lambda bucket: bucket["name"])
def test_a_bucket_can_not_be_wiped_or_rewritten(bucket: dict[str, Any]):
    assert bucket["deny_delete"]
    assert bucket["deny_purge"]
    assert bucket["allow_rollup_hdrs"] is False
    assert "subject_delete_marker_ttl" not in bucket  # it would turn rollup on
    assert bucket["discard"] == "new"
    assert bucket["allow_direct"]


@pytest.mark.parametrize("name", ["TG_TURNS", "TG_TASKS"])
def test_a_work_queue_refuses_when_it_is_full_and_forgets_nothing(name: str):
    stream = STREAMS[name]

    assert stream["retention"] == "workqueue"
    assert stream["discard"] == "new"
    assert stream["max_bytes"] > 0
    assert "max_age" not in stream


def test_only_what_can_be_sent_again_is_stored_lazily():
    lazy = {s["name"] for s in TOPOLOGY.streams() if s.get("persist_mode") == "async"}

    assert lazy == {"TG_TURNS", "TG_EVENTS"}
    relaxed = Topology(durability=Durability.RELAXED)
    assert [s["name"] for s in relaxed.streams() if "persist_mode" in s] == ["TG_EVENTS"]
    assert not [s["name"] for s in Topology(replicas=3).streams() if "persist_mode" in s]


def test_consumers_are_explicit_and_on_streams_of_the_topology():
    made = [*TOPOLOGY.consumers(), *TOPOLOGY.pool_consumers("pool-1"), TOPOLOGY.timer_consumer("expiry")]

    for stream, consumer in made:
        assert stream in STREAMS
        assert consumer["ack_policy"] == "explicit"
        retention = STREAMS[stream]["retention"]
        assert consumer["max_deliver"] == (MOST_DELIVERIES if retention == "workqueue" else -1)
        assert "." not in consumer["durable_name"]


@pytest.mark.parametrize("row", [*INTAKE, *WORK], ids=lambda row: row.name)
def test_what_the_catalogue_stores_has_exactly_its_stream(row: Intake | Work):
    subject = row.subject(Subjects(), *(["x"] * len(row.parameters)))

    assert [name for name, s in STREAMS.items() if any(overlap(subject, wanted) for wanted in s["subjects"])] == [
        Subjects().stream(row.stream)
    ]


def test_a_work_queue_takes_nothing_that_the_catalogue_does_not_know():
    for name in {row.stream for row in INTAKE}:
        known = {row.subject(Subjects(), *(["x"] * len(row.parameters))) for row in INTAKE if row.stream == name}
        for wanted in STREAMS[Subjects().stream(name)]["subjects"]:
            assert any(overlap(wanted, subject) for subject in known), wanted


def test_the_consumers_of_the_intake_exist():
    made = {(stream, consumer["durable_name"]) for stream, consumer in TOPOLOGY.consumers()}

    assert {(Subjects().stream(row.stream), row.consumer) for row in INTAKE} <= made


def test_the_buckets_are_those_of_the_catalogue():
    assert {bucket["name"] for bucket in BUCKETS} == {Subjects().bucket_stream(row.bucket) for row in STATES}


def test_the_events_are_the_revisions_of_the_buckets_that_have_events():
    events = STREAMS[Subjects().stream("events")]

    sources = {source["name"]: transform for source in events["sources"] for transform in source["subject_transforms"]}

    assert sources == {
        Subjects().bucket_stream(row.bucket): {
            "src": Subjects().key(row.bucket, ">"),
            "dest": Subjects().event(row.bucket, ">"),
        }
        for row in STATES
        if row.events
    }
    assert events["republish"] == {"src": Subjects().events(), "dest": Subjects().live()}


def test_dead_letters_have_their_stream():
    assert any(
        overlap(Subjects().dead_letters(), subject) for subject in STREAMS[Subjects().stream(DEAD.stream)]["subjects"]
    )
