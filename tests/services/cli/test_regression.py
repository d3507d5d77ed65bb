"""Services do not start on a bucket that lost saves, say why in one sentence, and start where the loss is accepted."""

import asyncio

from tests.services.cli.shell import Background, inside
from turngate.clock import system_clock
from turngate.jetstream.connect import connect
from turngate.jetstream.embedded import EmbeddedServer
from turngate.jetstream.provision import provision
from turngate.jetstream.request import Requester
from turngate.jetstream.watermarks import Watermarks
from turngate_contracts.subjects import Subjects
from turngate_contracts.topology import Durability, Topology


def lose_saves(url: str, namespace: str) -> str:
    """Make a system whose bucket of turns has lost two saves, and return the bucket's stream."""
    topology = Topology(Subjects(namespace), Durability.RELAXED)
    stream = topology.subjects.bucket_stream("turns")

    async def run() -> None:
        connection = await connect(url)
        requester = await Requester.start(connection)
        await provision(requester, topology)
        for _ in range(2):
            await requester.publish(topology.subjects.revision("turns", "s1", wants=False), b"{}")
        await Watermarks(requester, topology, system_clock()).note()
        await requester.api(f"STREAM.DELETE.{stream}")
        await requester.stop()
        await connection.close()

    asyncio.run(run())
    return stream


def test_what_was_lost_is_told_and_accepted_by_a_flag(nats_server: EmbeddedServer, namespace: str, tmp_path):
    env = {"TURNGATE_NATS_URL": nats_server.url, "TURNGATE_NAMESPACE": namespace, "TURNGATE_DURABILITY": "relaxed"}
    stream = lose_saves(nats_server.url, namespace)

    refused = inside("serve", "deadletter", env=env)

    assert refused.code == 1
    assert f"stream {stream} ends at sequence 0, and 2 was seen in it before" in refused.err
    assert "start once with --accept-regression" in refused.err
    doctor = inside("doctor", env=env)
    assert f"{stream} ends at sequence 0, and 2 was seen" in doctor.out
    with Background(tmp_path, "serve", "deadletter", "--accept-regression", env=env) as service:
        service.wait_ready()
        assert service.end() == 0
    with Background(tmp_path, "serve", "deadletter", env=env) as service:
        service.wait_ready()
