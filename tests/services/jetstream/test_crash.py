"""Crash points: a process ends at the named step of the named effect, and nothing of this is there by default."""

import asyncio
import os
import sys

import pytest

from turngate.jetstream.connect import Connection, connect
from turngate.jetstream.crash import CRASHED, UNNAMED, VARIABLE, CrashPoint, CrashPointUnknown, effect_of, planned
from turngate.jetstream.embedded import EmbeddedServer
from turngate.jetstream.provision import provision
from turngate.jetstream.request import Requester
from turngate_contracts.headers import block
from turngate_contracts.service_permissions import SERVICES, of_service
from turngate_contracts.subjects import Subjects
from turngate_contracts.topology import Durability, Topology

S = Subjects("tg")


@pytest.mark.parametrize(
    ("text", "point"),
    [
        ("save.turns.sent", CrashPoint("save.turns", "sent")),
        ("ack.turns-reconciler.before:3", CrashPoint("ack.turns-reconciler", "before", 3)),
        ("answer.turn.answer.before", CrashPoint("answer.turn.answer", "before")),
    ],
)
def test_a_point_is_an_effect_and_a_step_and_which_time(text: str, point: CrashPoint):
    assert planned({VARIABLE: text}) == point


@pytest.mark.parametrize(
    "text", ["save.turns", "sent", "save.turns.after", "save.turns.sent:0", "save.turns.sent:x", "*.sent"]
)
def test_what_is_no_point_is_refused_by_its_name(text: str):
    with pytest.raises(CrashPointUnknown, match=VARIABLE) as refused:
        planned({VARIABLE: text})

    assert refused.value.details["field"] == VARIABLE


@pytest.mark.parametrize(
    ("subject", "body", "headers", "effect"),
    [
        (S.revision("turns", "s1", wants=False), b"{}", b"", "save.turns"),
        (S.key("inbox", "card.s1"), b"", block({"KV-Operation": "DEL"}), "delete.inbox"),
        (S.revision("turns", "s1", wants=True), b"{}", block({"Nats-Batch-Id": "b"}), "batch.turns"),
        ("$JS.ACK.TG_TURNS.validation.1.2.3.4.5", b"+ACK", b"", "ack.validation"),
        ("$JS.ACK._.hash.TG_TURNS.validation.1.2.3.4.5.x", b"+TERM why", b"", "term.validation"),
        ("$JS.ACK.TG_TURNS.validation.1.2.3.4.5", b'-NAK {"delay": 1}', b"", "nak.validation"),
        (S.timer_at("question", "t1"), b"", b"", "set.timer-question"),
        (S.prompt("p", "p1"), b"", b"", "put.prompt"),
        ("$JS.API.STREAM.MSG.DELETE.TG_TURNS", b"", b"", "stream.msg.delete"),
    ],
)
def test_an_effect_is_named_for_what_it_does(subject: str, body: bytes, headers: bytes, effect: str):
    assert effect_of(subject, body, headers, {}) == effect


@pytest.mark.parametrize(
    ("subject", "body"),
    [
        ("$JS.API.CONSUMER.MSG.NEXT.TG_TURNS.validation", b""),
        ("$JS.API.DIRECT.GET.TG_TURNS.x", b""),
        ("$JS.API.STREAM.MSG.GET.TG_TURNS", b""),
        ("$JS.ACK.TG_TURNS.validation.1.2.3.4.5", b"+WPI"),
        ("$SRV.PING", b""),
    ],
)
def test_reading_is_no_effect(subject: str, body: bytes):
    assert effect_of(subject, body, b"", {}) == ""


@pytest.mark.parametrize("service", SERVICES)
def test_whatever_a_service_may_publish_has_a_name(service: str):
    topology = Topology(S)
    asked = {"_INBOX.>": "turn.get", "_R_.>": "turn.get"}

    nameless = [
        subject for subject in of_service(topology, service).publish if effect_of(subject, b"", b"", asked) == UNNAMED
    ]

    assert nameless == []


async def test_a_connection_has_no_points_where_nobody_asks_for_one(nats_server: EmbeddedServer):
    connection = await connect(nats_server.url)

    assert type(connection) is Connection
    await connection.close()


_SAVES_TWICE = """
import asyncio, sys
from turngate.jetstream.connect import connect
from turngate.jetstream.request import Requester
from turngate.jetstream.store import Event, Store
from turngate_contracts.subjects import Subjects

async def main(url, namespace):
    requester = await Requester.start(await connect(url))
    store = Store(requester, Subjects(namespace), "turns", "count.v1")
    revision = await store.save("k", b"1", 0, Event("x", 1))
    print("saved once", flush=True)
    await store.save("k", b"2", revision, Event("x", 1))
    print("saved twice", flush=True)

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.parametrize(
    ("point", "said", "stored"),
    [
        ("save.turns.before", "", 0),
        ("save.turns.sent", "", 1),
        ("save.turns.confirmed", "", 1),
        ("save.turns.before:2", "saved once\n", 1),
        ("save.turns.sent:2", "saved once\n", 2),
    ],
)
async def test_a_process_ends_before_or_after_its_save(
    nats_server: EmbeddedServer, namespace: str, point: str, said: str, stored: int
):
    connection = await connect(nats_server.url)
    requester = await Requester.start(connection)
    topology = Topology(Subjects(namespace), Durability.RELAXED)
    await provision(requester, topology)

    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", _SAVES_TWICE, nats_server.url, namespace),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=os.environ | {VARIABLE: point},
    )
    out, err = await process.communicate()

    assert (process.returncode, out.decode()) == (CRASHED, said)
    assert f"ended at crash point {point.partition(':')[0]}" in err.decode()
    info = await requester.api(f"STREAM.INFO.{topology.subjects.bucket_stream('turns')}")
    assert info["state"]["messages"] == stored
    await requester.stop()
    await connection.close()
