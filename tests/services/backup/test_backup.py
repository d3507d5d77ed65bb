"""`turngate backup` and `turngate restore`: what they write, what they check, and what they refuse."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.fundamentals.reports import DONE
from tests.running import System, requesting, running
from tests.services.cli.shell import Background, Outcome, inside
from tests.services.jetstream import version_two
from tests.waiting import wait_until, wait_until_sync
from turngate.backup import plan as plan_module
from turngate.backup import snapshot
from turngate.backup.create import create
from turngate.backup.errors import BackupUnusable, DirectoryInUse, SnapshotFailed
from turngate.backup.manifest import MANIFEST, read_manifest
from turngate.backup.restore import restore
from turngate.jetstream.connect import connect
from turngate.jetstream.direct import read_page
from turngate.jetstream.embedded import EmbeddedServer
from turngate.jetstream.provision import stream_version
from turngate.jetstream.request import Requester
from turngate.jetstream.store import Store
from turngate_contracts import headers as h
from turngate_contracts.subjects import Subjects
from turngate_contracts.topology import TOPOLOGY_VERSION, Durability, Topology


def quietly(_stream: str, _size: int) -> None:
    """No progress."""


@pytest.fixture(scope="module")
def other_server(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A server that a backup may be restored into."""
    with EmbeddedServer(tmp_path_factory.mktemp("other"), sync_always=False) as server:
        yield server


@pytest.fixture
async def backup(nats_server: EmbeddedServer, namespace: str, tmp_path: Path) -> Path:
    """A backup of a namespace in which three turns were accepted; its services have ended."""
    async with running(nats_server.url, namespace) as system, await system.client() as client:
        for number in range(3):
            await client.submit_report(f"s{number}", 1, json.dumps(DONE), mutated=True)
        await create(system.requester, system.settings.topology(), tmp_path / "backup", quietly)
    return tmp_path / "backup"


def command(server: EmbeddedServer, namespace: str, *arguments: str | Path) -> Outcome:
    env = {"TURNGATE_NATS_URL": server.url, "TURNGATE_NAMESPACE": namespace, "TURNGATE_DURABILITY": "relaxed"}
    return inside(*map(str, arguments), env=env)


def test_a_backup_is_restored_into_another_server(backup, namespace, other_server):
    outcome = command(other_server, namespace, "restore", "--json", backup)

    assert outcome.code == 0, outcome.err
    held = {entry["stream"]: entry["messages"] for entry in outcome.json()["streams"]}
    assert held[f"KV_{namespace}_turns"] == 3
    doctor = command(other_server, namespace, "doctor", "--json").json()
    (topology,) = (check for check in doctor["checks"] if check["name"] == "topology")
    assert topology["status"] == "ok"


async def test_a_backup_of_topology_version_2_is_restored_as_this_version_has_it(
    nats_server, other_server, namespace, tmp_path, monkeypatch
):
    topology = Topology(Subjects(namespace), Durability.RELAXED)
    async with requesting(connect(nats_server.url)) as requester:
        await version_two.make(requester, topology)
        for key, wants in (("s1", True), ("s2", False)):
            await version_two.save(requester, topology.subjects, key, key.encode(), wants=wants)
        await wait_until(lambda: _events(requester, topology), why="the states are sourced into the events")
        monkeypatch.setattr("turngate.backup.create.TOPOLOGY_VERSION", version_two.VERSION)
        await create(requester, topology, tmp_path / "backup", quietly)

    async with requesting(connect(other_server.url)) as requester:
        manifest = await restore(requester, topology, tmp_path / "backup", quietly)
        turns = Store(requester, topology.subjects, "turns", "count.v1")
        found = {key: await turns.load(key) for key in ("s1", "s2")}

        assert manifest.topology == version_two.VERSION
        assert await stream_version(requester, turns.stream) == TOPOLOGY_VERSION
        assert {key: entry.value for key, entry in found.items()} == {"s1": b"s1", "s2": b"s2"}
        assert [h.WANTS in entry.headers() for entry in found.values()] == [True, False]
        moved = [topology.subjects.event("turns", key) for key in ("s1", "s2")]
        await wait_until(lambda: _events(requester, topology, 2), why="what was moved is told once more")
        assert sorted(await _events(requester, topology)) == sorted(2 * moved)


async def _events(requester: Requester, topology: Topology, least: int = 1) -> list[str]:
    """The subjects of the events, once each state has as many as that."""
    found = [each.subject for each in (await read_page(requester, topology.subjects.stream("events"), 0, 256, ">"))[0]]
    return found if len(found) >= 2 * least else []


@pytest.mark.parametrize("durability", ["strict", "relaxed"])
def test_streams_are_as_durable_as_is_chosen_for_the_restore(backup, namespace, nats_server, durability):
    env = {"TURNGATE_NATS_URL": nats_server.url, "TURNGATE_NAMESPACE": namespace}
    restored = inside("restore", "--replace", "--durability", durability, str(backup), env=env)
    checks = inside("doctor", "--json", env=env).json()["checks"]

    assert restored.code == 0, restored.err
    (found,) = (check for check in checks if check["name"] == "durability")
    assert found["facts"]["made"] == durability


def test_only_its_owner_can_read_a_backup(backup):
    assert backup.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in backup.iterdir()} == {0o600}
    assert not list(backup.glob("*.partial"))


def test_the_manifest_says_what_is_there_and_of_which_versions(backup, namespace):
    manifest = read_manifest(backup)

    assert (manifest.namespace, manifest.format) == (namespace, 1)
    assert manifest.version
    assert manifest.topology
    assert manifest.server.startswith("2.")
    assert manifest.began_at <= manifest.ended_at
    assert {entry.last_sequence for entry in manifest.streams if entry.stream.endswith("_turns")} == {3}


def test_a_backup_is_written_from_the_command_line(system: System, namespace, nats_server, tmp_path):
    outcome = command(nats_server, namespace, "backup", "create", tmp_path / "mine")

    assert outcome.code == 0, outcome.err
    assert f"backed up into {tmp_path / 'mine'}" in outcome.out
    assert command(nats_server, namespace, "backup", "verify", tmp_path / "mine").code == 0


def test_a_backup_can_be_verified_by_restoring_it_elsewhere(backup, namespace, nats_server):
    outcome = command(nats_server, namespace, "backup", "verify", "--restore", backup)

    assert outcome.code == 0, outcome.err
    assert "complete and undamaged" in outcome.out


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda at: (at / MANIFEST).unlink(), "it has no manifest.json"),
        (lambda at: (at / MANIFEST).write_text("{"), "it can't be read"),
        (lambda at: next(at.glob("KV_*_turns.snapshot")).unlink(), "it is missing"),
        (lambda at: _flip(next(at.glob("KV_*_turns.snapshot"))), "its digest is not that of what was written"),
        (lambda at: next(at.glob("*_EVENTS.snapshot")).write_bytes(b""), "it has 0 bytes"),
        (
            lambda at: (at / MANIFEST).write_text((at / MANIFEST).read_text().replace('"format": 1', '"format": 2')),
            "it has format 2, this Turngate knows 1",
        ),
        (
            lambda at: (at / MANIFEST).write_text((at / MANIFEST).read_text().replace('"file": "', '"file": "../')),
            "lies outside of the directory",
        ),
    ],
    ids=[
        "no manifest",
        "a broken manifest",
        "a lost file",
        "a flipped bit",
        "an empty file",
        "a later format",
        "a path",
    ],
)
def test_a_damaged_backup_is_not_restored(backup, namespace, other_server, damage, says):
    damage(backup)

    verified = command(other_server, namespace, "backup", "verify", backup)
    restored = command(other_server, namespace, "restore", backup)

    assert (verified.code, restored.code) == (1, 1)
    assert says in verified.err
    assert says in restored.err


def test_streams_that_exist_are_kept_unless_they_are_to_be_replaced(backup, namespace, nats_server):
    kept = command(nats_server, namespace, "restore", backup)
    replaced = command(nats_server, namespace, "restore", "--replace", backup)

    assert kept.code == 1
    assert "--replace deletes them first" in kept.err
    assert f"KV_{namespace}_turns" in kept.err
    assert replaced.code == 0, replaced.err


@pytest.mark.parametrize("secured", [False, True], ids=["open", "secured"])
def test_a_system_of_turngate_up_is_restored_where_it_is(backup, namespace, tmp_path, secured):
    state = ("--state-dir", str(tmp_path / "state"))
    env = {"TURNGATE_NAMESPACE": namespace, "TURNGATE_DURABILITY": "relaxed", "USER": "ann"}
    if secured:
        assert inside("auth", "init", "--tls", *state, env=env).code == 0

    first = inside("restore", "--here", *state, str(backup), env=env)
    kept = inside("restore", "--here", *state, str(backup), env=env)
    replaced = inside("restore", "--here", "--replace", *state, str(backup), env=env)
    secure = ("--secure",) if secured else ()
    with Background(tmp_path / "up", "up", *secure, "--json", "--port", "0", "--console", "off", *state, env=env) as up:
        wait_until_sync(lambda: up.out.endswith("\n") or up.process.poll() is not None, 60, "it is ready")
        place = json.loads(up.out)
        if secured:
            env["TURNGATE_NATS_SEED_FILE"] = str(tmp_path / "state" / "auth" / "seeds" / "ann.seed")
            env["TURNGATE_TLS_CA"] = place["tls_ca"]
        shown = inside("turn", "show", "s0", "--json", env=env | {"TURNGATE_NATS_URL": place["url"]})
        in_use = inside("restore", "--here", "--replace", *state, str(backup), env=env)
        assert up.end() == 0, up.err

    assert (first.code, replaced.code) == (0, 0), first.err + replaced.err
    assert kept.code == 1
    assert "--replace deletes them first" in kept.err
    assert shown.code == 0, shown.err
    assert "accepted" in shown.out
    assert in_use.code == 1
    assert "is in use by the server of process" in in_use.err


async def test_nothing_is_restored_under_running_services(backup, namespace, nats_server):
    async with running(nats_server.url, namespace):
        outcome = await asyncio.to_thread(command, nats_server, namespace, "restore", "--replace", backup)

    assert outcome.code == 1
    assert "services are running on this namespace (validation); stop them" in outcome.err


def test_a_backup_of_another_namespace_is_refused(backup, namespace, other_server):
    outcome = command(other_server, "other", "restore", backup)

    assert outcome.code == 1
    assert f"restore it with --namespace {namespace}" in outcome.err


def test_a_directory_with_something_in_it_is_left_alone(system: System, namespace, nats_server, tmp_path):
    (tmp_path / "notes").write_text("mine")

    outcome = command(nats_server, namespace, "backup", "create", tmp_path)

    assert outcome.code == 1
    assert "is not empty" in outcome.err
    assert [path.name for path in tmp_path.iterdir()] == ["notes"]


def test_without_a_topology_there_is_nothing_to_back_up(namespace, nats_server, tmp_path):
    outcome = command(nats_server, namespace, "backup", "create", tmp_path / "backup")

    assert outcome.code == 1
    assert "does not exist on this server" in outcome.err
    assert not (tmp_path / "backup").exists()


async def test_a_snapshot_that_stops_in_the_middle_is_an_error_and_no_backup(system: System, tmp_path, monkeypatch):
    monkeypatch.setattr(snapshot, "SILENCE_S", 0.3)
    send = system.connection.send

    def without_confirmations(subject: str, *rest: Any, **more: Any) -> None:
        if not subject.startswith("$JS.SNAPSHOT.ACK"):
            send(subject, *rest, **more)

    monkeypatch.setattr(system.connection, "send", without_confirmations)
    monkeypatch.setattr(snapshot, "CHUNK_BYTES", 4 * 1024)
    monkeypatch.setattr(snapshot, "WINDOW_BYTES", 64 * 1024)
    for number in range(600):
        subject = system.subjects.revision("turns", f"k{number}", wants=False)
        await system.requester.publish(subject, os.urandom(4096))

    with pytest.raises(SnapshotFailed, match="no chunk within"):
        await create(system.requester, system.settings.topology(), tmp_path / "backup", quietly)

    with pytest.raises(BackupUnusable, match="was not finished"):
        read_manifest(tmp_path / "backup")
    assert not list((tmp_path / "backup").glob("*.partial"))
    with pytest.raises(DirectoryInUse):
        await create(system.requester, system.settings.topology(), tmp_path / "backup", quietly)


def test_every_stream_of_the_topology_is_kept_or_left_out_on_purpose(namespace):
    topology = Topology(Subjects(namespace))

    kept = [planned.name for planned in plan_module.plan(topology)]
    left = plan_module.left_out(topology)

    assert sorted([*kept, *left]) == sorted(config["name"] for config in topology.streams())
    upper = namespace.upper()
    not_kept = [f"{upper}_{name}" for name in ("PRESENCE", "ADVISORIES", "SUSPECTS", "MARKS")]
    assert sorted(left) == sorted([*not_kept, f"KV_{namespace}_inbox"])
