"""A backup of one server is restored into a cluster of three, with three copies, and back: work goes on in each."""

import asyncio
import json
from pathlib import Path

import pytest

from tests.fundamentals.reports import DONE
from tests.services.cli.shell import Outcome, inside
from tests.system.cluster import running_cluster
from tests.system.observer import Observer
from turngate.jetstream.embedded import EmbeddedServer
from turngate.process import running
from turngate.runner import TurnClient
from turngate.settings import Settings
from turngate_contracts.topology import Durability

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

SERVICES = ("validation", "conclusion", "supervisor", "deadletter")


class Place:
    """A server or a cluster that the backup goes to."""

    def __init__(self, url: str, namespace: str, replicas: int) -> None:
        # Strict, because that is what one server and a cluster store differently.
        self.settings = Settings(
            nats_url=url,
            namespace=namespace,
            durability=Durability.STRICT,
            replicas=replicas,
            connect_timeout_ms=20_000,
        )

    async def command(self, *arguments: str) -> Outcome:
        env = {
            "TURNGATE_NATS_URL": self.settings.nats_url,
            "TURNGATE_NAMESPACE": self.settings.namespace,
            "TURNGATE_REPLICAS": str(self.settings.replicas),
        }
        return await asyncio.to_thread(inside, *arguments, env=env)

    async def play(self, session: str) -> None:
        """Run the services for one more turn, and see that the events tell of every revision once."""
        settings = self.settings
        async with running(settings, SERVICES):
            client = await TurnClient.connect(
                "runner-1", pool="pool-1", url=settings.nats_url, namespace=settings.namespace
            )
            async with client:
                verdict = await client.submit_report(session, 1, json.dumps(DONE), mutated=True)
                assert verdict.outcome == "accepted"
        observer = await Observer.connect(settings.nats_url, settings.namespace)
        try:
            await observer.events_are_complete()
            told = [event.key for event in await observer.events() if event.kind == "turns"]
            saved = await observer.history(observer.turns)
            assert sorted(told) == sorted(key for key, revisions in saved.items() for _ in revisions)
        finally:
            await observer.close()


async def test_a_backup_of_one_server_is_restored_into_a_cluster_and_back(
    own_server: EmbeddedServer, namespace: str, tmp_path: Path
):
    one = Place(own_server.url, namespace, 1)
    await one.play("first")
    backed_up = await one.command("backup", "create", str(tmp_path / "of-one"))
    assert backed_up.code == 0, backed_up.err

    async with running_cluster(tmp_path, {"sync_interval: always": ""}) as cluster:
        three = Place(cluster.url, namespace, 3)
        restored = await three.command("restore", str(tmp_path / "of-one"))
        assert restored.code == 0, restored.err
        await three.play("second")
        backed_up = await three.command("backup", "create", str(tmp_path / "of-three"))
        assert backed_up.code == 0, backed_up.err

    restored = await one.command("restore", "--replace", str(tmp_path / "of-three"))
    assert restored.code == 0, restored.err
    await one.play("third")
    (durability,) = (c for c in (await one.command("doctor", "--json")).json()["checks"] if c["name"] == "durability")
    assert durability["facts"]["made"] == "strict"
